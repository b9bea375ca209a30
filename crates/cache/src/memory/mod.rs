//! The memory of a process: one budget, over everything that its file systems hold.
//!
//! A *member* holds memory: a file system for what its store can bring back, a volume for what it
//! has not written yet and for the nodes of its trees. Members count what they hold, by [`Class`],
//! and keep to the limit that they are given. What can be freed at any time has
//! [shrinkers](Memory::shrinkers). The limit is the budget less what no member counts: the program
//! itself, stacks, and the allocator's losses. A process that holds nothing else
//! ([`Memory::follow`]) measures that by its resident memory; in other processes it is not counted.
//!
//! A thread that adds memory [looks](Memory::look) whenever it has added a part of the limit. A
//! followed process also looks ten times a second while memory is being added, and frees the
//! excess: a thread may add to classes that it cannot free.
//!
//! *Locking.* Callers of `look` hold no lock. `state` is the outermost lock here; below it are only
//! the locks in which members count. Memory is freed with no lock held.

mod budget;
mod class;
mod feedback;
mod follow;
pub mod host;
mod resident;
mod wakeup;

pub use budget::{AMPLE, Member, Memory, Seen};
pub use class::{Class, Usage};
pub use follow::ReclaimThread;
