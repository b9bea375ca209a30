//! The thread that passes on what the host tells.

use holdfast_core::store::Changes;
use holdfast_core::types::Ino;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, ReadFlags};
use rustix::io::Errno;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use super::Told;
use crate::host::Host;

/// What it needs: little more than the buffer that events are read into.
const STACK: usize = 256 << 10;

/// From now on changes are passed on to this.
pub(crate) fn start(host: &Arc<Host>, above: Weak<dyn Changes>) {
    let Some(told) = &host.told else { return };
    if told.above.set(above).is_err() {
        return;
    }
    // What is asked for without a thread is not heard of.
    let own = Arc::clone(host);
    let thread = std::thread::Builder::new().name("holdfast-told".into());
    let started = thread.stack_size(STACK).spawn(move || {
        if let Some(told) = &own.told {
            told.run(&own);
        }
    });
    told.hears.store(started.is_ok(), Ordering::Relaxed);
}

impl Told {
    /// Nothing is passed on any more.
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
            // Among what was missed may be that some of them ended.
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
            // It may have ended by itself.
            let _ = inotify::remove_watch(&self.inotify, watch);
        }
    }

    fn with_above(&self, tell: impl FnOnce(&dyn Changes)) {
        if let Some(above) = self.above.get().and_then(Weak::upgrade) {
            tell(&*above);
        }
    }
}

/// Tells of what happened to a name of a directory, or to the directory.
fn tell(host: &Host, above: &dyn Changes, (dir, name): (Ino, &[u8]), what: ReadFlags) {
    if name.is_empty() {
        above.inode(dir, false);
        return;
    }
    let names = ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
    if what.intersects(names) {
        above.entry(dir, name);
    }
    if (ReadFlags::DELETE | ReadFlags::MOVED_FROM).contains(what) {
        return;
    }
    // The one that it led to may be elsewhere by now: then that is told as well.
    let found = host.in_directory(dir, |open| host.find(open, name));
    if let Ok(Some(found)) = found {
        let content = ReadFlags::MODIFY | ReadFlags::CLOSE_WRITE;
        above.inode(found.ino, what.intersects(content));
    }
}
