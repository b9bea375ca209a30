//! A file system over a directory of the host.

mod bypass;
mod changes;
mod conforms;
mod durable;
mod notifications;
mod open;
mod random;
mod seen;
mod tree;
mod writes;

use holdfast_core::store::Coherence;
use holdfast_core::{FileSystem, Options as CoreOptions};
use holdfast_hostdir::{HostDirectory, Options};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Nothing is believed any longer than it takes to tell it.
const NEVER: Coherence = Coherence::For(Duration::ZERO);

/// What the host tells of is believed for very long, nothing else.
const NOTIFIED: Coherence = Coherence::Notified {
    valid: Duration::ZERO,
    notified: Duration::from_secs(3600),
};

fn over(root: &Path, coherence: Coherence) -> FileSystem {
    let options = Options {
        coherence,
        ..Options::default()
    };
    over_with(root, options)
}

fn over_with(root: &Path, options: Options) -> FileSystem {
    let store = HostDirectory::open(root, options).unwrap();
    FileSystem::new(Arc::new(store), CoreOptions::default()).unwrap()
}
