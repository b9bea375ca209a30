//! Whole images of volumes: old ones that must stay readable, damaged ones, and their repair.

mod corruption;
mod dumps;
mod golden;
mod sample;
mod snapshot;
mod sparse;
