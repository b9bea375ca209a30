//! Names in order: found by key or by order, by readers that take no lock and write nothing.
//!
//! A [`DirIndex`] has three forms: empty (no memory at all), small (up to 31 slots, searched one by
//! one) and big (more slots, and a hash table). Each name is an item with memory of its own, which
//! no form ever moves. A form changes by building the next one and publishing it with one store.
//!
//! *Invariants.* A key occurs once. The caller of `insert` gives the orders; each is greater than
//! all before. Every operation leaves a whole index behind. A name is found by key from a moment
//! before it is listed until a moment before it is listed no more.
//!
//! *Locking.* There is one writer at a time, which holds a lock of one byte. Readers need only a
//! guard, and what is taken out is freed after their guards. While two names change together (a
//! rename), readers of these names wait.

mod body;
mod dir_index;
mod grow;
mod hash;
mod item;
mod iter;
mod load;
mod outcome;
mod reshape;
mod row;
mod segment;
mod slot;
mod table;
mod update;
mod writer;

pub use dir_index::DirIndex;
pub use item::Item;
pub use iter::Items;
pub use outcome::{InsertError, Removed};
pub use writer::DirIndexWriter;
