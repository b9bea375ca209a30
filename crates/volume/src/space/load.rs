use super::group::State;
use super::recorded::recorded;
use super::slot::Block;
use super::{Error, Layout, Seal, SlotError};

/// Loads the bitmaps of a volume, group by group in any order, in batches that suit the device.
///
/// An unusable slot is no error by itself: a checkpoint interrupted by a crash leaves one. Whether
/// a *newer* bitmap was lost is decided at the end, by the superblock's [`Seal`].
#[derive(Debug)]
pub struct Loader {
    pub(super) layout: Layout,
    generation: u64,
    groups: Vec<Option<Loaded>>,
}

#[derive(Debug)]
struct Loaded {
    state: State,
    suspect: bool,
}

impl Loader {
    /// Begins with the layout of the superblock of `generation`. The caller has checked that the
    /// device is large enough.
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

    /// The number of groups.
    #[must_use]
    pub fn groups(&self) -> u64 {
        self.layout.groups()
    }

    /// The blocks of a group's two slots, which are adjacent. Those of the groups of a flex group
    /// are adjacent as well, in order.
    #[must_use]
    pub fn slots(&self, group: u64) -> [u64; 2] {
        [0, 1].map(|slot| self.layout.slot(group, slot))
    }

    /// Takes the content of a group's slots: the newer of the bitmaps that the superblock may mean,
    /// or an unused group if none was ever written.
    ///
    /// # Errors
    /// [`Error::Group`] if the slots are damaged.
    pub fn add(&mut self, group: u64, slots: [&Block; 2]) -> Result<(), Error> {
        let found = recorded(&self.layout, group, self.generation, slots);
        let found = found.map_err(|slots| Error::Group { group, slots })?;
        let suspect = found.is_suspect();
        let state = match (&found.words, found.slot, &found.other) {
            (Some(words), Some(slot), other) => {
                let unfinished = matches!(other, Some(SlotError::Unfinished { .. }));
                State::loaded(&self.layout, group, words, (slot, found.print), unfinished)
            }
            (.., Some(error)) if !error.is_blank() => State::rebuilt(&self.layout, group),
            _ => State::fresh(&self.layout, group),
        };
        let place = usize::try_from(group)
            .ok()
            .and_then(|group| self.groups.get_mut(group));
        if let Some(place) = place {
            *place = Some(Loaded { state, suspect });
        }
        Ok(())
    }

    /// The groups, if the bitmaps match the seal.
    ///
    /// # Errors
    /// [`Error::Stale`]; [`Error::Layout`] if a group was never added.
    pub(super) fn states(self, seal: Seal) -> Result<Vec<State>, Error> {
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
        if seal != found {
            return Err(Error::Stale { suspects });
        }
        Ok(states)
    }
}
