//! Attributes: reading them, changing them, the times that reading moves.

mod atime;
mod flags;
mod get;
mod set;

pub(crate) use set::{event_of, perm_of_mode, perm_of_owner};
