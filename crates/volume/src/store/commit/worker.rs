//! The threads that write and commit in time, and fold before the journal is full.
//!
//! One commits and folds; it waits for flushes. The other hands everything to the device's cache, as often as
//! what is only written would be lost with the process, and waits for neither.
//!
//! A thread that finds everything done twice in a row rests: without a deadline, until the first change rouses it. So nothing wakes
//! up for a volume that is not used.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use holdfast_core::shrinkers::within_store;
use holdfast_core::store::Lsn;
use parking_lot::{Condvar, Mutex};

use super::timer::{Promptness, commits_every, writes_every};
use crate::store::Inner;
use crate::{Error, Result};

/// The threads, and what they wait for.
#[derive(Debug)]
pub(in crate::store) struct Worker {
    bell: Arc<Bell>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    promptness: Promptness,
}

#[derive(Debug, Default)]
struct Bell {
    state: Mutex<State>,
    rung: Condvar,
    /// Only for the end.
    ended: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Is a checkpoint wanted?
    fold: bool,
    /// Or a commit, before its time? Until it is done: whoever still needs one asks again.
    commit: bool,
    stop: bool,
    /// Rests that a change has ended.
    changes: u64,
}

impl Worker {
    /// Starts them. `every`: so long after a change it is committed, at most; where what was written outlives the process, it
    /// is written within a second.
    ///
    /// # Errors
    /// [`Error::Thread`]: without them nothing would be committed in time.
    pub(in crate::store) fn start(inner: &Arc<Inner>, every: Option<Duration>) -> Result<Self> {
        let writes = inner.journal.can_write();
        let worker = Self {
            bell: Arc::default(),
            threads: Mutex::default(),
            promptness: Promptness::of(every, writes),
        };
        let bell = Arc::clone(&worker.bell);
        inner.journal.when_roused(move || bell.rouse());
        worker.spawn("holdfast-volume", inner, move |store, bell| {
            // What fails stops the store, which says so.
            let _ = store.read_the_rest();
            bell.commit_in_time(store, every);
        })?;
        if let Some(every) = writes_every(every, writes) {
            worker.spawn("holdfast-write", inner, move |store, bell| {
                bell.write_in_time(store, every);
            })?;
        }
        Ok(worker)
    }

    fn spawn(
        &self,
        name: &'static str,
        inner: &Arc<Inner>,
        loops: impl Fn(&Inner, &Bell) + Send + 'static,
    ) -> Result<()> {
        let (store, bell) = (Arc::clone(inner), Arc::clone(&self.bell));
        let work = move || {
            let _within = within_store();
            // It ends by being told to, or by a panic, which stops the store: nobody would commit in time any more.
            let _ = store.whole("the work of the volume's threads", || {
                loops(&store, &bell);
                Ok(())
            });
        };
        let thread = std::thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(work).map_err(Error::Thread)?;
        self.threads.lock().push(thread);
        Ok(())
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

    /// Ends them, and waits for that.
    pub(in crate::store) fn stop(&self) {
        self.bell.state.lock().stop = true;
        self.bell.rung.notify_one();
        self.bell.ended.notify_one();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            let _ = thread.join();
        }
    }
}

/// The cut that was last when its owner found everything done.
#[derive(Debug, Default)]
struct Quiet(Option<Lsn>);

impl Quiet {
    /// Everything is done once more: was it so all the time? A commit that some call asked for moves the cut.
    fn lasts(&mut self, store: &Inner) -> bool {
        let cut = store.journal.before_next_cut();
        self.0.replace(cut) == Some(cut)
    }
}

impl Bell {
    /// Ends the rest of both.
    fn rouse(&self) {
        self.state.lock().changes += 1;
        self.rung.notify_one();
        self.ended.notify_one();
    }

    /// Commits in time, and does what is asked for.
    fn commit_in_time(&self, store: &Inner, every: Option<Duration>) {
        let due_after = |now| every.map(|every| now + commits_every(every));
        let (mut due, mut quiet) = (due_after(Instant::now()), Quiet::default());
        loop {
            let state = self.wait(due, None);
            if state.stop {
                return;
            }
            let now = Instant::now();
            let is_time = due.is_some_and(|due| due <= now);
            // What fails stops the store: the next call is told.
            if state.fold || state.commit || is_time && !store.rests(true) {
                let _ = match state.fold {
                    true => store.checkpoint(),
                    false => store.make_durable(None),
                };
                self.committed();
                due = due_after(now);
            } else {
                if is_time {
                    if quiet.lasts(store) {
                        self.wait(None, Some(state.changes));
                    }
                    due = due_after(Instant::now());
                }
                continue;
            }
            store.look_at_host_in_time();
            store.progress.step();
        }
    }

    /// Writes in time.
    fn write_in_time(&self, store: &Inner, every: Duration) {
        let mut quiet = Quiet::default();
        loop {
            let due = Instant::now() + every;
            let mut state = self.state.lock();
            while !state.stop && !self.ended.wait_until(&mut state, due).timed_out() {}
            let changes = state.changes;
            if state.stop {
                return;
            }
            drop(state);
            if !store.rests(false) {
                // What fails stops the store.
                let _ = store.write_behind();
                store.look_at_host_in_time();
                store.progress.step();
            } else if quiet.lasts(store) {
                let mut state = self.state.lock();
                while !state.stop && state.changes == changes {
                    self.ended.wait(&mut state);
                }
            }
        }
    }

    /// Waits until something is asked for, or it is time, or, with no more than so many `changes`, until there is another.
    fn wait(&self, due: Option<Instant>, changes: Option<u64>) -> State {
        let mut state = self.state.lock();
        let is_asked = |state: &State| state.fold || state.commit || state.stop;
        while !is_asked(&state) && changes.is_none_or(|changes| state.changes == changes) {
            match due {
                Some(due) if self.rung.wait_until(&mut state, due).timed_out() => break,
                Some(_) => {}
                None => self.rung.wait(&mut state),
            }
        }
        let found = *state;
        if changes.is_none() {
            state.fold = false;
        }
        found
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
