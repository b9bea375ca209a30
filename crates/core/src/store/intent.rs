//! Upper bounds on what an operation needs of its store, passed to the store before anything is
//! changed.

use super::Change;
use crate::types::Ino;

const PAGE: u64 = 4096;
/// Bytes that a name or a value takes beside its own.
const ITEM: u64 = 64;

/// Bytes that a name, a value or a target of this length takes in a store that counts them.
#[must_use]
pub fn kept_bytes(len: usize) -> u64 {
    ITEM + len as u64
}

/// How much of the store's free space an operation may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// The operation adds something, and is refused if only the reserve is left.
    #[default]
    Growing,
    /// The operation changes what is there, and adds next to nothing: it may use half of the
    /// reserve.
    Changing,
    /// The operation overwrites bytes that have space: it may use half of the reserve. It is
    /// refused only if less than that is left: reservations of concurrent operations do not count.
    InPlace,
    /// The operation frees space, or must not fail: it may use all of the reserve, and is never
    /// refused for want of space.
    GivingBack,
}

/// Upper bounds on what an operation needs of its store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Intent {
    /// The class of the operation.
    pub class: Class,
    /// Pages of content without space.
    pub pages: u64,
    /// Pages that have space in memory and none in the store: the first page of a file that does
    /// not stay [small](super::Guarantees::small).
    pub moved: u64,
    /// Pages that are written or allocated, with space or without.
    pub written: u64,
    /// Pages that have space and get another block: overwritten, zeroed or moved.
    pub touched: u64,
    /// Bytes written to the first page of a file.
    pub small_bytes: u64,
    /// Ranges of files that are written, cut, zeroed, allocated, removed or inserted.
    pub ranges: u64,
    /// Further ranges that each begin where the one before in the same file ends.
    pub pieces: u64,
    /// Pages that are allocated without being written.
    pub allocated: u64,
    /// New inodes.
    pub inodes: u64,
    /// Inodes with changed attributes.
    pub records: u64,
    /// Inodes that are freed, or lose a name, perhaps the last one.
    pub ended: u64,
    /// Names that are added.
    pub names: u64,
    /// The bytes of these names.
    pub name_bytes: u64,
    /// Names that are removed.
    pub left: u64,
    /// The bytes of these names.
    pub left_bytes: u64,
    /// Added names with the cookie of a removed one: one for each, two if the name is the same.
    pub replaced: u64,
    /// Extended attributes that are set or removed, and targets of symbolic links.
    pub values: u64,
    /// The bytes of values and targets, and of the names of attributes.
    pub value_bytes: u64,
}

impl Intent {
    /// For an operation that frees space.
    #[must_use]
    pub fn giving_back() -> Self {
        Self {
            class: Class::GivingBack,
            ..Self::default()
        }
    }

    /// For an operation that changes what is there.
    #[must_use]
    pub fn changing() -> Self {
        Self {
            class: Class::Changing,
            ..Self::default()
        }
    }

    /// Adds a name that is entered.
    #[must_use]
    pub const fn name(mut self, name: &[u8]) -> Self {
        self.names += 1;
        self.name_bytes += name.len() as u64;
        self
    }

    /// Adds a name that is removed.
    #[must_use]
    pub const fn leaving(mut self, name: &[u8]) -> Self {
        self.left += 1;
        self.left_bytes += name.len() as u64;
        self
    }

    /// Adds a value or a target of `len` bytes, with the bytes of its name.
    #[must_use]
    pub const fn value(mut self, len: usize) -> Self {
        self.values += 1;
        self.value_bytes += len as u64;
        self
    }

    /// Adds `records` inodes with changed attributes.
    #[must_use]
    pub const fn records(mut self, records: u64) -> Self {
        self.records += records;
        self
    }

    /// What these changes need, without the space of pages: only the caller knows which pages have
    /// space already.
    #[must_use]
    pub fn of(batch: &[Change<'_>]) -> Self {
        let mut end = None;
        batch.iter().fold(Self::default(), |intent, change| {
            let stretch = stretch_of(change);
            let follows = stretch.is_some_and(|(ino, start, _)| end == Some((ino, start)));
            let mut more = intent.and(change);
            more.replaced += replaced_names(batch, change);
            if follows {
                more.ranges -= 1;
                more.pieces += 1;
            }
            end = stretch.map(|(ino, start, len)| (ino, start.saturating_add(len)));
            more
        })
    }

    /// Adds one change.
    #[inline]
    fn and(self, change: &Change<'_>) -> Self {
        match *change {
            Change::Create { ref inode, target } => {
                let more = Self {
                    inodes: self.inodes + 1,
                    records: self.records + u64::from(inode.nlink == 0),
                    ..self
                };
                target.map_or(more, |target| more.value(target.len()))
            }
            Change::Attributes { ref inode } => self.records(1 + u64::from(inode.nlink == 0)),
            Change::Enter { name, .. } => self.name(name),
            Change::Leave { name, .. } => self.leaving(name),
            Change::Write { offset, data, .. } => {
                let mut more = self.writing(offset, data.len() as u64, u64::MAX);
                more.ranges += 1;
                more
            }
            Change::Xattr { name, value, .. } => {
                self.value(name.len() + value.map_or(0, <[u8]>::len))
            }
            Change::Free { .. } => Self {
                ended: self.ended + 1,
                ..self
            },
            Change::Allocate { offset, len, .. }
            | Change::Zero {
                offset,
                len,
                keep: true,
                ..
            } => {
                let pages = offset.saturating_add(len).div_ceil(PAGE) - offset / PAGE;
                Self {
                    ranges: self.ranges + 1,
                    allocated: self.allocated + pages,
                    ..self
                }
            }
            Change::Truncate { .. }
            | Change::Zero { .. }
            | Change::Collapse { .. }
            | Change::Insert { .. } => Self {
                ranges: self.ranges + 1,
                ..self
            },
        }
    }

    /// Adds bytes that are written to a file of this size.
    #[must_use]
    pub const fn writing(mut self, offset: u64, len: u64, size: u64) -> Self {
        let end = offset.saturating_add(len);
        if end <= PAGE {
            self.small_bytes += len;
        }
        self.written += end.div_ceil(PAGE) - offset / PAGE;
        let old = if end < size { end } else { size };
        if offset < old {
            self.touched += old.div_ceil(PAGE) - offset / PAGE;
        }
        self
    }

    /// Bytes that names, values and targets take in a store that [counts](kept_bytes) them.
    #[must_use]
    pub const fn kept(&self) -> u64 {
        ITEM * (self.names + self.values) + self.name_bytes + self.value_bytes
    }
}

/// For an added name with the cookie of a removed one: 1, or 2 if both names are the same. Else 0.
fn replaced_names(batch: &[Change<'_>], change: &Change<'_>) -> u64 {
    let Change::Enter {
        dir, name, cookie, ..
    } = *change
    else {
        return 0;
    };
    let mut goes = batch.iter().filter_map(|other| match *other {
        Change::Leave {
            dir: of,
            name,
            cookie: at,
        } if (of, at) == (dir, cookie) => Some(name),
        _ => None,
    });
    goes.next().map_or(0, |gone| 1 + u64::from(gone == name))
}

/// The file and the range of a change that moves no bytes outside of this range.
fn stretch_of(change: &Change<'_>) -> Option<(Ino, u64, u64)> {
    match *change {
        Change::Write { ino, offset, data } => Some((ino, offset, data.len() as u64)),
        Change::Zero {
            ino, offset, len, ..
        }
        | Change::Allocate { ino, offset, len } => Some((ino, offset, len)),
        _ => None,
    }
}
