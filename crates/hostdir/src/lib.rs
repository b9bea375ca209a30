//! An existing directory of the host as a store.
//!
//! [`HostDirectory`] serves a directory of any file system of the host to the core, with everything
//! below it on the same mount. Slow answers of the host are requested in batches, by many threads
//! at once, and cached by the core within its memory budget. The store finds inodes by their names,
//! and others may change it ([`Shared`]).
//!
//! - *Numbers* are the host's, see `numbers.rs`.
//! - *Places*: for each inode that the core has, its directory, name and identity are known, and
//!   nothing
//!   is open; see `places.rs` and `host.rs`.
//! - *Coherence*: the host's directory is this process's alone ([`Coherence::Exclusive`]), or
//!   answers are
//!   valid for a time, or until the host notifies of a change (`watcher/`).
//! - *Links* are never followed. Another mount below is shown and not entered (`EXDEV`).
//!
//! *Changes* are made on the host first, by the thread of the operation. It acts as the caller, if
//! this process may change its credentials (`perform/`, `acting.rs`).
//!
//! A host that does not answer blocks only the threads that called it.
//!
//! [`Shared`]: holdfast_core::store::Shared
//! [`Coherence::Exclusive`]: holdfast_core::store::Coherence::Exclusive

mod acting;
mod attributes;
mod descriptors;
mod dirents;
mod fs_type;
mod held;
mod host;
mod identity;
mod listing;
mod member;
mod numbers;
mod one_name;
mod perform;
mod places;
mod pool;
mod record;
mod store;
mod sys;
mod together;
mod watcher;

pub use store::{HostDirectory, Options};
