//! Trees against a `BTreeMap`, against damage, against failing devices.

mod damage;
mod failures;
mod format;
mod memory;
mod model;
mod reading;
mod sample;
mod sizes;
