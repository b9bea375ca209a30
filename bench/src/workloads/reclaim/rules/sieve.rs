//! SIEVE (Zhang et al., NSDI 2024): a queue with a mark each, and a hand that goes from the oldest towards the newest. What
//! it meets marked stays in its place.

use super::Rule;
use super::list::List;

/// What is held, the newest in front.
pub(super) struct Sieve {
    queue: List,
    held: Vec<bool>,
    marked: Vec<bool>,
    /// The next to be looked at; the oldest if nothing is said.
    hand: Option<u32>,
    capacity: usize,
}

impl Sieve {
    pub(super) fn new(capacity: usize, objects: usize) -> Self {
        Self {
            queue: List::new(objects),
            held: vec![false; objects],
            marked: vec![false; objects],
            hand: None,
            capacity,
        }
    }

    fn evict(&mut self) {
        while let Some(object) = self.hand.or_else(|| self.queue.back()) {
            self.hand = self.queue.newer(object);
            if !std::mem::replace(&mut self.marked[object as usize], false) {
                self.queue.remove(object);
                self.held[object as usize] = false;
                return;
            }
        }
    }
}

impl Rule for Sieve {
    fn access(&mut self, object: u32) -> bool {
        let hit = std::mem::replace(&mut self.held[object as usize], true);
        if hit {
            self.marked[object as usize] = true;
            return true;
        }
        if self.queue.len() == self.capacity {
            self.evict();
        }
        self.queue.push_front(object);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::hits;
    use super::*;

    #[test]
    fn what_is_marked_stays_in_its_place_and_the_hand_goes_on() {
        // Queue from the oldest: a, b, c, with `a` marked. `d` takes `b`, and the hand stands before `c`; `e` takes that, and
        // `f` takes `d`, though `a` is older and has no mark any more.
        let told = hits(&mut Sieve::new(3, 26), "abcadefaedc");
        assert_eq!(told, "---+---++--");
    }
}
