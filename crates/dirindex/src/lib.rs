//! The directory index: the names of one directory in the order of their cookies, found by name or
//! by cookie.
//!
//! A [`DirIndex`] has one writer at a time. Readers take no lock, and write no memory that another
//! thread reads.

mod index;
mod primitive;

pub use index::{DirIndex, DirIndexWriter, InsertError, Item, Items, Removed};
// Models put epochs of their own here.
use holdfast_sync::epoch;
