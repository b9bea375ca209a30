//! Volumes by their public operations: on memory devices, on files, and under the core.

mod asking;
mod check;
mod cookies;
mod extents;
mod failed_commit;
mod file_flags;
mod fragments;
mod full;
mod host;
mod idle;
mod images;
mod opening;
mod past;
mod promised;
mod replay;
mod scans;
mod sizes;
mod spaces;
mod stage;
mod superblocks;
mod through_core;
mod used;
mod written;
