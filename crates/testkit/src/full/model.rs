//! What a file system should hold.

use std::collections::BTreeMap;

/// Bytes of a file that may have no pages in the store.
const SMALL: usize = 2048;

/// A name of the one directory that all is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Thing {
    pub(super) kind: Kind,
    /// The bytes of a file, or a target.
    pub(super) bytes: Vec<u8>,
    pub(super) values: BTreeMap<String, Vec<u8>>,
    /// Was it so small once that a store keeps it without pages? Of such a file it does not know
    /// which of them were holes.
    pub(super) small: bool,
    /// Was it changed, or made, since the last sync?
    pub(super) touched: bool,
}

/// What a name leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    File,
    Symlink,
    Directory,
    /// One of several names: such a file is not written.
    Link,
}

/// All names.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) things: BTreeMap<String, Thing>,
    /// Names that went since the last sync.
    pub(super) gone: Vec<String>,
}

impl Model {
    /// All that was done is durable.
    pub(super) fn synced(&mut self) {
        self.gone.clear();
        for thing in self.things.values_mut() {
            thing.touched = false;
        }
    }

    pub(super) fn put(&mut self, name: &str, thing: Thing) {
        let thing = Thing {
            small: thing.small || (1..=SMALL).contains(&thing.bytes.len()),
            touched: true,
            ..thing
        };
        self.things.insert(name.to_owned(), thing);
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Thing> {
        let thing = self.things.remove(name)?;
        self.gone.push(name.to_owned());
        Some(thing)
    }
}
