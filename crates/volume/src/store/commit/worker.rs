//! The thread that writes and commits in time, and folds before the journal is full.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::timer::{Due, Promptness, Timers};
use crate::store::Inner;
use crate::{Error, Result};

/// The thread, and what it waits for.
#[derive(Debug)]
pub(in crate::store) struct Worker {
    bell: Arc<Bell>,
    thread: Mutex<Option<JoinHandle<()>>>,
    promptness: Promptness,
}

#[derive(Debug, Default)]
struct Bell {
    state: Mutex<State>,
    rung: Condvar,
    /// Was asked for pages to be written early?
    early: AtomicBool,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Is a checkpoint wanted?
    fold: bool,
    /// Or a commit, before its time? Until it is done: whoever still needs one asks again.
    commit: bool,
    /// Or that pages are written early? Until it is done.
    early: bool,
    stop: bool,
}

impl Worker {
    /// Starts it. `every`: so long after a change it commits, at most; where what was written outlives the process, it
    /// writes within a second.
    ///
    /// # Errors
    /// [`Error::Thread`]: without it nothing would be committed in time.
    pub(in crate::store) fn start(inner: &Arc<Inner>, every: Option<Duration>) -> Result<Self> {
        let bell = Arc::new(Bell::default());
        let (store, ringing) = (Arc::clone(inner), Arc::clone(&bell));
        let writes = inner.journal.can_write();
        let loops = move |store: &Inner| {
            let mut timers = Timers::new(every, writes, Instant::now());
            loop {
                let state = ringing.wait(timers.due());
                if state.stop {
                    return Ok(());
                }
                let now = Instant::now();
                let due = match state.fold || state.commit {
                    true => Some(Due::Commit),
                    false => timers.what_is_due(now, store.waiting().0 > 0),
                };
                // What fails stops the store: whoever comes next is told.
                match due {
                    None if state.early => {
                        // What cannot be written now a commit writes, or tells why not.
                        let _ = store.write_early();
                        ringing.went_early();
                    }
                    None => continue,
                    Some(Due::Write) => {
                        let _ = store.write_behind();
                        timers.wrote(now);
                    }
                    Some(Due::Commit) => {
                        let _ = if state.fold {
                            store.checkpoint()
                        } else {
                            store.make_durable(None)
                        };
                        ringing.committed();
                        timers = Timers::new(every, writes, now);
                    }
                }
                store.progress.step();
            }
        };
        let work = move || {
            // It ends by being told to, or by a panic, which stops the store: nobody would commit in time any more.
            let _ = store.whole("the work of the volume's thread", || loops(&store));
        };
        let thread = std::thread::Builder::new()
            .name("holdfast-volume".to_owned())
            .spawn(work)
            .map_err(Error::Thread)?;
        Ok(Self {
            bell,
            thread: Mutex::new(Some(thread)),
            promptness: Promptness::of(every, writes),
        })
    }

    /// When it does what nobody asks for.
    pub(in crate::store) fn promptness(&self) -> Promptness {
        self.promptness
    }

    /// Asks for a checkpoint.
    pub(in crate::store) fn ask_to_fold(&self) {
        let mut state = self.bell.state.lock();
        if !state.fold {
            state.fold = true;
            self.bell.rung.notify_one();
        }
    }

    /// Asks for a commit.
    pub(in crate::store) fn ask_to_commit(&self) {
        let mut state = self.bell.state.lock();
        if !state.commit {
            state.commit = true;
            self.bell.rung.notify_one();
        }
    }

    /// Asks for pages to be written early.
    pub(in crate::store) fn ask_to_write_early(&self) {
        // Relaxed: a hint. Whoever writes asks again and again until it is done.
        if !self.bell.early.load(Ordering::Relaxed) {
            self.bell.early.store(true, Ordering::Relaxed);
            self.bell.state.lock().early = true;
            self.bell.rung.notify_one();
        }
    }

    /// Ends it, and waits for that.
    pub(in crate::store) fn stop(&self) {
        self.bell.state.lock().stop = true;
        self.bell.rung.notify_one();
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}

impl Bell {
    fn wait(&self, due: Option<Instant>) -> State {
        let mut state = self.state.lock();
        if !state.fold && !state.commit && !state.early && !state.stop {
            match due {
                Some(due) => {
                    self.rung.wait_until(&mut state, due);
                }
                None => self.rung.wait(&mut state),
            }
        }
        let found = *state;
        state.fold = false;
        found
    }

    /// Pages were written early.
    fn went_early(&self) {
        self.state.lock().early = false;
        self.early.store(false, Ordering::Relaxed);
    }

    /// A commit was made, alone or with a checkpoint.
    fn committed(&self) {
        self.state.lock().commit = false;
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use crate::BLOCK;
    use crate::store::{FormatOptions, OpenOptions, VolumeStore, format};
    use holdfast_core::{FileSystem, Options};
    use holdfast_device::{BlockDevice, MemoryDevice};
    use holdfast_types::{Caller, OpenFlags};
    use std::sync::Arc;
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    #[test]
    fn what_nobody_makes_durable_is_committed_in_time_with_pages_and_without() {
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 << 20));
        format(&device, &FormatOptions::default()).unwrap();
        let options = OpenOptions {
            commit_every: Some(Duration::from_millis(50)),
            ..OpenOptions::default()
        };
        let store = Arc::new(VolumeStore::open(device, &options).unwrap());
        let fs = FileSystem::new(Arc::clone(&store) as _, Options::default()).unwrap();
        let (who, root) = (Caller::root(), fs.root());
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        for (name, pages) in [(b"empty", 0), (b"pages", 10), (b"again", 10)] {
            let file = fs.create(&who, &root, name, 0o644, flags).unwrap();
            for page in 0..pages {
                let at = page * BLOCK as u64;
                fs.write(&who, &file, at, &[1; BLOCK]).unwrap();
            }
            // A stamp behind all of that.
            let cut = store.inner.journal.before_next_cut();
            let patience = Instant::now() + Duration::from_secs(60);
            while store.inner.journal.durable() < cut || store.inner.waiting().0 > 0 {
                assert!(Instant::now() < patience, "no commit");
                sleep(Duration::from_millis(5));
            }
        }
        drop(root);
        fs.close().unwrap();
        store.close().unwrap();
    }
}
