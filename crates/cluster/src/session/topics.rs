//! What this client is interested in.
//!
//! A directory becomes a topic when it is used for the second time: a walk of a tree asks for
//! nothing twice. A large directory becomes one at once: to list it takes longer than an answer
//! holds. The registration travels with the questions that follow, until one of them is
//! answered.
//!
//! *Invariant.* A topic covers what was asked for after `since`: each question that was sent later
//! carried the topic, or was sent when the topic was registered. Requests that carry no topics
//! move `since` behind them.
//!
//! At most [`MOST`] topics are kept. Those that were not used lately are given back, by the next
//! beat.

use crate::bounded::BoundedMap;
use holdfast_types::{Ino, Result};
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The most topics.
const MOST: usize = 65_536;
/// The most topics that a question carries.
const CARRIED: usize = 64;
/// Directories that were used once.
const ONCE: usize = 16_384;
/// Uses within this time after the first are part of it.
const ONE_USE: Duration = Duration::from_millis(100);

/// The topics of a client.
pub(crate) struct Topics {
    notifies: bool,
    /// Are there unregistered topics? A hint that avoids the lock.
    pending: AtomicBool,
    state: Mutex<State>,
}

struct State {
    /// Raised when all topics are lost.
    incarnation: u64,
    used_once: BoundedMap<Ino, Instant>,
    /// Topics that were used lately, and the others.
    young: HashMap<Ino, Topic>,
    old: HashMap<Ino, Topic>,
    unregistered: BTreeSet<Ino>,
    /// Given back, but the database does not know yet.
    leaving: BTreeSet<Ino>,
}

#[derive(Clone, Copy)]
struct Topic {
    since: Instant,
    registered: bool,
}

/// What a request was sent with.
struct Sent {
    incarnation: u64,
    topics: Vec<Ino>,
}

impl Topics {
    /// No topics. If the database sends no messages, there will never be any.
    pub(crate) fn new(notifies: bool) -> Self {
        Self {
            notifies,
            pending: AtomicBool::new(false),
            state: Mutex::new(State {
                incarnation: 0,
                used_once: BoundedMap::new(ONCE),
                young: HashMap::new(),
                old: HashMap::new(),
                unregistered: BTreeSet::new(),
                leaving: BTreeSet::new(),
            }),
        }
    }

    /// A directory is about to be used.
    pub(crate) fn uses(&self, dir: Ino, now: Instant) {
        self.take_up(dir, now, false);
    }

    /// A large directory is about to be used.
    pub(crate) fn uses_large(&self, dir: Ino, now: Instant) {
        self.take_up(dir, now, true);
    }

    fn take_up(&self, dir: Ino, now: Instant, is_large: bool) {
        if !self.notifies {
            return;
        }
        let mut state = self.state.lock();
        if state.is_topic(dir) || state.unregistered.len() == CARRIED {
            return;
        }
        match state.used_once.get(dir) {
            _ if is_large => {}
            None => return state.used_once.insert(dir, now),
            Some(first) if now.saturating_duration_since(*first) < ONE_USE => return,
            Some(_) => {}
        }
        // A request to give the topic back may be on its way.
        if state.leaving.contains(&dir) {
            return;
        }
        state.used_once.remove(dir);
        let registered = false;
        let since = now;
        state.young.insert(dir, Topic { since, registered });
        state.unregistered.insert(dir);
        self.pending.store(true, Ordering::Release);
    }

    /// Are there no topics?
    pub(crate) fn is_empty(&self) -> bool {
        let state = self.state.lock();
        state.young.is_empty() && state.old.is_empty()
    }

    /// Does this topic cover what was asked for at `since`?
    pub(crate) fn covers(&self, topic: Ino, since: Instant) -> bool {
        if !self.notifies {
            return false;
        }
        let state = self.state.lock();
        let topic = state.young.get(&topic).or_else(|| state.old.get(&topic));
        topic.is_some_and(|topic| topic.registered && topic.since < since)
    }

    fn sent(&self) -> Sent {
        // A topic that gets wanted now is later than the question of this caller.
        if !self.pending.load(Ordering::Acquire) {
            return Sent {
                incarnation: 0,
                topics: Vec::new(),
            };
        }
        let state = self.state.lock();
        Sent {
            incarnation: state.incarnation,
            topics: state.unregistered.iter().copied().collect(),
        }
    }

    /// Asks a question that carries topics.
    ///
    /// # Errors
    /// Those of the question.
    pub(crate) fn ask<T>(&self, question: impl FnOnce(&[Ino]) -> Result<T>) -> Result<T> {
        let sent = self.sent();
        let answer = question(&sent.topics)?;
        if !sent.topics.is_empty() {
            let mut state = self.state.lock();
            if state.incarnation == sent.incarnation {
                for ino in sent.topics {
                    state.unregistered.remove(&ino);
                    state.change(ino, |topic| topic.registered = true);
                }
                self.pending
                    .store(!state.unregistered.is_empty(), Ordering::Release);
            }
        }
        Ok(answer)
    }

    /// Makes a request that carries no topics.
    pub(crate) fn beside<T>(&self, request: impl FnOnce() -> T) -> T {
        let sent = self.sent();
        let answer = request();
        if !sent.topics.is_empty() {
            let now = Instant::now();
            let mut state = self.state.lock();
            for ino in sent.topics {
                // The request may have been answered before the topic was registered.
                state.change(ino, |topic| topic.since = topic.since.max(now));
            }
        }
        answer
    }

    /// Gives topics back if there are too many. Returns whether there were.
    pub(crate) fn trim(&self) -> bool {
        let mut state = self.state.lock();
        let state = &mut *state;
        if state.young.len() < MOST / 2 {
            return false;
        }
        let given_back = std::mem::replace(&mut state.old, std::mem::take(&mut state.young));
        for ino in given_back.keys() {
            state.unregistered.remove(ino);
        }
        state.leaving.extend(given_back.keys());
        !given_back.is_empty()
    }

    /// Topics that the database has to be asked to end.
    pub(crate) fn leaving(&self) -> Vec<Ino> {
        self.state.lock().leaving.iter().copied().collect()
    }

    /// The database has ended these topics.
    pub(crate) fn left(&self, topics: &[Ino]) {
        let mut state = self.state.lock();
        for ino in topics {
            state.leaving.remove(ino);
        }
    }

    /// All topics are lost.
    pub(crate) fn clear(&self) {
        let mut state = self.state.lock();
        state.incarnation += 1;
        state.young.clear();
        state.old.clear();
        state.unregistered.clear();
        self.pending.store(false, Ordering::Release);
    }
}

impl State {
    /// Is this a topic? That counts as a use of it.
    fn is_topic(&mut self, ino: Ino) -> bool {
        if let Some(topic) = self.old.remove(&ino) {
            self.young.insert(ino, topic);
        }
        self.young.contains_key(&ino)
    }

    fn change(&mut self, ino: Ino, change: impl FnOnce(&mut Topic)) {
        let topic = self.young.get_mut(&ino);
        if let Some(topic) = topic.or_else(|| self.old.get_mut(&ino)) {
            change(topic);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::Errno;

    const DIR: Ino = Ino(7);

    /// A topic that was used twice, the second time before the returned moment.
    fn used_twice(topics: &Topics, dir: Ino) -> Instant {
        let first = Instant::now() - 2 * ONE_USE;
        topics.uses(dir, first);
        topics.uses(dir, first + ONE_USE / 2);
        assert_eq!(carried(topics), [], "one use");
        topics.uses(dir, first + ONE_USE);
        first + ONE_USE + Duration::from_nanos(1)
    }

    fn carried(topics: &Topics) -> Vec<Ino> {
        topics.sent().topics
    }

    #[test]
    fn the_second_use_is_registered_with_the_next_question_that_succeeds() {
        let topics = Topics::new(true);
        let second = used_twice(&topics, DIR);
        let failed: Result<()> = topics.ask(|carried| {
            assert_eq!(carried, [DIR]);
            Err(Errno::EIO)
        });
        assert_eq!(failed, Err(Errno::EIO));
        assert!(!topics.covers(DIR, second));
        let asked = topics.ask(|carried| {
            assert_eq!(carried, [DIR]);
            Ok(())
        });
        asked.unwrap();
        assert!(topics.covers(DIR, second));
        assert!(!topics.covers(DIR, second - Duration::from_nanos(1)));
        assert_eq!(carried(&topics), []);
    }

    #[test]
    fn a_large_directory_is_registered_with_the_question_of_its_first_use() {
        let topics = Topics::new(true);
        let first = Instant::now();
        topics.uses_large(DIR, first);
        let carried: Result<Vec<Ino>> = topics.ask(|carried| Ok(carried.to_vec()));
        assert_eq!(carried, Ok(vec![DIR]));
        assert!(topics.covers(DIR, first + Duration::from_nanos(1)));
    }

    #[test]
    fn a_request_beside_a_registration_is_not_covered() {
        let topics = Topics::new(true);
        let second = used_twice(&topics, DIR);
        topics.beside(|| {
            topics.ask(|_| Ok(())).unwrap();
            assert!(topics.covers(DIR, second));
        });
        assert!(!topics.covers(DIR, second));
        assert!(topics.covers(DIR, Instant::now()));
        topics.beside(|| ());
        assert!(topics.covers(DIR, Instant::now()), "it is registered");
    }

    #[test]
    fn topics_that_were_lost_meanwhile_stay_lost() {
        let topics = Topics::new(true);
        let second = used_twice(&topics, DIR);
        let asked = topics.ask(|_| {
            topics.clear();
            Ok(())
        });
        asked.unwrap();
        assert!(!topics.covers(DIR, second));
        assert_eq!(carried(&topics), []);
    }

    #[test]
    fn topics_that_are_not_used_are_given_back() {
        let topics = Topics::new(true);
        let now = Instant::now();
        let use_all = |range: std::ops::Range<u64>| {
            for ino in range {
                topics.uses(Ino(ino), now);
                topics.uses(Ino(ino), now + ONE_USE);
                topics.ask(|_| Ok(())).unwrap();
            }
        };
        let half = MOST as u64 / 2;
        use_all(0..half);
        assert!(!topics.trim(), "there were none before");
        use_all(half..2 * half - 1);
        topics.uses(Ino(5), now);
        assert!(topics.trim());
        let leaving = topics.leaving();
        assert_eq!(leaving.len() as u64, half - 1);
        assert!(topics.covers(Ino(5), now + 2 * ONE_USE));
        assert!(!topics.covers(Ino(6), now + 2 * ONE_USE));
        topics.uses(Ino(6), now);
        topics.uses(Ino(6), now + ONE_USE);
        assert_eq!(carried(&topics), [], "it is being given back");
        topics.left(&leaving);
        topics.uses(Ino(6), now + ONE_USE);
        assert_eq!(carried(&topics), [Ino(6)]);
    }

    #[test]
    fn nothing_is_a_topic_of_a_database_that_sends_no_messages() {
        let topics = Topics::new(false);
        let now = Instant::now();
        topics.uses(DIR, now);
        topics.uses(DIR, now + ONE_USE);
        assert_eq!(carried(&topics), []);
        assert!(!topics.covers(DIR, now + 2 * ONE_USE));
    }
}
