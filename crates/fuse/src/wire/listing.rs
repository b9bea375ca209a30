//! Directory listings, written straight into the reply.

use super::{
    layout,
    reply::{Validities, put},
};
use holdfast_types::{Attr, FileType, Ino};

/// Takes the entries of a READDIR reply until it is full.
#[derive(Debug)]
pub struct DirSink<'a> {
    out: &'a mut [u8],
    len: usize,
}

impl<'a> DirSink<'a> {
    pub(crate) fn new(out: &'a mut [u8]) -> Self {
        Self { out, len: 0 }
    }

    /// Adds an entry; `false` if it does not fit any more (it is not added then).
    ///
    /// `cookie` is where a later READDIR goes on behind this entry.
    #[must_use]
    pub fn push(&mut self, name: &[u8], ino: Ino, kind: FileType, cookie: u64) -> bool {
        let free = &mut self.out[self.len..];
        let added = put_dirent(free, name, ino, kind, cookie);
        self.len += added;
        added != 0
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// Takes the entries of a READDIRPLUS reply until it is full.
#[derive(Debug)]
pub struct DirPlusSink<'a> {
    out: &'a mut [u8],
    len: usize,
    validities: &'a Validities,
}

impl<'a> DirPlusSink<'a> {
    pub(crate) fn new(out: &'a mut [u8], validities: &'a Validities) -> Self {
        Self {
            out,
            len: 0,
            validities,
        }
    }

    /// Adds an entry; `false` if it does not fit any more (it is not added then).
    ///
    /// An entry that was added gives the kernel one reference to the inode, as LOOKUP does,
    /// unless it is `.` or `..`.
    #[must_use]
    pub fn push(&mut self, name: &[u8], attr: &Attr, cookie: u64) -> bool {
        self.push_heard(name, attr, cookie, false)
    }

    /// The same of an inode that may be [heard of](crate::Operations::is_heard).
    #[must_use]
    pub fn push_heard(&mut self, name: &[u8], attr: &Attr, cookie: u64, is_heard: bool) -> bool {
        if name == b"." || name == b".." {
            return self.push_name(name, attr.ino, attr.kind, cookie);
        }
        let entry = self.validities.of(|| is_heard).entry(attr);
        self.put(name, (attr.ino, attr.kind), cookie, &entry)
    }

    /// Adds an entry without attributes: the kernel keeps the listing's number and type, and asks
    /// for the inode when somebody needs it (where it learns why that cannot be read). It gives the
    /// kernel no reference.
    #[must_use]
    pub fn push_name(&mut self, name: &[u8], ino: Ino, kind: FileType, cookie: u64) -> bool {
        // Node id 0 says so.
        self.put(name, (ino, kind), cookie, &layout::EntryOut::default())
    }

    fn put(
        &mut self,
        name: &[u8],
        (ino, kind): (Ino, FileType),
        cookie: u64,
        entry: &layout::EntryOut,
    ) -> bool {
        let free = &mut self.out[self.len..];
        let size = size_of::<layout::EntryOut>();
        let Some((front, behind)) = free.split_at_mut_checked(size) else {
            return false;
        };
        let added = put_dirent(behind, name, ino, kind, cookie);
        if added == 0 {
            return false;
        }
        put(front, entry);
        self.len += size + added;
        true
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// Writes one record, padded to 8 bytes; gives its length, or 0 if it does not fit.
fn put_dirent(out: &mut [u8], name: &[u8], ino: Ino, kind: FileType, cookie: u64) -> usize {
    let head = size_of::<layout::Dirent>();
    let used = head + name.len();
    let padded = used.next_multiple_of(8);
    let Some(record) = out.get_mut(..padded) else {
        return 0;
    };
    let dirent = layout::Dirent {
        ino: ino.0,
        off: cookie,
        namelen: name.len() as u32,
        kind: u32::from(kind.dirent_type()),
    };
    put(record, &dirent);
    record[head..used].copy_from_slice(name);
    record[used..].fill(0);
    padded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_does_not_fit_is_left_out() {
        let mut out = [0xff; 64];
        let mut sink = DirSink::new(&mut out);
        assert!(sink.push(b"name", Ino(5), FileType::Regular, 9));
        assert_eq!(sink.len(), 32);
        assert!(!sink.push(b"a name of 9+", Ino(6), FileType::Regular, 10));
        assert!(sink.push(b"12345678", Ino(6), FileType::Fifo, 10));
        assert!(!sink.push(b"", Ino(7), FileType::Fifo, 11));
        assert_eq!(out[24..32], *b"name\0\0\0\0");
    }
}
