//! What tests need to mount something.

pub(crate) use holdfast_testkit::mount::{config, unmount};
