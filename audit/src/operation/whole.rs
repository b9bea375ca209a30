//! Operations on the file system as a whole.

use super::Operation;
use super::Trait::{Reads, TellsSpace};

pub(super) const WHOLE: &[Operation] = &[
    Operation {
        name: "statfs",
        traits: &[Reads, TellsSpace],
        prepare: |s| Ok(Box::new(move || s.fs.statfs().map(drop))),
    },
    Operation {
        name: "sync",
        traits: &[Reads],
        prepare: |s| Ok(Box::new(move || s.fs.sync())),
    },
];
