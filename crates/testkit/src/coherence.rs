//! Changes made to a directory of the host, beside readers of its mount.
//!
//! Writers change names below the mount: files, symbolic links, directories, pipes. Every state of
//! a name has a version that no other state has, and the history of a name says when it had which.
//! Readers look at names through the mount while they change. What a reader sees must be a state
//! that the name had after the promised time before the look began. Once a name has rested for that
//! time, it must be seen as it is.

mod change;
pub mod command;
mod look;
mod name;
mod run;
