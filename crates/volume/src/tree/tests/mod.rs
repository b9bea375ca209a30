//! Trees against a `BTreeMap`, against damage, against failing devices.

mod damage;
mod failures;
mod model;
mod sample;
mod sizes;
