//! The suites of the test kit over the whole of Holdfast.

mod conformance;
mod crash;
mod differential;
mod faults;
mod fsx;
mod full;
mod mangled;
mod mounted;
mod partial;
mod prefetch;
mod reading_once;
mod relief;
mod second_use;
mod slow_device;
mod statahead;
mod stores;
