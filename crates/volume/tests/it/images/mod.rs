//! Whole images of volumes: old ones that must open for ever, damaged ones that must do no harm, and
//! their repair.

mod corruption;
mod dumps;
mod golden;
mod sample;
mod snapshot;
mod sparse;
