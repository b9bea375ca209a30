//! An existing directory of the host as a store.
//!
//! [`HostDirectory`] shows the core a directory of any file system of the host, with all below it on the same mount. What the host answers slowly
//! is asked for in batches, by many threads at once, and kept by the core within its memory. It is a store that finds inodes by their
//! names and that others may change ([`Shared`]).
//!
//! *Numbers* are the host's, see `numbers.rs`. *Places*: for each inode that the core has, its directory, name and identity are known,
//! and nothing is open; see `places.rs` and `host.rs`. *Coherence*: the host's directory is this process's alone
//! ([`Coherence::Exclusive`]), or what it told holds for a time, or until it tells of a change (`told/`). *Links* are never followed, and another mount below is
//! shown and not entered (`EXDEV`).
//!
//! *Changes* are made on the host first, by the thread that wants one, as its caller where this process may be others (`perform/`, `acting.rs`).
//!
//! A host that does not answer keeps those waiting that asked it, and nothing else.
//!
//! [`Shared`]: holdfast_core::store::Shared
//! [`Coherence::Exclusive`]: holdfast_core::store::Coherence::Exclusive

mod acting;
mod attributes;
mod descriptors;
mod held;
mod host;
mod identity;
mod lanes;
mod listing;
mod member;
mod numbers;
mod one_name;
mod perform;
mod places;
mod record;
mod store;
mod sys;
mod together;
mod told;

pub use store::{HostDirectory, Options};
