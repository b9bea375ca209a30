//! What keeps a session alive, and takes in what others changed.
//!
//! *Beats.* The thread `holdfast-beat` sends a beat each 300 ms, and at once when the database
//! notifies it of a message. The answer brings changes by others, which the core is notified of.
//! The lease then runs from the moment when the beat was sent. While the lease holds, the core has
//! been notified of each change that was complete then, as far as this client is
//! [interested](topics) in it.
//!
//! *Loss.* Another [`Epoch`] means that messages may be lost: the core is told that anything may
//! have changed, and the client is interested in nothing any more.
//!
//! *Files without names.* A beat asks for inodes that lost their last name. The next beat says
//! which of them the core knows; these live until it forgets them.
//!
//! *Fencing.* When the session was ended by others, the failure latch closes with `ESTALE`.
//!
//! *Locking.* The lock of beats is held for a request and while the core is notified. All others
//! are leaves.

mod kept;
mod lease;
mod news;
mod periodic;
mod topics;

pub(crate) use lease::Lease;
pub(crate) use news::Mark;
pub(crate) use periodic::Periodic;
pub(crate) use topics::Topics;

use crate::content::Files;
use crate::meta::{Beat, BeatAnswer, Epoch, Message, Meta};
use crate::numbers::Numbers;
use holdfast_core::store::{Changes, Failure, InodeRecord};
use holdfast_types::{Errno, FileType, Ino, Result};
use kept::Kept;
use news::News;
use parking_lot::Mutex;
use std::io;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

/// The time between two beats.
const BEAT: Duration = Duration::from_millis(300);
/// The size of a large directory: it has 4,096 names.
const LARGE: u64 = 4096 * 32;

/// A session, as its client keeps it.
pub(crate) struct Session {
    beats: Arc<Beats>,
    thread: Option<Periodic>,
}

/// What the thread and the store share.
struct Beats {
    meta: Arc<dyn Meta>,
    files: Arc<Files>,
    numbers: Arc<Numbers>,
    failure: Arc<Failure>,
    changes: OnceLock<Weak<dyn Changes>>,
    lease: Lease,
    topics: Topics,
    kept: Kept,
    news: News,
    state: Mutex<State>,
}

/// What one beat leaves for the next.
#[derive(Default)]
struct State {
    taken: u64,
    epoch: Option<Epoch>,
    /// Inodes that lost their last name, and whether the core knows them is asked with the next
    /// beat.
    nameless: Vec<Ino>,
    looked_at: u64,
}

impl Session {
    /// Begins to keep a session alive.
    ///
    /// # Errors
    /// Those of starting a thread.
    pub(crate) fn start(
        meta: Arc<dyn Meta>,
        files: Arc<Files>,
        numbers: Arc<Numbers>,
        failure: Arc<Failure>,
    ) -> io::Result<Self> {
        let settings = meta.settings();
        let beats = Arc::new(Beats {
            lease: Lease::new(settings.lease),
            topics: Topics::new(settings.notifies),
            meta,
            files,
            numbers,
            failure,
            changes: OnceLock::new(),
            kept: Kept::default(),
            news: News::default(),
            state: Mutex::default(),
        });
        // The lease begins before the first question. If it does not, the thread tries on.
        let _ = beats.beat();
        let thread = {
            let beats = Arc::clone(&beats);
            Periodic::start("holdfast-beat", move || {
                // The next one is soon. Until then the lease says how long answers hold.
                let _ = beats.beat();
                BEAT
            })?
        };
        beats.meta.on_message(thread.waker());
        Ok(Self {
            beats,
            thread: Some(thread),
        })
    }

    /// Sets the receiver of changes.
    pub(crate) fn attach(&self, changes: Weak<dyn Changes>) {
        // The core calls this once.
        let _ = self.beats.changes.set(changes);
    }

    /// Sends a beat now, and takes in what it brings.
    ///
    /// # Errors
    /// Those of [`Meta::beat`].
    pub(crate) fn beat(&self) -> Result<()> {
        self.beats.beat()
    }

    /// The topics of questions.
    pub(crate) fn topics(&self) -> &Topics {
        &self.beats.topics
    }

    /// The proof that this client was told of everything that it is interested in.
    pub(crate) fn lease(&self) -> &Lease {
        &self.beats.lease
    }

    /// The core is about to ask for an inode, of which this is the newest record.
    pub(crate) fn uses(&self, record: &InodeRecord) {
        let now = Instant::now();
        self.beats.topics.uses(record.parent, now);
        if record.kind == FileType::Directory && record.parent != record.ino {
            match record.size >= LARGE {
                true => self.beats.topics.uses_large(record.ino, now),
                false => self.beats.topics.uses(record.ino, now),
            }
        }
    }

    /// Is each change of an inode since `since` taken in, or will be within the lease?
    pub(crate) fn covers(&self, record: &InodeRecord, since: Instant) -> bool {
        let topics = &self.beats.topics;
        topics.covers(record.parent, since)
            && (record.kind != FileType::Directory || topics.covers(record.ino, since))
    }

    /// The messages so far.
    pub(crate) fn mark(&self) -> Mark {
        self.beats.news.mark()
    }

    /// May a message since `mark` have been about one of these inodes?
    pub(crate) fn is_news(&self, mark: Mark, inos: &[Ino]) -> bool {
        self.beats.news.is_about(mark, inos)
    }

    /// An inode without a name is about to be created for this session.
    pub(crate) fn keeps(&self, ino: Ino) {
        self.beats.kept.insert(ino);
    }

    /// The core does not know an inode any more.
    pub(crate) fn forgotten(&self, ino: Ino) {
        self.beats.kept.release(ino);
    }
}

impl Drop for Session {
    /// Ends the session, unless the database has not answered lately: then the others end it.
    fn drop(&mut self) {
        self.thread = None;
        if self.beats.lease.holds() {
            // As above: nothing depends on it.
            let _ = self.beats.meta.end();
        }
    }
}

impl Beats {
    fn beat(&self) -> Result<()> {
        let mut state = self.state.lock();
        loop {
            let beat = self.next(&state);
            let sent = Lease::now();
            let answer = match self.meta.beat(&beat) {
                Ok(answer) => answer,
                Err(error) => return Err(self.failed(error)),
            };
            self.kept.released(&beat.releases);
            self.topics.left(&beat.unsubscribes);
            let more = answer.more;
            self.take_in(&mut state, answer);
            if !more {
                self.lease.renew(sent);
                break;
            }
        }
        drop(state);
        self.numbers.refill()
    }

    fn failed(&self, error: Errno) -> Errno {
        if error == Errno::ESTALE {
            self.lease.end();
            self.failure.close_with(Errno::ESTALE);
            self.notify_all();
        }
        error
    }

    fn changes(&self) -> Option<Arc<dyn Changes>> {
        self.changes.get().and_then(Weak::upgrade)
    }

    fn notify_all(&self) {
        self.news.everything();
        if let Some(changes) = self.changes() {
            changes.all();
        }
    }

    /// The next beat.
    fn next(&self, state: &State) -> Beat {
        if self.topics.trim() {
            // Answers about what these topics covered hold no longer than any other.
            self.notify_all();
        }
        self.kept.look(|ino| self.knows(ino));
        Beat {
            taken: state.taken,
            knows: self.kept.find(&state.nameless, |ino| self.knows(ino)),
            releases: self.kept.releases(),
            looked_at: state.looked_at,
            unsubscribes: self.topics.leaving(),
        }
    }

    /// Is this inode in use here?
    fn knows(&self, ino: Ino) -> bool {
        self.changes().is_some_and(|changes| changes.knows(ino))
    }

    fn take_in(&self, state: &mut State, answer: BeatAnswer) {
        self.files.set_time(answer.now);
        let before = state.epoch.replace(answer.epoch);
        let is_first = before.is_none() && self.topics.is_empty();
        if before != Some(answer.epoch) && !is_first {
            self.topics.clear();
            self.notify_all();
        }
        let changes = self.changes();
        for (number, message) in answer.messages {
            // Before the core: a request that is answered now finds one or the other.
            self.news.add(match &message {
                Message::Entry(dir, _) => *dir,
                Message::Inode(ino, _) => *ino,
            });
            if let Message::Inode(ino, _) = &message {
                self.files.notified(*ino);
            }
            if let Some(changes) = &changes {
                match &message {
                    Message::Entry(dir, name) => changes.entry(*dir, name),
                    Message::Inode(ino, content) => changes.inode(*ino, *content),
                }
            }
            state.taken = state.taken.max(number);
        }
        state.nameless = answer.gone;
        state.looked_at = answer.gone_upto;
    }
}

#[cfg(test)]
mod tests;
