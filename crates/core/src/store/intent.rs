//! What an operation may need of its store, at most, told before it changes anything.

use super::Change;
use crate::types::Ino;

const PAGE: u64 = 4096;
/// Bytes that a name or a value takes beside its own.
const ITEM: u64 = 64;

/// What a name, a value or a target of this length takes of a store that counts such things.
#[must_use]
pub fn kept_bytes(len: usize) -> u64 {
    ITEM + len as u64
}

/// How much of a store an operation may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// It adds something, and is refused where only the reserve is left.
    #[default]
    Growing,
    /// It changes what is there, and adds next to nothing: it may draw on half of the reserve.
    Changing,
    /// It changes bytes that all have space: it may draw on half of the reserve, and is refused only if
    /// less than that is left, not because of what others may need at the same time.
    InPlace,
    /// It gives back, or must not fail: it may draw on all of the reserve, and is never refused for want of
    /// space.
    GivingBack,
}

/// What an operation may need of its store, at most, in the core's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Intent {
    /// The caller that the operation is for.
    pub class: Class,
    /// Pages of content that have no space yet.
    pub pages: u64,
    /// Pages that have space in memory and none in the store: the first of a file that does not stay
    /// [small](super::Guarantees::small).
    pub moved: u64,
    /// Pages that are written or allocated, with space or without.
    pub written: u64,
    /// Pages that have a place already, of which another is to be known: written over, zeroed, moved.
    pub touched: u64,
    /// Bytes written to the first page of a file.
    pub small_bytes: u64,
    /// Stretches of files that are written, cut, zeroed, allocated, removed or inserted.
    pub ranges: u64,
    /// Further stretches that follow one of those in its file without a gap.
    pub pieces: u64,
    /// Pages that are allocated at once, without being written.
    pub allocated: u64,
    /// New inodes.
    pub inodes: u64,
    /// Inodes whose attributes change.
    pub records: u64,
    /// Inodes that end, or lose a name, perhaps their last.
    pub ended: u64,
    /// Names that come.
    pub names: u64,
    /// Their bytes.
    pub name_bytes: u64,
    /// Names that go.
    pub left: u64,
    /// Their bytes.
    pub left_bytes: u64,
    /// Of names that come to a place where one goes: one for each, two if it is the same name.
    pub again: u64,
    /// Extended attributes that get a value or go, and targets of symbolic links.
    pub values: u64,
    /// The bytes of values and targets, and of the names of attributes.
    pub value_bytes: u64,
}

impl Intent {
    /// Of an operation that gives back.
    #[must_use]
    pub const fn giving_back() -> Self {
        Self::of_class(Class::GivingBack)
    }

    /// Of an operation that changes what is there.
    #[must_use]
    pub const fn changing() -> Self {
        Self::of_class(Class::Changing)
    }

    const fn of_class(class: Class) -> Self {
        Self {
            class,
            pages: 0,
            moved: 0,
            written: 0,
            touched: 0,
            small_bytes: 0,
            ranges: 0,
            pieces: 0,
            allocated: 0,
            inodes: 0,
            records: 0,
            ended: 0,
            names: 0,
            name_bytes: 0,
            left: 0,
            left_bytes: 0,
            again: 0,
            values: 0,
            value_bytes: 0,
        }
    }

    /// A name that comes, too.
    #[must_use]
    pub const fn name(mut self, name: &[u8]) -> Self {
        self.names += 1;
        self.name_bytes += name.len() as u64;
        self
    }

    /// A name that goes, too.
    #[must_use]
    pub const fn leaving(mut self, name: &[u8]) -> Self {
        self.left += 1;
        self.left_bytes += name.len() as u64;
        self
    }

    /// A value or a target of so many bytes, its name's included, too.
    #[must_use]
    pub const fn value(mut self, len: usize) -> Self {
        self.values += 1;
        self.value_bytes += len as u64;
        self
    }

    /// So many inodes whose attributes change, too.
    #[must_use]
    pub const fn records(mut self, records: u64) -> Self {
        self.records += records;
        self
    }

    /// What these changes need, besides space for pages that have some already: which of them do, only the
    /// caller can know.
    #[must_use]
    pub fn of(batch: &[Change<'_>]) -> Self {
        let mut end = None;
        batch.iter().fold(Self::default(), |intent, change| {
            let stretch = stretch_of(change);
            let follows = stretch.is_some_and(|(ino, start, _)| end == Some((ino, start)));
            let mut more = intent.and(change);
            more.again += places_again(batch, change);
            if follows {
                more.ranges -= 1;
                more.pieces += 1;
            }
            end = stretch.map(|(ino, start, len)| (ino, start.saturating_add(len)));
            more
        })
    }

    /// One more change.
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

    /// Bytes written to a file of this size, too.
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

    /// What names, values and targets take of a store that [counts](kept_bytes) them.
    #[must_use]
    pub const fn kept(&self) -> u64 {
        ITEM * (self.names + self.values) + self.name_bytes + self.value_bytes
    }
}

/// Of a name that comes: does it come to a place where one goes, and is that the same name?
fn places_again(batch: &[Change<'_>], change: &Change<'_>) -> u64 {
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

/// The file and the bytes of it that a change is about, if what is beside them stays where it is.
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
