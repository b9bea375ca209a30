//! Directory listings, written straight into the reply.

use super::{
    layout,
    reply::{Validities, put},
};
use holdfast_types::{Attr, FileType, Ino, is_special};
use std::time::Duration;
use zerocopy::IntoBytes;

/// Takes the entries of a READDIR or READDIRPLUS reply until it is full.
#[derive(Debug)]
pub struct DirSink<'a> {
    out: &'a mut [u8],
    len: usize,
    /// Of READDIRPLUS.
    validities: Option<&'a Validities>,
}

impl<'a> DirSink<'a> {
    pub(crate) fn new(out: &'a mut [u8], validities: Option<&'a Validities>) -> Self {
        Self {
            out,
            len: 0,
            validities,
        }
    }

    /// Does the kernel want attributes (READDIRPLUS)?
    #[must_use]
    pub fn takes_attributes(&self) -> bool {
        self.validities.is_some()
    }

    /// Adds an entry without attributes; `false` if it does not fit (it is not added then).
    ///
    /// `cookie` is the position behind this entry, for a later request. The kernel looks the inode
    /// up when it is needed, which also reports an error of it. It is given no reference.
    #[must_use]
    pub fn push(&mut self, name: &[u8], ino: Ino, kind: FileType, cookie: u64) -> bool {
        // Node id 0: no attributes.
        self.put(name, (ino, kind), cookie, &layout::EntryOut::default())
    }

    /// The same with attributes. `notified_for` as
    /// [`Operations::notified_for`](crate::Operations::notified_for).
    ///
    /// In a reply that [takes attributes](Self::takes_attributes) an added entry gives the kernel
    /// one reference to the inode, as LOOKUP does, unless it is `.` or `..`.
    #[must_use]
    pub fn push_plus(
        &mut self,
        name: &[u8],
        attr: &Attr,
        cookie: u64,
        notified_for: Option<Duration>,
    ) -> bool {
        let validities = self.validities.filter(|_| !is_special(name));
        let entry = validities.map(|it| it.of(|| notified_for).entry(attr));
        let entry = entry.unwrap_or_default();
        self.put(name, (attr.ino, attr.kind), cookie, &entry)
    }

    fn put(
        &mut self,
        name: &[u8],
        (ino, kind): (Ino, FileType),
        cookie: u64,
        entry: &layout::EntryOut,
    ) -> bool {
        let entry = self.validities.map_or(&[][..], |_| entry.as_bytes());
        let free = &mut self.out[self.len..];
        let Some((front, behind)) = free.split_at_mut_checked(entry.len()) else {
            return false;
        };
        let added = put_dirent(behind, name, ino, kind, cookie);
        if added != 0 {
            front.copy_from_slice(entry);
            self.len += entry.len() + added;
        }
        added != 0
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// Writes one record, padded to 8 bytes; returns its length, or 0 if it does not fit.
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
        let mut sink = DirSink::new(&mut out, None);
        assert!(sink.push(b"name", Ino(5), FileType::Regular, 9));
        assert_eq!(sink.len(), 32);
        assert!(!sink.push(b"a name of 9+", Ino(6), FileType::Regular, 10));
        assert!(sink.push(b"12345678", Ino(6), FileType::Fifo, 10));
        assert!(!sink.push(b"", Ino(7), FileType::Fifo, 11));
        assert_eq!(out[24..32], *b"name\0\0\0\0");
    }
}
