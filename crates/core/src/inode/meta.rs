//! The attributes of an inode, read without a lock.
//!
//! They are protected by a sequence lock: writers take a one-byte lock, readers write nothing and
//! retry if `seq` changed. All words are atomics, so a torn read is discarded and never undefined
//! behaviour.
//!
//! *Invariants.* `seq` is odd exactly while the words are being stored. The type of an inode never
//! changes.

use parking_lot::{Mutex, MutexGuard};
use std::hint::spin_loop;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU32, AtomicU64, fence};

use crate::types::{FileFlags, FileType, Ino, Time};

/// Read attempts before a reader takes the writers' lock.
const SPINS: u32 = 64;

const LINKABLE: u32 = 1 << 16;
/// The access time is later than the times of modification and change.
const READ: u32 = 1 << 17;
/// Where the file flags begin, one bit each.
const FLAGS_SHIFT: u32 = 18;
const KIND_SHIFT: u32 = 24;

/// The file flags in the order of their bits.
const FLAGS: [FileFlags; 5] = [
    FileFlags::IMMUTABLE,
    FileFlags::APPEND,
    FileFlags::NODUMP,
    FileFlags::NOATIME,
    FileFlags::PROJECT_INHERIT,
];

/// The bits of *immutable* and *append*.
const PROTECTING: u32 = 0b11 << FLAGS_SHIFT;
const IS_NOATIME: u32 = 1 << (FLAGS_SHIFT + 3);

/// The mutable attributes of an inode, as of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    /// Permission, set-id and sticky bits.
    pub(crate) perm: u16,
    /// May an orphan still get a name (`O_TMPFILE` without `O_EXCL`)?
    pub(crate) linkable: bool,
    /// Number of names.
    pub(crate) nlink: u32,
    /// Owner.
    pub(crate) uid: u32,
    /// Group.
    pub(crate) gid: u32,
    /// Bytes; changed only with the page lock held in addition, so that either lock keeps it
    /// constant.
    pub(crate) size: u64,
    /// Last access.
    pub(crate) atime: Time,
    /// Last change of content.
    pub(crate) mtime: Time,
    /// Last change of the inode.
    pub(crate) ctime: Time,
    /// Creation.
    pub(crate) btime: Time,
    /// File flags.
    pub(crate) flags: FileFlags,
    /// Directory and cookie of the latest name, for the directory's watchers.
    pub(crate) home: (Ino, u64),
}

impl Meta {
    /// Attributes of a new inode.
    ///
    /// Inlined, and best not changed afterwards: fields that were stored one by one and are then
    /// copied in pairs cause store-forwarding stalls.
    #[inline(always)]
    pub(crate) fn new(perm: u16, uid: u32, gid: u32, now: Time) -> Self {
        Self {
            perm,
            linkable: false,
            nlink: 1,
            uid,
            gid,
            size: 0,
            atime: now,
            mtime: now,
            ctime: now,
            btime: now,
            flags: FileFlags::empty(),
            home: (Ino(0), 0),
        }
    }

    /// Permission bits, LINKABLE, READ and file flags, as packed in [`HotAttrs`].
    #[inline]
    fn mode(&self) -> u32 {
        let linkable = if self.linkable { LINKABLE } else { 0 };
        let changed = self.mtime.max(self.ctime);
        let read = if self.atime > changed { READ } else { 0 };
        linkable | read | packed(self.flags) | u32::from(self.perm & 0o7777)
    }

    /// Sets mtime and ctime for a change of content.
    pub(crate) fn modified(&mut self, now: Time) {
        self.mtime = now;
        self.ctime = now;
    }
}

/// File flags as bits of the mode word.
#[inline]
fn packed(flags: FileFlags) -> u32 {
    if flags.is_empty() {
        return 0;
    }
    let bits = FLAGS.into_iter().zip(FLAGS_SHIFT..);
    bits.fold(0, |mode, (flag, bit)| {
        mode | u32::from(flags.contains(flag)) << bit
    })
}

/// The file flags in a mode word.
#[inline]
fn unpacked(mode: u32) -> FileFlags {
    if mode & (0b1_1111 << FLAGS_SHIFT) == 0 {
        return FileFlags::empty();
    }
    let bits = FLAGS.into_iter().zip(FLAGS_SHIFT..);
    bits.filter(|(_, bit)| mode >> bit & 1 != 0)
        .map(|(flag, _)| flag)
        .collect()
}

/// The part of an inode's [`Meta`] that a change of content does not write. It shares a cache line
/// with fields that readers of the content need; a write there disturbs them.
#[repr(C)]
pub(super) struct HotAttrs {
    atime: AtomicI64,
    /// Permission bits, LINKABLE, READ, file flags, type.
    mode: AtomicU32,
    uid: AtomicU32,
    gid: AtomicU32,
    file_system: u16,
    /// [Flags](super::marks) of the inode, kept in this struct's padding.
    pub(super) marks: AtomicU8,
    /// Reference bits: see [`super::aging`].
    pub(super) aging: AtomicU8,
}

/// The part that a writer changes, on the cache line of its locks.
#[repr(C)]
pub(super) struct ColdAttrs {
    seq: AtomicU32,
    nlink: AtomicU32,
    size: AtomicU64,
    mtime: AtomicI64,
    ctime: AtomicI64,
    btime: AtomicI64,
    home: AtomicU64,
    home_cookie: AtomicU64,
}

const _: () = assert!(
    size_of::<HotAttrs>() == 24 && size_of::<ColdAttrs>() == 56,
    "an inode grew"
);

impl HotAttrs {
    #[inline(always)]
    pub(super) fn new(file_system: u16, kind: FileType, meta: &Meta, marks: u8) -> Self {
        Self {
            atime: AtomicI64::new(meta.atime.0),
            mode: AtomicU32::new((kind as u32) << KIND_SHIFT | meta.mode()),
            uid: AtomicU32::new(meta.uid),
            gid: AtomicU32::new(meta.gid),
            file_system,
            marks: AtomicU8::new(marks),
            aging: AtomicU8::new(0),
        }
    }

    /// The number of the file system.
    pub(super) fn file_system(&self) -> u16 {
        self.file_system
    }

    /// The type.
    #[inline]
    pub(super) fn kind_bits(&self) -> u8 {
        (self.mode.load(Relaxed) >> KIND_SHIFT) as u8
    }

    /// Owner and group, each loaded by itself.
    #[inline]
    pub(super) fn owner(&self) -> (u32, u32) {
        (self.uid.load(Relaxed), self.gid.load(Relaxed))
    }

    /// Is the access time later than mtime and ctime? A reader then skips the cache line of those,
    /// and the clock.
    #[inline]
    pub(super) fn is_read(&self) -> bool {
        self.mode.load(Relaxed) & READ != 0
    }

    /// The flags *immutable* and *append*, as far as they are set.
    #[inline]
    pub(super) fn protection(&self) -> FileFlags {
        match self.mode.load(Relaxed) & PROTECTING {
            0 => FileFlags::empty(),
            mode => unpacked(mode),
        }
    }

    /// Is the flag *noatime* set?
    #[inline]
    pub(super) fn is_noatime(&self) -> bool {
        self.mode.load(Relaxed) & IS_NOATIME != 0
    }

    /// The access time.
    #[inline]
    pub(super) fn atime(&self) -> Time {
        Time(self.atime.load(Relaxed))
    }
}

impl ColdAttrs {
    #[inline(always)]
    pub(super) fn new(meta: &Meta) -> Self {
        Self {
            seq: AtomicU32::new(0),
            nlink: AtomicU32::new(meta.nlink),
            size: AtomicU64::new(meta.size),
            mtime: AtomicI64::new(meta.mtime.0),
            ctime: AtomicI64::new(meta.ctime.0),
            btime: AtomicI64::new(meta.btime.0),
            home: AtomicU64::new(meta.home.0.0),
            home_cookie: AtomicU64::new(meta.home.1),
        }
    }

    /// The size.
    #[inline]
    pub(super) fn size(&self) -> u64 {
        self.size.load(Acquire)
    }

    /// mtime and ctime, each loaded by itself.
    #[inline]
    pub(super) fn changes(&self) -> (Time, Time) {
        (
            Time(self.mtime.load(Relaxed)),
            Time(self.ctime.load(Relaxed)),
        )
    }

    /// The link count.
    #[inline]
    pub(super) fn nlink(&self) -> u32 {
        self.nlink.load(Acquire)
    }

    /// Is a name of the inode known?
    #[inline]
    pub(super) fn has_home(&self) -> bool {
        self.home_cookie.load(Relaxed) != 0
    }
}

/// The words of an inode's [`Meta`]: both parts, and the lock of their writers.
#[derive(Clone, Copy)]
pub(super) struct MetaCell<'i> {
    pub(super) front: &'i HotAttrs,
    pub(super) back: &'i ColdAttrs,
    pub(super) lock: &'i Mutex<()>,
}

impl<'i> MetaCell<'i> {
    /// All attributes as of one moment, and the result of `look` in that moment.
    #[inline]
    pub(super) fn read<R>(self, look: impl Fn() -> R) -> (Meta, R) {
        self.consistent(|| (self.load(), look()))
    }

    /// Permission bits, owner and group as of one moment, and the result of `look` in that moment.
    #[inline]
    pub(super) fn read_permissions<R>(self, look: impl Fn() -> R) -> ((u16, u32, u32), R) {
        self.consistent(|| {
            let perm = (self.front.mode.load(Relaxed) & 0o7777) as u16;
            let (uid, gid) = self.front.owner();
            ((perm, uid, gid), look())
        })
    }

    /// Calls `look` until no change came between.
    #[inline]
    fn consistent<R>(self, look: impl Fn() -> R) -> R {
        for _ in 0..SPINS {
            let before = self.back.seq.load(Acquire);
            if before & 1 == 0 {
                let seen = look();
                // Orders the loads in `look` before the second load of `seq`.
                fence(Acquire);
                if self.back.seq.load(Relaxed) == before {
                    return seen;
                }
            }
            spin_loop();
        }
        // A writer was preempted in a change, or changes follow each other: exclude them.
        let _lock = self.lock.lock();
        look()
    }

    /// Locks the attributes against other writers.
    pub(super) fn lock(self) -> MutexGuard<'i, ()> {
        self.lock.lock()
    }

    /// Stores `meta` and calls `more` in the same moment for readers. The caller holds the lock.
    pub(super) fn publish(self, meta: &Meta, more: impl FnOnce()) {
        let seq = self.back.seq.load(Relaxed);
        self.back.seq.store(seq.wrapping_add(1), Relaxed);
        // Orders the odd number before the stores of the words.
        fence(Release);
        self.store(meta);
        more();
        self.back.seq.store(seq.wrapping_add(2), Release);
    }

    #[inline]
    pub(super) fn load(self) -> Meta {
        let mode = self.front.mode.load(Relaxed);
        Meta {
            perm: (mode & 0o7777) as u16,
            linkable: mode & LINKABLE != 0,
            nlink: self.back.nlink.load(Relaxed),
            uid: self.front.uid.load(Relaxed),
            gid: self.front.gid.load(Relaxed),
            size: self.back.size.load(Relaxed),
            atime: Time(self.front.atime.load(Relaxed)),
            mtime: Time(self.back.mtime.load(Relaxed)),
            ctime: Time(self.back.ctime.load(Relaxed)),
            btime: Time(self.back.btime.load(Relaxed)),
            flags: unpacked(mode),
            home: (
                Ino(self.back.home.load(Relaxed)),
                self.back.home_cookie.load(Relaxed),
            ),
        }
    }

    fn store(self, meta: &Meta) {
        let kind = self.front.mode.load(Relaxed) & (0xff << KIND_SHIFT);
        let mode = kind | meta.mode();
        // Only changed words: a change of content leaves this cache line shared.
        let front = self.front;
        for (place, word) in [
            (&front.mode, mode),
            (&front.uid, meta.uid),
            (&front.gid, meta.gid),
        ] {
            if place.load(Relaxed) != word {
                place.store(word, Relaxed);
            }
        }
        if front.atime() != meta.atime {
            front.atime.store(meta.atime.0, Relaxed);
        }
        let back = self.back;
        back.nlink.store(meta.nlink, Release);
        // Release: a reader of a greater size sees the bytes written before.
        back.size.store(meta.size, Release);
        back.mtime.store(meta.mtime.0, Relaxed);
        back.ctime.store(meta.ctime.0, Relaxed);
        back.btime.store(meta.btime.0, Relaxed);
        back.home.store(meta.home.0.0, Relaxed);
        back.home_cookie.store(meta.home.1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    fn all(value: u32) -> Meta {
        let time = Time(i64::from(value));
        let mut meta = Meta::new((value & 0o7777) as u16, value, value, time);
        meta.nlink = value;
        meta.size = u64::from(value);
        meta.home = (Ino(u64::from(value)), u64::from(value));
        meta.flags = unpacked(value << FLAGS_SHIFT);
        meta
    }

    #[test]
    fn a_reader_never_sees_half_a_change() {
        let front = HotAttrs::new(1, FileType::Regular, &all(0), 0);
        let back = ColdAttrs::new(&all(0));
        let lock = Mutex::new(());
        let cell = MetaCell {
            front: &front,
            back: &back,
            lock: &lock,
        };
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(Relaxed) {
                        let (meta, size) = cell.read(|| cell.back.size());
                        assert_eq!(meta, all(meta.uid));
                        assert_eq!(size, meta.size);
                    }
                });
            }
            for round in 1..50_000 {
                let _lock = cell.lock();
                cell.publish(&all(round), || {});
            }
            done.store(true, Relaxed);
        });
    }

    #[test]
    fn the_type_outlives_changes() {
        let front = HotAttrs::new(1, FileType::Socket, &all(1), 0);
        let back = ColdAttrs::new(&all(1));
        let cell = MetaCell {
            front: &front,
            back: &back,
            lock: &Mutex::new(()),
        };
        let _lock = cell.lock();
        cell.publish(&all(0o7777), || {});
        assert_eq!(front.kind_bits(), FileType::Socket as u8);
        assert_eq!(cell.load().perm, 0o7777);
    }
}
