//! The file system that a pair is tried on, and the places in it.

use holdfast_core::types::{Caller, OpenFlags, Result};
use holdfast_core::{FileSystem, Node, Options};

use crate::placement::Placement;
use crate::setup::{Setup, own_name};
use crate::store::StoreKind;

/// An ordinary user: nothing is skipped because of capabilities.
const USER: u32 = 1000;
/// Names that a directory holds before the first operation.
const MANY: usize = 1000;
const FEW: usize = 4;
/// Pages of a file that both sides use, and of others.
const SHARED_PAGES: u64 = 256;
const OWN_PAGES: u64 = 4;
/// The side that makes what is shared: neither.
const NOBODY: usize = 2;

/// What both sides share.
pub(crate) struct Stage {
    fs: FileSystem,
    placement: Placement,
}

/// One side's part; made and used on its own thread.
pub(crate) struct Home {
    who: Caller,
    side: usize,
    root: Node,
    own: Node,
    extra: Node,
}

impl Stage {
    /// A new file system, with what is shared for as many rounds.
    ///
    /// # Errors
    /// What the calls answer.
    pub(crate) fn new(placement: Placement, rounds: usize, store: StoreKind) -> Result<Self> {
        let options = Options {
            root_uid: Some(USER),
            root_gid: Some(USER),
            ..Options::default()
        };
        let fs = store.file_system(options)?;
        fs.hold_epochs();
        let stage = Self { fs, placement };
        let (fs, who) = (&stage.fs, user());
        let top = fs.mkdir(&who, &fs.root(), b"top", 0o755)?;
        match placement {
            Placement::Directories => {}
            Placement::Small => {
                for round in 0..rounds {
                    stage.shared_directory(&top, &shared_name(placement, round), FEW)?;
                }
            }
            _ => stage.shared_directory(&top, &shared_name(placement, 0), MANY)?,
        }
        if placement.shares_objects() {
            let home = stage.home(NOBODY)?;
            for round in 0..rounds {
                stage.setup(&home, round)?.make_objects(SHARED_PAGES)?;
            }
        }
        Ok(stage)
    }

    fn shared_directory(&self, top: &Node, name: &[u8], names: usize) -> Result<()> {
        let (fs, who) = (&self.fs, user());
        let dir = fs.mkdir(&who, top, name, 0o755)?;
        let flags = OpenFlags::WRITE_ONLY;
        for index in 0..names {
            fs.create(&who, &dir, &own_name("filler", NOBODY, index), 0o644, flags)?;
        }
        Ok(())
    }

    /// The part of a side: directories of its own.
    ///
    /// # Errors
    /// What the calls answer.
    pub(crate) fn home(&self, side: usize) -> Result<Home> {
        let (fs, who) = (&self.fs, user());
        let root = fs.root();
        let top = fs.lookup(&who, &root, b"top")?;
        let make = |what| match fs.mkdir(&who, &top, &own_name(what, side, 0), 0o755) {
            Err(holdfast_core::types::Errno::EEXIST) => {
                fs.lookup(&who, &top, &own_name(what, side, 0))
            }
            made => made,
        };
        let (own, extra) = (make("own")?, make("spare")?);
        Ok(Home {
            who,
            side,
            root,
            own,
            extra,
        })
    }

    /// Makes the objects that are the side's own, for as many rounds.
    ///
    /// # Errors
    /// What the calls answer.
    pub(crate) fn make_objects(&self, home: &Home, rounds: usize) -> Result<()> {
        if self.placement.shares_objects() {
            return Ok(());
        }
        for round in 0..rounds {
            self.setup(home, round)?.make_objects(OWN_PAGES)?;
        }
        Ok(())
    }

    /// Lets the access times of all objects come to rest.
    ///
    /// # Errors
    /// What the calls answer.
    pub(crate) fn settle(&self, home: &Home, rounds: usize) -> Result<()> {
        for round in 0..rounds {
            self.setup(home, round)?.settle()?;
        }
        Ok(())
    }

    /// The place of a side in one round.
    ///
    /// # Errors
    /// What the calls answer.
    pub(crate) fn setup(&self, home: &Home, round: usize) -> Result<Setup> {
        let (dir, dir_name) = if self.placement == Placement::Directories {
            (home.own.clone(), own_name("own", home.side, 0))
        } else {
            let name = shared_name(self.placement, round);
            let path = [b"top/".as_slice(), &name].concat();
            (self.fs.resolve(&home.who, &home.root, &path, true)?, name)
        };
        let owner = if self.placement.shares_objects() {
            NOBODY
        } else {
            home.side
        };
        Ok(Setup {
            fs: self.fs.clone(),
            who: home.who.clone(),
            side: home.side,
            round,
            root: home.root.clone(),
            dir,
            dir_path: [b"top/".as_slice(), &dir_name].concat(),
            extra: home.extra.clone(),
            file: own_name("object", owner, round),
            link: own_name("link", owner, round),
            page: self.page(home.side, round),
        })
    }

    /// Pages are dealt at random, the same in every run: pages far apart and neighbours.
    fn page(&self, side: usize, round: usize) -> u64 {
        match self.placement {
            Placement::Pages => {
                let first = scatter(round as u64) % SHARED_PAGES;
                let distance = 1 + scatter(round as u64 + 1000) % (SHARED_PAGES - 1);
                (first + side as u64 * distance) % SHARED_PAGES
            }
            Placement::Object => 0,
            _ => 1,
        }
    }
}

fn user() -> Caller {
    Caller::user(USER, USER)
}

fn shared_name(placement: Placement, round: usize) -> Vec<u8> {
    let round = if placement == Placement::Small {
        round
    } else {
        0
    };
    own_name("shared", NOBODY, round)
}

/// A number that looks like chance (the finalizer of MurmurHash3).
fn scatter(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ (bits >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_never_get_the_same_page() -> Result<()> {
        let stage = Stage::new(Placement::Pages, 1, StoreKind::Volume)?;
        for round in 0..200 {
            assert_ne!(stage.page(0, round), stage.page(1, round));
        }
        Ok(())
    }

    #[test]
    fn every_operation_can_be_carried_out_wherever_it_is_paired() {
        for placement in Placement::ALL {
            let stage = Stage::new(placement, 100, StoreKind::Memory).expect("a stage");
            let homes = [0, 1].map(|side| {
                let home = stage.home(side).expect("a home");
                stage.make_objects(&home, 100).expect("objects");
                home
            });
            for home in &homes {
                stage.settle(home, 100).expect("settled");
            }
            let mut tried = Vec::new();
            for pair in crate::placement::Pair::all() {
                for (operation, home) in pair.sides.iter().zip(&homes) {
                    let key = (operation.name, home.side);
                    if pair.placement != placement || tried.contains(&key) {
                        continue;
                    }
                    let setup = stage.setup(home, tried.len()).expect("a setup");
                    let mut action = (operation.prepare)(setup).expect(operation.name);
                    action().expect(operation.name);
                    tried.push(key);
                }
            }
        }
    }
}
