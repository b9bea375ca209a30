//! The engine's own rule before it knew uses: a sweep goes round by number and takes whatever it meets.

use super::Rule;

/// What is held, by number.
pub(super) struct Sweep {
    held: Vec<bool>,
    at: usize,
    count: usize,
    capacity: usize,
}

impl Sweep {
    pub(super) fn new(capacity: usize, objects: usize) -> Self {
        Self {
            held: vec![false; objects],
            at: 0,
            count: 0,
            capacity,
        }
    }

    fn evict(&mut self) {
        let (before, after) = self.held.split_at_mut(self.at);
        let mut ahead = after.iter_mut().chain(before).enumerate();
        if let Some((distance, held)) = ahead.find(|(_, held)| **held) {
            *held = false;
            self.at = (self.at + distance + 1) % self.held.len();
            self.count -= 1;
        }
    }
}

impl Rule for Sweep {
    fn access(&mut self, object: u32) -> bool {
        if self.held[object as usize] {
            return true;
        }
        if self.count == self.capacity {
            self.evict();
        }
        self.held[object as usize] = true;
        self.count += 1;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::hits;
    use super::*;

    #[test]
    fn the_next_number_goes_however_it_was_used() {
        // `d` takes `a` and stands before `b`; `a` takes `b`, `b` takes `c`; then the sweep meets `d`.
        let told = hits(&mut Sweep::new(3, 26), "abcaaadcabcd");
        assert_eq!(told, "---+++-+----");
    }
}
