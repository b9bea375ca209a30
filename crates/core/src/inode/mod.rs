//! The inode: the in-memory object of a file.
//!
//! *Invariants.* Number, type and device number never change. Its references ([`crate::Node`]s,
//! open files, the lookup counts of a front end's kernel) are counted by the index. An inode with
//! `nlink == 0` is an *orphan*: it is marked in the index, which frees it with its last reference.
//! That mark and `nlink` change together, under the lock of the attributes.
//!
//! *Locking.* See `docs/locking.md`: the lock of a directory's names, or of a file's pages,
//! precedes that of the attributes. The lock of the attributes is a leaf, and no thread holds two.
//! Attributes, extended attributes and ACLs are read without it.

mod aging;
pub(crate) mod bits;
mod change;
mod charged;
mod extension;
pub(crate) mod loaded;
mod marks;
mod meta;
mod numbered;
mod object;
mod protection;
mod space;
mod values;

pub(crate) use bits::ContentState;

pub(crate) use aging::{Epochs, Part, Scanned};
pub(crate) use change::MetaWrite;
pub(crate) use extension::{Content, DirectoryBody, Extension, ExtraAttrs, View};
pub(crate) use holdfast_cache::Set;
pub(crate) use marks::time_of_changes;
pub(crate) use meta::Meta;
pub(crate) use numbered::Numbered;
pub(crate) use object::{Inode, Object, WHOLE, directory_names, directory_size};
pub(crate) use values::{kept_values, value};
