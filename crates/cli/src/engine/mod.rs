//! Work on whole trees that goes into the engine as one: copying, removing, packing, unpacking, other owners
//! and modes. A mount is asked to do it inside its daemon, past the kernel; a volume that is not mounted
//! is opened here. Both run the same [`Job`].
//!
//! The way to a daemon: an ioctl(2) on the root directory, which only the daemon of that mount can answer,
//! gives the name of a socket made for this one job, and tells the daemon which process asks. On the socket come the
//! job and the archive's descriptor; back come progress, failures of single names, and the end. The daemon
//! checks that the socket's peer is the process that asked; the job has that process's rights, and ends when
//! the socket does.

pub(crate) mod archive;
mod client;
mod compression;
pub(crate) mod daemon;
mod job;
pub(crate) mod names;
mod relay;
mod run;
mod shown;
mod socket;
mod stream;
pub(crate) mod trees;

pub(crate) use client::{Inside, perform};
pub(crate) use job::{Job, RawPath};
