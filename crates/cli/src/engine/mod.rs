//! Operations on whole trees: copying, removing, packing, unpacking, changing owners and modes. The
//! daemon of a mount does them in its own process, without kernel requests. A volume that is not
//! mounted is opened by the command. Both run the same [`Job`].
//!
//! The command reaches the daemon by an ioctl(2) on the root directory, which only the daemon of
//! that mount can answer. The answer is the name of a socket made for this one job; the ioctl tells
//! the daemon which process asks. The command sends the job and the archive's descriptor over the
//! socket. The daemon sends progress, failures of single names, and the end. The daemon checks that
//! the socket's peer is the process that asked. The job has the rights of that process, and ends
//! when the socket is closed.

pub(crate) mod archive;
mod batch;
mod client;
mod compression;
pub(crate) mod daemon;
mod job;
mod listing;
pub(crate) mod names;
mod relay;
mod run;
mod shown;
mod socket;
mod stream;
pub(crate) mod trees;

pub(crate) use client::{Inside, perform};
pub(crate) use job::{Job, RawPath};
