//! The directory index: the names of one directory in the order of their cookies, found by name or
//! by cookie.
//!
//! A [`Catalog`] has one writer at a time. Readers take no lock, and write no memory that another
//! thread reads.

mod catalog;
mod catalog_primitive;

pub use catalog::{Catalog, CatalogWriter, InsertError, Item, Items, LookupHint, NewName, Removed};
// Models put epochs of their own in this place.
use holdfast_sync::epoch;
