//! Linux' rules, before 2017 and since: a queue in which what is marked has a second chance. They differ in what an object
//! begins with.

use super::Rule;
use std::collections::VecDeque;

/// A CLOCK, as a queue: the hand stands still and the objects pass by.
pub(super) struct Clock {
    /// The next to be looked at in front.
    queue: VecDeque<u32>,
    held: Vec<bool>,
    marked: Vec<bool>,
    capacity: usize,
    born_marked: bool,
}

impl Clock {
    /// Objects come with their mark set, as before 2017: each goes through the queue twice.
    pub(super) fn born_referenced(capacity: usize, objects: usize) -> Self {
        Self::new(capacity, objects, true)
    }

    /// Objects come without a mark, and a use of one that is there sets it, as J. Bacik's series had it merged.
    pub(super) fn second_use(capacity: usize, objects: usize) -> Self {
        Self::new(capacity, objects, false)
    }

    fn new(capacity: usize, objects: usize, born_marked: bool) -> Self {
        Self {
            queue: VecDeque::with_capacity(capacity),
            held: vec![false; objects],
            marked: vec![false; objects],
            capacity,
            born_marked,
        }
    }

    fn evict(&mut self) {
        while let Some(object) = self.queue.pop_front() {
            if std::mem::replace(&mut self.marked[object as usize], false) {
                self.queue.push_back(object);
            } else {
                self.held[object as usize] = false;
                return;
            }
        }
    }
}

impl Rule for Clock {
    fn access(&mut self, object: u32) -> bool {
        let hit = std::mem::replace(&mut self.held[object as usize], true);
        if !hit {
            if self.queue.len() == self.capacity {
                self.evict();
            }
            self.queue.push_back(object);
        }
        self.marked[object as usize] = hit || self.born_marked;
        hit
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::hits;
    use super::*;

    #[test]
    fn born_referenced_what_was_used_again_looks_like_what_was_not() {
        // `d` finds all marked: one round takes the marks, and `a` goes though it was used most. Then `b` has lost its
        // mark, and is the next.
        let told = hits(&mut Clock::born_referenced(3, 26), "abcaaadcab");
        assert_eq!(told, "---+++-+--");
    }

    #[test]
    fn by_second_use_one_use_is_not_enough_and_a_burst_is() {
        // `b` was used once and goes first; `a` has its mark from a burst.
        let told = hits(&mut Clock::second_use(3, 26), "aaabcdab");
        assert_eq!(told, "-++---+-");
    }
}
