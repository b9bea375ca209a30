//! Devices by their public operations.

mod block;
mod file;
mod model;
mod threads;
