//! Events and their kinds.

use bitflags::bitflags;
use holdfast_types::Ino;

bitflags! {
    /// Kinds of events, with the numbers of inotify(7).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct EventMask: u32 {
        /// Content was read.
        const ACCESS = 0x1;
        /// Content was written or cut.
        const MODIFY = 0x2;
        /// Attributes changed: mode, owner, times, links, extended attributes.
        const ATTRIB = 0x4;
        /// A file open for writing was closed.
        const CLOSE_WRITE = 0x8;
        /// A file not open for writing was closed.
        const CLOSE_NOWRITE = 0x10;
        /// A file was opened.
        const OPEN = 0x20;
        /// A name was moved from this directory; the event with its new name has the same cookie.
        const MOVED_FROM = 0x40;
        /// A name was moved to this directory.
        const MOVED_TO = 0x80;
        /// A name was created in this directory.
        const CREATE = 0x100;
        /// A name was removed from this directory.
        const DELETE = 0x200;
        /// The watched inode was freed.
        const DELETE_SELF = 0x400;
        /// The watched inode was renamed.
        const MOVE_SELF = 0x800;
        /// In events only: the file system was unmounted.
        const UNMOUNT = 0x2000;
        /// In events only: the queue was full and events are missing.
        const Q_OVERFLOW = 0x4000;
        /// In events only: the watch has ended; no event follows.
        const IGNORED = 0x8000;
        /// In events only: the subject is a directory.
        const ISDIR = 0x4000_0000;
    }
}

impl EventMask {
    /// Every kind that a watch can ask for.
    pub const ALL_EVENTS: Self = Self::from_bits_truncate(0xfff);
    /// Both kinds of closing.
    pub const CLOSE: Self = Self::CLOSE_WRITE.union(Self::CLOSE_NOWRITE);
    /// Both ends of a rename.
    pub const MOVE: Self = Self::MOVED_FROM.union(Self::MOVED_TO);
}

/// An event of a watched inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The watched inode.
    pub ino: Ino,
    /// The kind.
    pub mask: EventMask,
    /// Joins the two events of a rename; 0 for others.
    pub cookie: u32,
    /// The name in the watched directory; none if the event is about the inode itself.
    pub name: Option<Box<[u8]>>,
}
