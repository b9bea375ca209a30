//! The one that was not used for the longest time goes.

use super::Rule;
use super::list::List;

/// What is held, the last used in front.
pub(super) struct Lru {
    order: List,
    held: Vec<bool>,
    capacity: usize,
}

impl Lru {
    pub(super) fn new(capacity: usize, objects: usize) -> Self {
        Self {
            order: List::new(objects),
            held: vec![false; objects],
            capacity,
        }
    }
}

impl Rule for Lru {
    fn access(&mut self, object: u32) -> bool {
        let hit = std::mem::replace(&mut self.held[object as usize], true);
        if hit {
            self.order.remove(object);
        } else if self.order.len() == self.capacity
            && let Some(oldest) = self.order.back()
        {
            self.order.remove(oldest);
            self.held[oldest as usize] = false;
        }
        self.order.push_front(object);
        hit
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::hits;
    use super::*;

    #[test]
    fn a_use_keeps_an_object_longer_than_those_used_before() {
        let told = hits(&mut Lru::new(2, 26), "abacbab");
        assert_eq!(told, "--+---+");
    }
}
