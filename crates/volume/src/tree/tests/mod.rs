//! Trees against a `BTreeMap`, against damage, against failing devices.

mod damage;
mod failures;
mod format;
mod model;
mod reading;
mod sample;
mod sizes;
