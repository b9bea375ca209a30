use super::group::State;
use super::slot::{self, Block, Slot};
use super::{Error, Layout, Seal, SlotError, Space};
use std::sync::Arc;

/// Reads the bitmaps of a volume, group by group in any order, in whatever batches the device likes.
///
/// A slot that cannot be used is no fault by itself: a checkpoint that a crash cut short leaves
/// such a one. Whether a *newer* bitmap was lost shows in the end, by the superblock's [`Seal`].
#[derive(Debug)]
pub struct Loader {
    layout: Layout,
    generation: u64,
    groups: Vec<Option<Loaded>>,
}

#[derive(Debug)]
struct Loaded {
    state: State,
    suspect: bool,
}

impl Loader {
    /// Begins with what the superblock of `generation` says of the layout. The caller has checked
    /// that the device is as long.
    ///
    /// # Errors
    /// [`Error::Layout`].
    pub fn new(layout: Layout, generation: u64) -> Result<Self, Error> {
        layout.check()?;
        let groups = (0..layout.groups()).map(|_| None).collect();
        Ok(Self {
            layout,
            generation,
            groups,
        })
    }

    /// How many groups there are.
    #[must_use]
    pub fn groups(&self) -> u64 {
        self.layout.groups()
    }

    /// Where a group's two slots lie: adjacent blocks, so that one read gets both. Those of the
    /// groups of a bundle are adjacent as well, in order.
    #[must_use]
    pub fn slots(&self, group: u64) -> [u64; 2] {
        [0, 1].map(|slot| self.layout.slot(group, slot))
    }

    /// Takes what lies in a group's slots: the newer of the bitmaps that the superblock may mean,
    /// or a blank group if none was ever written.
    ///
    /// # Errors
    /// [`Error::Group`] if there is none, but something else: then [`rebuild`](Self::rebuild) the
    /// group, or give up.
    pub fn add(&mut self, group: u64, slots: [&Block; 2]) -> Result<(), Error> {
        let read =
            |slot: usize| slot::decode(&self.layout, group, slot, self.generation, slots[slot]);
        let loaded = match (read(0), read(1)) {
            (Ok(one), Ok(other)) if one.generation > other.generation => {
                self.loaded(group, 0, &one, None)
            }
            (Ok(_), Ok(other)) => self.loaded(group, 1, &other, None),
            (Ok(one), Err(bad)) => self.loaded(group, 0, &one, Some(bad)),
            (Err(bad), Ok(other)) => self.loaded(group, 1, &other, Some(bad)),
            (Err(one), Err(other)) => {
                let bad = [one, other];
                // First written is slot 0. With nothing in the other, either that was for a
                // checkpoint that never became valid, and the group is blank; or the seal breaks.
                if !bad[1].is_blank() {
                    return Err(Error::Group { group, slots: bad });
                }
                Loaded {
                    state: match bad[0].is_blank() {
                        true => State::fresh(&self.layout, group),
                        false => State::rebuilt(&self.layout, group),
                    },
                    suspect: bad[0].is_damage(),
                }
            }
        };
        self.put(group, loaded);
        Ok(())
    }

    fn loaded(&self, group: u64, index: usize, slot: &Slot, other: Option<SlotError>) -> Loaded {
        let unfinished = matches!(other, Some(SlotError::Unfinished { .. }));
        Loaded {
            state: State::loaded(&self.layout, group, index, slot, unfinished),
            suspect: other.is_some_and(|other| other.is_damage()),
        }
    }

    /// Begins a group without its bitmap, all its blocks free: the caller marks what the trees
    /// refer to as [used](Space::mark_used), all of it. The seal cannot be checked then.
    pub fn rebuild(&mut self, group: u64) {
        let state = State::rebuilt(&self.layout, group);
        self.put(
            group,
            Loaded {
                state,
                suspect: true,
            },
        );
    }

    fn put(&mut self, group: u64, loaded: Loaded) {
        let place = usize::try_from(group)
            .ok()
            .and_then(|group| self.groups.get_mut(group));
        if let Some(place) = place {
            *place = Some(loaded);
        }
    }

    /// The space of the volume, if the bitmaps are those that the superblock means. With no seal
    /// they are taken as they are: after [`rebuild`](Self::rebuild), or to look at a damaged volume.
    ///
    /// # Errors
    /// [`Error::Stale`]; [`Error::Layout`] if a group was never added.
    pub fn finish(self, seal: Option<Seal>) -> Result<Arc<Space>, Error> {
        let layout = self.layout;
        Ok(Space::of(layout, self.states(seal)?))
    }

    /// As [`finish`](Self::finish), the groups alone.
    pub(super) fn states(self, seal: Option<Seal>) -> Result<Vec<State>, Error> {
        let mut suspects = Vec::new();
        let mut found = Seal::default();
        let mut states = Vec::with_capacity(self.groups.len());
        for (group, loaded) in self.groups.into_iter().enumerate() {
            let Some(loaded) = loaded else {
                return Err(Error::Layout {
                    reason: "a group was not read",
                });
            };
            if loaded.suspect {
                suspects.push(group as u64);
            }
            found.fingerprint ^= loaded.state.print();
            found.free += u64::from(loaded.state.free());
            states.push(loaded.state);
        }
        if seal.is_some_and(|seal| seal != found) {
            return Err(Error::Stale { suspects });
        }
        Ok(states)
    }
}
