//! Names: looking them up, creating, linking, removing and renaming them.
//!
//! *Locking.* A change of a directory's names holds their lock from the lookup to the events, so
//! that events and changes have one order. A directory that is removed is locked after its parent.
//! Only a rename locks two directories, under the rename lock. The lock of `meta`, with times and
//! counts, is a leaf.

pub(crate) mod create;
pub(crate) mod find;
pub(crate) mod link;
pub(crate) mod load;
pub(crate) mod lock;
pub(crate) mod lookup;
pub(crate) mod new_inode;
pub(crate) mod pair;
pub(crate) mod publish;
pub(crate) mod refused;
pub(crate) mod remove;
pub(crate) mod rename;
pub(crate) mod rename_apply;
pub(crate) mod rename_args;
pub(crate) mod rename_through;
pub(crate) mod window;

pub(crate) use create::check_target;
pub(crate) use lookup::dangling;
pub(crate) use new_inode::NewInode;
pub(crate) use rename_args::{End, check_flags};

use crate::namespace::load::hold_name;
