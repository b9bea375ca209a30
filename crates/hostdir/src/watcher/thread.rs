//! The thread that passes events on.

use holdfast_core::store::Changes;
use holdfast_core::types::Ino;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, ReadFlags};
use rustix::io::Errno;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use super::Watcher;
use super::own::NAMES;
use crate::host::Host;

/// Stack: little more than the buffer of events.
const STACK: usize = 256 << 10;

/// Starts passing changes on to `above`.
pub(crate) fn start(host: &Arc<Host>, above: Weak<dyn Changes>) {
    let Some(watcher) = &host.watcher else { return };
    if watcher.above.set(above).is_err() {
        return;
    }
    // Without the thread nothing is heard of.
    let own = Arc::clone(host);
    let thread = std::thread::Builder::new().name("holdfast-watch".into());
    let started = thread.stack_size(STACK).spawn(move || {
        if let Some(watcher) = &own.watcher {
            watcher.run(&own);
        }
    });
    watcher.hears.store(started.is_ok(), Ordering::Relaxed);
}

impl Watcher {
    /// Ends the thread.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.wake();
    }

    fn run(&self, host: &Host) {
        while !self.is_over.load(Ordering::Acquire) {
            if self.wait().is_err() || self.pass_on(host).is_err() {
                break;
            }
        }
        self.hears.store(false, Ordering::Relaxed);
        self.end_watches();
        if !self.is_over.load(Ordering::Acquire) {
            self.with_above(|above| above.all());
        }
    }

    /// Waits for events, or until it is woken.
    fn wait(&self) -> Result<(), Errno> {
        let mut waits = [
            PollFd::new(&self.inotify, PollFlags::IN),
            PollFd::new(&self.wake, PollFlags::IN),
        ];
        match poll(&mut waits, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        let mut count = [0; 8];
        match rustix::io::read(&self.wake, &mut count) {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn pass_on(&self, host: &Host) -> Result<(), Errno> {
        let (missed, events) = {
            let mut queue = self.queue.lock();
            self.read(&mut queue)?;
            queue.take()
        };
        if missed {
            // The lost events may include ends of watches.
            self.end_watches();
            self.with_above(|above| above.all());
            return Ok(());
        }
        for ((dir, name), what) in events {
            self.with_above(|above| tell(host, above, (dir, &name), what));
        }
        Ok(())
    }

    fn end_watches(&self) {
        // Locked over both, as in `watch`.
        let mut watches = self.watches.write();
        for watch in watches.take_all() {
            // The kernel may have removed it.
            let _ = inotify::remove_watch(&self.inotify, watch);
        }
    }

    fn with_above(&self, tell: impl FnOnce(&dyn Changes)) {
        if let Some(above) = self.above.get().and_then(Weak::upgrade) {
            tell(&*above);
        }
    }
}

/// Passes on the events of a name of a directory, or of the directory.
fn tell(host: &Host, above: &dyn Changes, (dir, name): (Ino, &[u8]), what: ReadFlags) {
    if name.is_empty() {
        above.inode(dir, false);
        return;
    }
    if what.intersects(NAMES) {
        above.entry(dir, name);
    }
    if (ReadFlags::DELETE | ReadFlags::MOVED_FROM).contains(what) {
        return;
    }
    // If the inode was moved meanwhile, that has an event of its own.
    let found = host.in_directory(dir, |open| host.find(open, name));
    if let Ok(Some(found)) = found {
        let content = ReadFlags::MODIFY | ReadFlags::CLOSE_WRITE;
        above.inode(found.ino, what.intersects(content));
    }
}
