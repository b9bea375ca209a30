//! One tree for many machines, as a store of the core.
//!
//! Names, attributes and maps of files lie in a database ([`meta::Meta`]), bytes in an object store
//! ([`objects::Objects`]). Each machine runs the same mount; there is no server of Holdfast's own.
//! The store finds inodes by their names, is written through, and others change it
//! ([`Shared`](holdfast_core::store::Shared)).

pub mod address;
mod answers;
mod bounded;
mod check;
mod connections;
mod content;
mod ini;
mod listings;
pub mod memory;
pub mod meta;
mod numbers;
pub mod objects;
mod perform;
pub mod postgres;
mod recent;
mod session;
mod shared;
mod store;
mod sweep;
mod tree;

pub use content::FileOptions;
pub use store::ClusterStore;
pub use tree::{Client, Collected, Tree, TreeError};
