//! Reading events, and the queue of events to be passed on.

use holdfast_core::types::Ino;
use rustix::fs::inotify::{ReadFlags, Reader};
use rustix::io::Errno;
use std::collections::HashMap;
use std::mem::{MaybeUninit, take};

use super::Watcher;
use super::own::Owned;

/// Buffer for some hundred events.
const BUFFER: usize = 16 << 10;
/// Length of the kernel's queue, if it cannot be read.
const EVENTS: usize = 16_384;

/// Length of the kernel's queue.
pub(super) fn most() -> usize {
    let watcher = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events");
    let most = watcher.ok().and_then(|watcher| watcher.trim().parse().ok());
    most.unwrap_or(EVENTS)
}

/// A directory and a name in it; an empty name is the directory itself.
pub(super) type Key = (Ino, Box<[u8]>);

/// Events to be passed on, merged by name.
#[derive(Default)]
pub(super) struct Queue {
    pub(super) waiting: HashMap<Key, ReadFlags>,
    /// Events were lost.
    pub(super) missed: bool,
    /// Operations under way.
    pub(super) own: Vec<Owned>,
    pub(super) last: u64,
}

impl Queue {
    fn put(&mut self, key: Key, what: ReadFlags) {
        let own = self.own.iter_mut();
        let mut causing = own.filter_map(|own| own.causes(&key, what).then_some(own));
        match causing.next() {
            Some(own) => own.caused.push((key, what)),
            None => *self.waiting.entry(key).or_insert(ReadFlags::empty()) |= what,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && !self.missed
    }

    pub(super) fn take(&mut self) -> (bool, HashMap<Key, ReadFlags>) {
        (take(&mut self.missed), take(&mut self.waiting))
    }
}

impl Watcher {
    /// Reads the available events, and perhaps some that arrive meanwhile.
    ///
    /// # Errors
    /// Those of read(2).
    pub(super) fn read(&self, queue: &mut Queue) -> Result<(), Errno> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        // One more event reports an overflow.
        for _ in 0..=self.most {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error),
            };
            let what = event.events();
            if what.intersects(ReadFlags::QUEUE_OVERFLOW | ReadFlags::UNMOUNT) {
                queue.missed = true;
            }
            let Some(dir) = self.watches.read().dir(event.wd()) else {
                continue;
            };
            if what.contains(ReadFlags::IGNORED) {
                self.watches.write().ended(event.wd());
            }
            let name = event.file_name().map_or(&[][..], |name| name.to_bytes());
            queue.put((dir, name.into()), what);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::own::{Own, OwnChange};
    use super::*;
    use rustix::fs::{CWD, Mode, OFlags, openat};
    use std::fs::{self, Permissions};
    use std::os::fd::AsFd;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    /// Watches a directory as the root, with the type of ext4.
    fn watcher(dir: &Path) -> Watcher {
        let watcher = Watcher::of(0xef53).unwrap().expect("it is of this machine");
        let open = openat(CWD, dir, OFlags::PATH, Mode::empty()).unwrap();
        watcher.watch(Ino::ROOT, open.as_fd());
        assert_eq!(watcher.watched(), 1);
        watcher
    }

    fn read(watcher: &Watcher) -> (bool, HashMap<Key, ReadFlags>) {
        let mut queue = watcher.queue.lock();
        watcher.read(&mut queue).unwrap();
        queue.take()
    }

    #[test]
    fn what_happens_to_a_name_passes_on_together_and_what_is_missed_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let watcher = watcher(dir.path());
        let paths = ["a", "b"].map(|name| dir.path().join(name));
        paths.iter().for_each(|path| fs::write(path, b"x").unwrap());
        let (missed, events) = read(&watcher);
        let all = ReadFlags::CREATE | ReadFlags::MODIFY | ReadFlags::CLOSE_WRITE;
        assert!(!missed && events.len() == 2);
        assert_eq!(events[&(Ino::ROOT, (*b"a").into())], all);
        // More than the kernel's queue holds, and none like the one before it.
        for round in 0..watcher.most as u32 / 2 + 100 {
            let permissions = Permissions::from_mode(0o600 | (round % 8));
            for path in &paths {
                fs::set_permissions(path, permissions.clone()).unwrap();
            }
        }
        assert!(read(&watcher).0);
        assert!(read(&watcher).1.is_empty(), "said once");
    }

    fn names(watcher: &Watcher) -> Vec<Box<[u8]>> {
        let mut names: Vec<_> = read(watcher).1.into_keys().map(|(_, name)| name).collect();
        names.sort_unstable();
        names
    }

    /// An operation that causes this to `own`.
    fn causing(causes: ReadFlags) -> Vec<Own> {
        vec![Own {
            key: (Ino::ROOT, (*b"own").into()),
            causes,
        }]
    }

    #[test]
    fn an_operation_drops_its_own_and_one_that_fails_drops_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let watcher = watcher(dir.path());
        let make = |name: &str| fs::write(dir.path().join(name), b"x").unwrap();
        let making = ReadFlags::CREATE | ReadFlags::MODIFY | ReadFlags::CLOSE_WRITE;
        let own: OwnChange<'_> = watcher.begin(causing(making));
        make("own");
        make("other");
        own.finish();
        // From here on it may be another's.
        make("own");
        drop(own);
        assert_eq!(names(&watcher), [(*b"other").into(), (*b"own").into()]);
        let own = watcher.begin(causing(making));
        make("own");
        // As the thread does meanwhile.
        assert!(names(&watcher).is_empty());
        drop(own);
        assert_eq!(names(&watcher), [(*b"own").into()]);
        let own = watcher.begin(causing(ReadFlags::CLOSE_WRITE));
        make("own");
        own.finish();
        let watcher = read(&watcher).1;
        assert_eq!(
            watcher[&(Ino::ROOT, (*b"own").into())],
            ReadFlags::MODIFY,
            "only the closing is its own"
        );
    }

    #[test]
    fn an_operation_does_not_hide_what_others_do_to_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let watcher = watcher(dir.path());
        let at = |name: &str| dir.path().join(name);
        fs::write(at("own"), b"x").unwrap();
        fs::write(at("new"), b"y").unwrap();
        assert_eq!(names(&watcher).len(), 2);
        let passes_on = |what: &str| assert_eq!(names(&watcher), [(*b"own").into()], "{what}");
        let writing = ReadFlags::MODIFY | ReadFlags::ATTRIB | ReadFlags::CLOSE_WRITE;
        let own = watcher.begin(causing(writing));
        fs::write(at("own"), b"z").unwrap();
        fs::remove_file(at("own")).unwrap();
        own.finish();
        passes_on("the file that is written is removed");
        let own = watcher.begin(causing(ReadFlags::CREATE | writing));
        fs::write(at("own"), b"z").unwrap();
        fs::remove_file(at("own")).unwrap();
        fs::write(at("own"), b"by another").unwrap();
        own.finish();
        passes_on("the file that was made is replaced");
        let own = watcher.begin(causing(ReadFlags::DELETE | writing));
        fs::remove_file(at("own")).unwrap();
        fs::create_dir(at("own")).unwrap();
        own.finish();
        passes_on("the name that was removed is used again");
    }
}
