//! Events as they are read, and those that wait to be passed on.

use holdfast_core::types::Ino;
use rustix::fs::inotify::{ReadFlags, Reader};
use rustix::io::Errno;
use std::collections::HashMap;
use std::mem::{MaybeUninit, take};

use super::Told;
use super::own::Owned;

/// Bytes read at once: some hundred events.
const BUFFER: usize = 16 << 10;

/// A name of a directory; an empty one is the directory itself.
pub(super) type Key = (Ino, Box<[u8]>);

/// What waits to be passed on: of each name all that happened to it.
#[derive(Default)]
pub(super) struct Queue {
    pub(super) waiting: HashMap<Key, ReadFlags>,
    /// Changes were missed.
    pub(super) missed: bool,
    /// Operations that are under way.
    pub(super) own: Vec<Owned>,
    pub(super) last: u64,
}

impl Queue {
    fn put(&mut self, key: Key, what: ReadFlags) {
        match self.own.iter_mut().find(|own| own.causes(&key, what)) {
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

impl Told {
    /// Reads the events that there are.
    ///
    /// # Errors
    /// Those of read(2).
    pub(super) fn read(&self, queue: &mut Queue) -> Result<(), Errno> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => return Ok(()),
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
    }
}
