//! Attributes: reading them, changing them, the times that reading moves.

mod atime;
mod get;
mod set;
