//! The names of one directory.
//!
//! Names are kept in the order of their cookies: a listing that stopped at a cookie continues
//! behind it, whatever was added or removed meanwhile. Lookups and listings take no lock and write
//! nothing. A rename within the directory is atomic for readers: they find the old name or the new
//! one, never both and never neither.
//!
//! A change of the directory locks its names ([`Directory::write`]); changes are serialized. The
//! lock's place in the order is in `docs/locking.md`.
//!
//! *Invariants.* The cookie of a new name is greater than all before it, so a listing meets the
//! name behind the older ones. A directory that is `dead` has no names and gets none.
//!
//! Over a store the names need not all be in memory: see [`Residency`]. Then a lookup tries the
//! [known names](partial) first, and asks the store for others.

mod changes;
mod filter;
mod index;
mod loaded;
mod names;
mod partial;
mod place;
mod state;

pub(crate) mod entry;
#[cfg(test)]
mod tests;

pub(crate) use entry::{COOKIE_END, Entry, FIRST_COOKIE};
pub(crate) use index::Directory;
pub(crate) use loaded::Loaded;
pub(crate) use names::Names;
pub(crate) use partial::Known;
pub(crate) use state::{Residency, Seen};
