//! Numbers in an order, each of which can leave from the middle.

/// No number.
const NONE: u32 = u32::MAX;

/// A list of numbers below a bound, each in it once at most. The front is where they come in.
pub(super) struct List {
    /// The neighbour of each number towards the back, then that towards the front; of one that is not there, anything.
    links: Vec<[u32; 2]>,
    front: u32,
    back: u32,
    len: usize,
}

const TO_BACK: usize = 0;
const TO_FRONT: usize = 1;

impl List {
    /// An empty one, for numbers below this.
    pub(super) fn new(numbers: usize) -> Self {
        Self {
            links: vec![[NONE; 2]; numbers],
            front: NONE,
            back: NONE,
            len: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The number that came first.
    pub(super) fn back(&self) -> Option<u32> {
        (self.back != NONE).then_some(self.back)
    }

    /// The one that came behind this one.
    pub(super) fn newer(&self, number: u32) -> Option<u32> {
        let newer = self.links[number as usize][TO_FRONT];
        (newer != NONE).then_some(newer)
    }

    /// Takes one in that is not there.
    pub(super) fn push_front(&mut self, number: u32) {
        self.links[number as usize] = [self.front, NONE];
        match self.front {
            NONE => self.back = number,
            front => self.links[front as usize][TO_FRONT] = number,
        }
        self.front = number;
        self.len += 1;
    }

    /// Takes one out that is there.
    pub(super) fn remove(&mut self, number: u32) {
        let [back, front] = self.links[number as usize];
        match front {
            NONE => self.front = back,
            front => self.links[front as usize][TO_BACK] = back,
        }
        match back {
            NONE => self.back = front,
            back => self.links[back as usize][TO_FRONT] = front,
        }
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;
    use std::collections::VecDeque;

    #[test]
    fn it_is_a_queue_from_which_any_number_can_leave() {
        let mut list = List::new(30);
        let mut model = VecDeque::new();
        let mut chance = Chance::seeded(1);
        for _ in 0..5000 {
            let number = chance.below(30) as u32;
            match model.iter().position(|&it| it == number) {
                Some(place) => {
                    model.remove(place);
                    list.remove(number);
                }
                None => {
                    model.push_front(number);
                    list.push_front(number);
                }
            }
            let order: Vec<u32> =
                std::iter::successors(list.back(), |&it| list.newer(it)).collect();
            let expected: Vec<u32> = model.iter().rev().copied().collect();
            assert_eq!((order, list.len()), (expected, model.len()));
        }
    }
}
