//! Attributes: reading and changing them, and the access times that reads move.

mod atime;
mod flags;
mod get;
mod set;
