//! Trees against a `BTreeMap`.

mod model;
mod sample;
