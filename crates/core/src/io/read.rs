use holdfast_cache::{Contended, Pages, PagesLock};
use holdfast_sync::epoch;
use std::io::IoSliceMut;
use std::ops::Range;

use super::populate::{BYTES_MAX, Leading};
use crate::FileSystem;
use crate::attributes::atime::{has_settled_access_time, note_access};
use crate::core::Core;
use crate::events::notify_event;
use crate::inode::{Inode, Numbered as _, WHOLE};
use crate::io::checks::check_range;
use crate::io::pages::{PAGE, TRIES};
use crate::io::populate::{lock_with, map_missing, missing_to_read};
use crate::io::unmapped::ask_unlocked;
use crate::open_file::OpenFile;
use crate::reclaim::content::{cached_pages, shrink_content_since};
use crate::shared::no_size::read_without_size;
use crate::shared::refresh_inode;
use crate::types::{Errno, OpenFlags, Result};
use crate::watch::EventMask;

impl FileSystem {
    /// Reads at `offset`; returns the number of bytes, less than requested only at the file's end.
    ///
    /// # Errors
    /// `EBADF` if not open for reading, `EISDIR`, `EINVAL` for an offset beyond 2^63 - 1; `EIO` or
    /// `EUCLEAN` when the store cannot read it.
    #[inline]
    pub fn read(&self, file: &OpenFile, offset: u64, buf: &mut [u8]) -> Result<usize> {
        read_file(&self.core, file, offset, buf)
    }

    /// Like [`read`](FileSystem::read), for a caller that caches the content itself, or reads it
    /// once: a small file without pages in memory is read from the store, and is not cached.
    ///
    /// # Errors
    /// Those of [`FileSystem::read`].
    pub fn read_once(&self, file: &OpenFile, offset: u64, buf: &mut [u8]) -> Result<usize> {
        if let Some(done) = read_without_size(&self.core, file, offset, buf)? {
            return Ok(done);
        }
        match read_from_store(&self.core, file, offset, buf)? {
            Some(done) => Ok(done),
            None => self.read(file, offset, buf),
        }
    }

    /// Reads at `offset` into several buffers in turn, all from one state of the file.
    ///
    /// # Errors
    /// Those of [`FileSystem::read`].
    pub fn read_vectored(
        &self,
        file: &OpenFile,
        offset: u64,
        bufs: &mut [IoSliceMut<'_>],
    ) -> Result<usize> {
        let asked = bufs
            .iter()
            .fold(0_usize, |sum, buf| sum.saturating_add(buf.len()));
        let core = &self.core;
        if let Some(first) = bufs.first_mut()
            && let Some(done) = read_without_size(core, file, offset, first)?
        {
            // Less than requested, and not at the end: its size does not say where that is.
            return Ok(done);
        }
        let (inode, pages) = readable_at(core, file, offset, asked)?;
        refresh_inode(core, inode)?;
        let (size, whole) = (|| inode.size(), || inode.is_complete());
        let unlocked = pages.read_vectored_under(&epoch::pin(), offset, bufs, size, whole);
        let done = match unlocked {
            Ok(done) => {
                use_pages(core, pages, offset, done);
                done
            }
            Err(Contended) => {
                let mut bufs: Vec<_> = bufs.iter_mut().map(|buf| &mut **buf).collect();
                read_locked(core, inode, pages, offset, asked, &mut bufs)?
            }
        };
        has_read(core, file, inode);
        Ok(done)
    }
}

/// Reads, first without the lock.
pub(crate) fn read_file(
    core: &Core,
    file: &OpenFile,
    offset: u64,
    buf: &mut [u8],
) -> Result<usize> {
    if let Some(done) = read_without_size(core, file, offset, buf)? {
        return Ok(done);
    }
    refresh_inode(core, file.node().inode())?;
    let (inode, pages) = readable_at(core, file, offset, buf.len())?;
    if pages.read_inside(offset, buf) {
        has_read(core, file, inode);
        return Ok(buf.len());
    }
    let whole = || inode.is_complete();
    let done = match pages.read_with(offset, buf, || inode.size(), whole) {
        Ok(done) => {
            use_pages(core, pages, offset, done);
            done
        }
        Err(Contended) => read_locked(core, inode, pages, offset, buf.len(), &mut [buf])?,
    };
    has_read(core, file, inode);
    Ok(done)
}

/// Marks the pages of this range as referenced.
fn use_pages(core: &Core, pages: &Pages, offset: u64, len: usize) {
    let epochs = &core.reclaim.epochs;
    if pages.touch(offset..offset + len as u64, epochs.epoch()) {
        epochs.look_at_the_clock();
    }
}

/// The checked inode and content of a read.
#[inline]
fn readable_at<'f>(
    core: &Core,
    file: &'f OpenFile,
    offset: u64,
    len: usize,
) -> Result<(&'f Inode, &'f Pages)> {
    core.alive()?;
    if !file.flags().readable() {
        return Err(Errno::EBADF);
    }
    check_range(offset, len)?;
    let inode = file.node().inode();
    let pages = inode.regular()?;
    Ok((inode, pages))
}

/// Reads a small file without pages in memory, uncached. `None`: the file is not like that.
///
/// A large file is loaded with read-ahead, so that few requests to the store read it.
fn read_from_store(
    core: &Core,
    file: &OpenFile,
    offset: u64,
    buf: &mut [u8],
) -> Result<Option<usize>> {
    let (inode, pages) = readable_at(core, file, offset, buf.len())?;
    refresh_inode(core, inode)?;
    let wanted = || !inode.is_mapped() && inode.size() <= WHOLE;
    if !wanted() {
        return Ok(None);
    }
    let read = || {
        let len = inode.size().saturating_sub(offset).min(buf.len() as u64) as usize;
        if len > 0 {
            core.store.read_data(inode.ino(), offset, &mut buf[..len])?;
        }
        Ok(len)
    };
    let Some((lock, read)) = ask_unlocked(core, inode, pages, wanted, read) else {
        return Ok(None);
    };
    drop(lock);
    let len = read?;
    has_read(core, file, inode);
    Ok(Some(len))
}

/// Reads into several buffers in turn, `asked` bytes in all, from one state of the file. Absent
/// pages are loaded, or read uncached if there are many.
#[cold]
fn read_locked(
    core: &Core,
    inode: &Inode,
    body: &Pages,
    offset: u64,
    asked: usize,
    bufs: &mut [&mut [u8]],
) -> Result<usize> {
    let held = cached_pages(core);
    let comes = asked as u64 <= BYTES_MAX.max(core.reclaim.limit() / 8);
    let mut tries = 0;
    let done = loop {
        let mut pages = lock_with(core, inode, body, |pages| {
            let bytes = offset..offset + asked as u64;
            Ok(match comes {
                true => missing_to_read(inode, pages, bytes),
                false => map_missing(inode),
            })
        })?;
        let (done, gaps) = read_present(&pages, inode.size(), offset, bufs);
        if gaps.is_empty() {
            break done;
        }
        if tries == TRIES {
            // Others change the file all the time.
            read_gaps(core, inode, &gaps, bufs)?;
            break done;
        }
        tries += 1;
        let flight = Leading(pages.watch(gaps.iter().map(Gap::pages)));
        drop(pages);
        let filled = read_gaps(core, inode, &gaps, bufs);
        body.lock().land(&flight.0);
        if !flight.0.is_cut() {
            filled?;
            break done;
        }
        core.alive()?;
    };
    use_pages(core, body, offset, done);
    shrink_content_since(core, held);
    Ok(done)
}

/// Reads the absent parts.
fn read_gaps(core: &Core, inode: &Inode, gaps: &[Gap], bufs: &mut [&mut [u8]]) -> Result<()> {
    gaps.iter().try_for_each(|gap| {
        let buf = &mut bufs[gap.buf][gap.within.clone()];
        core.store.read_data(inode.ino(), gap.offset, buf)
    })
}

/// Notifies watches of a read and updates the access time. Only this check is inlined: usually
/// neither is needed.
#[inline(always)]
fn has_read(core: &Core, file: &OpenFile, inode: &Inode) {
    if core.watches.is_used() || !has_settled_access_time(core, inode) {
        tell_of_read(core, file, inode);
    }
}

#[inline(never)]
fn tell_of_read(core: &Core, file: &OpenFile, inode: &Inode) {
    if !file.flags().contains(OpenFlags::NOATIME) {
        note_access(core, inode);
    }
    notify_event(core, inode, EventMask::ACCESS);
}

/// A part of a buffer for bytes that are not in memory.
struct Gap {
    /// The index of the buffer.
    buf: usize,
    within: Range<usize>,
    /// The offset of the bytes in the file.
    offset: u64,
}

impl Gap {
    fn pages(&self) -> Range<u64> {
        let end = self.offset + self.within.len() as u64;
        self.offset / PAGE..end.div_ceil(PAGE)
    }
}

/// Reads what is in memory into several buffers in turn; returns the length of the whole read, and
/// the absent parts.
fn read_present(
    pages: &PagesLock<'_>,
    size: u64,
    offset: u64,
    bufs: &mut [&mut [u8]],
) -> (usize, Vec<Gap>) {
    let (mut at, mut gaps) = (offset, Vec::new());
    for (number, buf) in bufs.iter_mut().enumerate() {
        let len = size.saturating_sub(at).min(buf.len() as u64);
        let (first, end) = (at, at + len);
        while at < end {
            let unloaded = pages.next_unloaded(at / PAGE..end.div_ceil(PAGE));
            let start = unloaded
                .as_ref()
                .map_or(end, |run| at.max(run.start * PAGE));
            let until = unloaded.map_or(end, |run| end.min(run.end * PAGE));
            let _ = pages.read(
                at,
                &mut buf[(at - first) as usize..(start - first) as usize],
                size,
            );
            if start < until {
                gaps.push(Gap {
                    buf: number,
                    within: (start - first) as usize..(until - first) as usize,
                    offset: start,
                });
            }
            at = until;
        }
        if len < buf.len() as u64 {
            break;
        }
    }
    ((at - offset) as usize, gaps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryLimits;
    use crate::clock;
    use crate::io::pages::loaded_account;
    use crate::options::{AtimePolicy, Options};
    use crate::types::Caller;
    use crate::watch::Event;
    use std::thread;
    use std::time::Duration;

    const PAGE: usize = 4096;

    /// The path of a read.
    #[derive(Clone, Copy, Debug)]
    enum How {
        Fast,
        /// With pages being changed: under the lock.
        Slow,
    }

    /// Waits until all times that were given are past: a fine-grained one may be ahead of the clock
    /// by more than a tick.
    fn later() {
        let before = clock::change();
        while clock::now() <= before {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Runs `read` on one of the paths.
    fn done<R: Send>(how: How, file: &OpenFile, core: &Core, read: impl FnOnce() -> R + Send) -> R {
        let How::Slow = how else {
            return read();
        };
        let mut pages = file.node().inode().regular().unwrap().lock();
        // It changes nothing, but is a change that readers must not see half done.
        pages.punch(1 << 30, PAGE as u64, loaded_account(core));
        thread::scope(|scope| {
            let reader = scope.spawn(read);
            thread::sleep(Duration::from_millis(10));
            assert!(!reader.is_finished(), "it read without the lock");
            drop(pages);
            reader.join().unwrap()
        })
    }

    /// The result of each of several reads: the bytes, whether the access time moved, the events.
    fn story(how: How, policy: AtimePolicy) -> Vec<(Vec<u8>, bool, Vec<EventMask>)> {
        let options = Options {
            atime: policy,
            ..Options::default()
        };
        let fs = FileSystem::memory(MemoryLimits::default(), options);
        let (who, root) = (Caller::root(), fs.root());
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let file = fs.create(&who, &root, b"f", 0o644, flags).unwrap();
        let quiet = fs
            .open(&who, file.node(), OpenFlags::NOATIME)
            .expect("the owner's");
        let watch = fs.watch(file.node(), EventMask::ALL_EVENTS).unwrap();
        let whole = fs.watch(&root, EventMask::ACCESS).unwrap();
        let data: Vec<u8> = (0..3 * PAGE + 100).map(|at| at as u8).collect();
        let mut stories = Vec::new();
        let reads = [(0, 10), (PAGE - 5, 10), (100, 2 * PAGE), (3 * PAGE, 500)];
        for write in [true, false] {
            if write {
                fs.write(&who, &file, 0, &data).unwrap();
            }
            for (offset, len) in reads.into_iter().chain([(data.len(), 10), (1 << 20, 1)]) {
                for (file, vectored) in [(&file, false), (&file, true), (&quiet, false)] {
                    while watch.try_next().is_some() || whole.try_next().is_some() {}
                    later();
                    let before = fs.getattr(file.node()).atime;
                    let mut buf = vec![0; len];
                    let read = || {
                        if vectored {
                            let (head, tail) = buf.split_at_mut(len / 2);
                            let bufs = &mut [IoSliceMut::new(head), IoSliceMut::new(tail)];
                            fs.read_vectored(file, offset as u64, bufs).unwrap()
                        } else {
                            fs.read(file, offset as u64, &mut buf).unwrap()
                        }
                    };
                    let read = done(how, file, &fs.core, read);
                    buf.truncate(read);
                    let moved = fs.getattr(file.node()).atime != before;
                    let events =
                        std::iter::from_fn(|| watch.try_next().or_else(|| whole.try_next()));
                    let masks = events.map(|event: Event| event.mask).collect();
                    stories.push((buf, moved, masks));
                }
            }
        }
        stories
    }

    #[test]
    fn events_and_access_times_are_those_of_the_slow_path() {
        for policy in [
            AtimePolicy::None,
            AtimePolicy::Relatime,
            AtimePolicy::Strict,
        ] {
            let (fast, slow) = (story(How::Fast, policy), story(How::Slow, policy));
            for (place, (fast, slow)) in fast.iter().zip(&slow).enumerate() {
                assert_eq!(fast, slow, "{policy:?}, read {place}");
                // Its own watch gets it, and that of its directory.
                assert_eq!(fast.2, [EventMask::ACCESS; 2], "{policy:?}, read {place}");
            }
            let moved = fast.iter().filter(|(_, moved, _)| *moved).count();
            let expected = match policy {
                AtimePolicy::None => 0,
                // After the write, once.
                AtimePolicy::Relatime => 1,
                // All but those with `NOATIME`.
                AtimePolicy::Strict => fast.len() * 2 / 3,
            };
            assert_eq!(moved, expected, "{policy:?}");
        }
    }

    #[test]
    fn who_reads_all_the_time_is_heard_and_stopped_from_the_next_read_on() {
        let fs = FileSystem::memory(MemoryLimits::default(), Options::default());
        let (who, root) = (Caller::root(), fs.root());
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let file = fs.create(&who, &root, b"f", 0o644, flags).unwrap();
        fs.write(&who, &file, 0, &[7; 3 * PAGE]).unwrap();
        for len in [1, 16, 17, PAGE] {
            let mut buf = vec![0; len];
            // Until its pins are trusted.
            for _ in 0..1000 {
                assert_eq!(fs.read(&file, PAGE as u64, &mut buf), Ok(len));
            }
            assert!(buf.iter().all(|byte| *byte == 7));
        }
        let watch = fs.watch(file.node(), EventMask::ACCESS).unwrap();
        assert_eq!(fs.read(&file, 0, &mut [0]), Ok(1));
        assert_eq!(
            watch.try_next().map(|event| event.mask),
            Some(EventMask::ACCESS)
        );
        drop(watch);
        fs.revoke().unwrap();
        assert_eq!(fs.read(&file, 0, &mut [0]), Err(Errno::EIO));
    }
}
