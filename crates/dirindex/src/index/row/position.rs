//! Positions in the slots of a row, by orders.

use crate::index::slot::{Slot, Word};

/// The position before which there are only gaps.
pub(super) fn first_position(slots: &[Slot]) -> usize {
    slots
        .first()
        .and_then(|slot| slot.load().as_number())
        .map_or(0, |first| (first as usize).min(slots.len()))
}

/// The position of the first slot with an order greater than `after`.
pub(in crate::index) fn position_after(slots: &[Slot], after: u64) -> usize {
    let first = first_position(slots);
    first + slots[first..].partition_point(|slot| order(slot.load()) <= after)
}

/// The order of the item in a slot, or of the gap; of an unused slot, the maximum.
#[inline]
pub(super) fn order(word: Word<'_>) -> u64 {
    match (word.as_number(), word.as_item()) {
        (Some(order), _) => order,
        (None, Some(item)) => item.order(),
        (None, None) => u64::MAX,
    }
}
