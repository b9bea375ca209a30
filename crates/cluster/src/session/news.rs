//! Which inodes the last messages were about.
//!
//! The answer to a change is dated after the change, but another client may have changed the same
//! inodes before the answer came, and its message may have been taken in already. The message is
//! found here then.

use holdfast_types::Ino;
use parking_lot::Mutex;
use std::collections::VecDeque;

/// The messages that are remembered.
const MOST: usize = 1024;

/// The last messages.
#[derive(Debug, Default)]
pub(super) struct News(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The number of all messages so far.
    count: u64,
    /// The inodes of the last of them.
    last: VecDeque<Ino>,
}

/// The number of messages at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark(u64);

impl News {
    pub(super) fn mark(&self) -> Mark {
        Mark(self.0.lock().count)
    }

    /// A message about an inode is about to be taken in.
    pub(super) fn add(&self, ino: Ino) {
        let mut state = self.0.lock();
        if state.last.len() == MOST {
            state.last.pop_front();
        }
        state.last.push_back(ino);
        state.count += 1;
    }

    /// Anything may have changed.
    pub(super) fn everything(&self) {
        let mut state = self.0.lock();
        state.last.clear();
        state.count += 1;
    }

    /// May a message since `mark` be about one of these inodes?
    pub(super) fn is_about(&self, mark: Mark, inos: &[Ino]) -> bool {
        let state = self.0.lock();
        let new = usize::try_from(state.count - mark.0).unwrap_or(usize::MAX);
        new > state.last.len()
            || state
                .last
                .iter()
                .rev()
                .take(new)
                .any(|ino| inos.contains(ino))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_since_a_mark_are_found_and_forgotten_ones_count_for_all() {
        let news = News::default();
        news.add(Ino(1));
        let mark = news.mark();
        assert!(!news.is_about(mark, &[Ino(1)]));
        news.add(Ino(2));
        assert!(news.is_about(mark, &[Ino(1), Ino(2)]));
        assert!(!news.is_about(mark, &[Ino(1), Ino(3)]));
        (0..MOST).for_each(|_| news.add(Ino(9)));
        assert!(news.is_about(mark, &[Ino(3)]));
        let mark = news.mark();
        news.everything();
        assert!(news.is_about(mark, &[Ino(3)]));
        assert!(!news.is_about(news.mark(), &[Ino(3)]));
    }
}
