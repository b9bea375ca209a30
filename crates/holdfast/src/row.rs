//! An inode's attributes in a row of fixed length, as a daemon sends them to other processes.

use crate::types::{Attr, FileType, Ino, Time};

/// Bytes of a row.
pub const ROW: usize = 88;

/// Adds a row.
pub fn put(attr: &Attr, rows: &mut Vec<u8>) {
    let times = [attr.atime, attr.mtime, attr.ctime, attr.btime];
    for wide in [attr.ino.0, attr.size, attr.blocks, attr.rdev] {
        rows.extend_from_slice(&wide.to_le_bytes());
    }
    for time in times {
        rows.extend_from_slice(&time.0.to_le_bytes());
    }
    for narrow in [attr.mode(), attr.nlink, attr.uid, attr.gid, 0, 0] {
        rows.extend_from_slice(&narrow.to_le_bytes());
    }
}

/// Reads a row; `None` if it is malformed.
#[must_use]
pub fn get(row: &[u8]) -> Option<Attr> {
    let wide = |nth: usize| {
        let bytes = row.get(nth * 8..)?.first_chunk()?;
        Some(u64::from_le_bytes(*bytes))
    };
    let narrow = |nth: usize| {
        let bytes = row.get(64 + nth * 4..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    };
    let time = |nth: usize| Some(Time(wide(nth)?.cast_signed()));
    let mode = narrow(0)?;
    Some(Attr {
        ino: Ino(wide(0)?),
        size: wide(1)?,
        blocks: wide(2)?,
        rdev: wide(3)?,
        atime: time(4)?,
        mtime: time(5)?,
        ctime: time(6)?,
        btime: time(7)?,
        kind: FileType::from_mode(mode)?,
        perm: (mode & 0o7777) as u16,
        nlink: narrow(1)?,
        uid: narrow(2)?,
        gid: narrow(3)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_holds_all_attributes() {
        let attr = Attr {
            ino: Ino(1 << 40),
            kind: FileType::Symlink,
            perm: 0o4711,
            nlink: 3,
            uid: 4,
            gid: u32::MAX,
            rdev: 5,
            size: 6,
            blocks: 7,
            atime: Time(-8),
            mtime: Time(i64::MAX),
            ctime: Time(9),
            btime: Time(10),
        };
        let mut rows = Vec::new();
        put(&attr, &mut rows);
        assert_eq!(rows.len(), ROW);
        assert_eq!(get(&rows), Some(attr));
        for short in 0..ROW - 8 {
            assert_eq!(get(&rows[..short]), None, "{short}");
        }
    }
}
