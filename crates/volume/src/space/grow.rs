use super::group::State;
use super::{Error, Layout, Space};
use crate::primitive::Ordering;

impl Space {
    /// Extends the volume to `end`: the last group is filled up, and more groups follow. Only a
    /// superblock with the new end must be written, with the new [seal](Self::seal) or at the next
    /// checkpoint. Returns how many blocks became free.
    ///
    /// # Errors
    /// [`Error::Layout`] if `end` is not larger, or too large.
    pub fn grow(&self, end: u64) -> Result<u64, Error> {
        self.ready()?;
        let _order = self.records.order.lock();
        let old = self.layout();
        let new = Layout { end, ..old };
        new.check()?;
        if end < old.end {
            return Err(Error::Layout {
                reason: "volumes do not shrink",
            });
        }
        let last = old.groups() - 1;
        let mut more = {
            let mut state = self.table().lock(last);
            let more = state.grow(&new);
            // Release: a thread that sees the new end waits for this group; one that finds room in
            // the group sees the end.
            self.end.store(end, Ordering::Release);
            if more > 0 {
                let class = super::table::class(state.map().longest());
                self.table().set_class(last, &mut state, class);
            }
            u64::from(more)
        };
        for group in old.groups()..new.groups() {
            let state = State::fresh(&new, group);
            more += u64::from(state.free());
            self.table().push(&new, state);
        }
        self.counter.put(more);
        Ok(more)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{bundled, fill, tiny};
    use super::super::*;

    #[test]
    fn a_full_volume_that_grew_has_room_in_its_last_group_and_in_new_ones() {
        let small = tiny(2, 64);
        let small = Layout {
            end: small.end - 20,
            ..small
        };
        let space = Space::format(small).expect("a layout");
        fill(&space);
        let more = space.grow(small.end + 20 + 64 + 30).expect("larger");
        assert_eq!(more, 20 + 62 + 28);
        assert_eq!(space.report().free, more);
        let gained = fill(&space);
        assert_eq!(gained.iter().map(|extent| extent.length).sum::<u64>(), more);
        assert!(gained.contains(&Extent::new(small.end, 20)));
        assert_eq!(space.report().free, 0);
    }

    #[test]
    fn a_volume_grows_within_its_last_bundle_and_by_more_of_them() {
        let whole = bundled(tiny(3, 64), 2);
        let small = Layout {
            end: whole.end - 20,
            ..whole
        };
        let space = Space::format(small).expect("a layout");
        let first: u64 = fill(&space).iter().map(|extent| extent.length).sum();
        assert_eq!(first, 60 + 64 + 40);
        // The rest of the third group, all of the fourth, and a fifth with the bitmaps of the next
        // flex group.
        assert_eq!(space.grow(whole.end + 64 + 30), Ok(20 + 64 + 26));
        assert_eq!(space.layout().slot(4, 0), whole.end + 64);
        let gained = fill(&space);
        assert_eq!(gained.iter().map(|extent| extent.length).sum::<u64>(), 110);
        assert!(gained.contains(&Extent::new(whole.end, 64)));
        assert_eq!(space.report().free, 0);
        assert_eq!(space.report().total, space.layout().capacity());
    }

    #[test]
    fn a_rest_too_short_for_a_group_becomes_one_when_the_volume_grows() {
        let small = tiny(1, 64);
        let space = Space::format(small).expect("a layout");
        assert_eq!(space.grow(small.end + 10), Ok(0));
        assert_eq!(space.grow(small.end + 16), Ok(14));
        assert_eq!(space.grow(small.end + 17), Ok(1));
    }

    #[test]
    fn volumes_do_not_shrink_and_do_not_grow_beyond_all_numbers() {
        let layout = tiny(2, 64);
        let space = Space::format(layout).expect("a layout");
        for end in [layout.end - 1, 0, u64::MAX, 1 << 48] {
            assert!(
                matches!(space.grow(end), Err(Error::Layout { .. })),
                "{end}"
            );
        }
        assert_eq!(space.grow(layout.end), Ok(0));
    }

    #[test]
    fn a_bitmap_from_before_the_volume_grew_is_read_with_the_new_blocks_free() {
        let small = tiny(2, 64);
        let small = Layout {
            end: small.end - 20,
            ..small
        };
        let space = Space::format(small).expect("a layout");
        for (lsn, extent) in (1..).zip(fill(&space)) {
            space.record(extent, lsn).expect("placed");
        }
        space.begin_checkpoint(9).expect("consistent");
        let bitmaps = space.dirty_bitmaps(2);
        space.checkpointed(2).expect("consistent");
        space.grow(small.end + 64).expect("larger");
        let mut loader = Loader::new(space.layout(), 2).expect("a layout");
        let blank = [0; crate::block::BLOCK];
        for group in 0..loader.groups() {
            let slot = loader.slots(group)[0];
            let written = bitmaps.blocks.iter().find(|(block, _)| *block == slot);
            let first = written.map_or(&blank, |(_, bytes)| bytes);
            loader.add(group, [first, &blank]).expect("a bitmap");
        }
        let again = loader.finish(space.seal()).expect("the same bitmaps");
        assert_eq!(again.report(), space.report());
        assert_eq!(fill(&again).len(), 2);
    }
}
