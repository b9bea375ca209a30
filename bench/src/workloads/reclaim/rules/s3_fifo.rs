//! S3-FIFO (Yang et al., SOSP 2023): a small queue for what comes, a main one for what was used there, and the numbers of what
//! went from the small one lately. As in the engine's design a single use in the small queue is enough; to ask for two changes
//! little.

use super::Rule;
use std::collections::VecDeque;

/// The small queue is to have this part of all.
const SMALL_PART: usize = 10;
/// Uses that are counted.
const USES_MAX: u8 = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Nowhere,
    Small,
    Main,
}

/// The queues, the next to go in front.
pub(super) struct S3Fifo {
    small: VecDeque<u32>,
    main: VecDeque<u32>,
    place: Vec<Place>,
    uses: Vec<u8>,
    /// How many had gone from the small queue when this one did; 0: it did not.
    ghost: Vec<u32>,
    gone: u32,
    capacity: usize,
}

impl S3Fifo {
    pub(super) fn new(capacity: usize, objects: usize) -> Self {
        Self {
            small: VecDeque::new(),
            main: VecDeque::new(),
            place: vec![Place::Nowhere; objects],
            uses: vec![0; objects],
            ghost: vec![0; objects],
            gone: 0,
            capacity,
        }
    }

    fn small_max(&self) -> usize {
        (self.capacity / SMALL_PART).max(1)
    }

    /// Did it go so lately that it is remembered? As many are as the main queue holds.
    fn is_ghost(&self, object: u32) -> bool {
        let went = self.ghost[object as usize];
        let age = (self.gone - went) as usize;
        went > 0 && age < self.capacity - self.small_max()
    }

    fn evict(&mut self) {
        let evicted = match self.small.len() >= self.small_max() {
            true => self.evict_small() || self.evict_main(),
            false => self.evict_main() || self.evict_small(),
        };
        debug_assert!(evicted, "something is held");
    }

    /// From the small queue; what was used there goes on to the main one.
    fn evict_small(&mut self) -> bool {
        while let Some(object) = self.small.pop_front() {
            if self.uses[object as usize] > 0 {
                self.uses[object as usize] = 0;
                self.place[object as usize] = Place::Main;
                self.main.push_back(object);
                continue;
            }
            self.place[object as usize] = Place::Nowhere;
            self.gone += 1;
            self.ghost[object as usize] = self.gone;
            return true;
        }
        false
    }

    /// From the main queue, where each use is another round.
    fn evict_main(&mut self) -> bool {
        while let Some(object) = self.main.pop_front() {
            let uses = &mut self.uses[object as usize];
            if *uses > 0 {
                *uses -= 1;
                self.main.push_back(object);
                continue;
            }
            self.place[object as usize] = Place::Nowhere;
            return true;
        }
        false
    }
}

impl Rule for S3Fifo {
    fn access(&mut self, object: u32) -> bool {
        if self.place[object as usize] != Place::Nowhere {
            let uses = &mut self.uses[object as usize];
            *uses = (*uses + 1).min(USES_MAX);
            return true;
        }
        if self.small.len() + self.main.len() == self.capacity {
            self.evict();
        }
        let (place, queue) = match self.is_ghost(object) {
            true => (Place::Main, &mut self.main),
            false => (Place::Small, &mut self.small),
        };
        queue.push_back(object);
        self.place[object as usize] = place;
        self.uses[object as usize] = 0;
        self.ghost[object as usize] = 0;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_once_passes_through_and_what_is_used_again_stays() {
        let mut cache = S3Fifo::new(100, 10_000);
        for object in 0..50 {
            cache.access(object);
            assert!(cache.access(object), "it is used while it is small");
        }
        // A walk over many, each once: all of it passes through the small queue.
        assert!(!(1000..9000).any(|object| cache.access(object)));
        assert!((0..50).all(|object| cache.access(object)));
    }

    #[test]
    fn what_comes_again_lately_goes_to_the_main_queue() {
        let mut cache = S3Fifo::new(100, 10_000);
        (0..150).for_each(|object| _ = cache.access(object));
        assert!(cache.is_ghost(49) && !cache.is_ghost(50), "that is held");
        assert!(!cache.access(49));
        assert!(cache.place[49] == Place::Main && !cache.is_ghost(49));
        (1000..2000).for_each(|object| _ = cache.access(object));
        assert!(cache.access(49), "a walk does not reach it");
        assert!(!cache.is_ghost(0), "too many went since");
    }
}
