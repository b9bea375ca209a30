//! Attributes: reading them, changing them, the times that reading moves.

mod atime;
mod flags;
mod get;
mod set;
