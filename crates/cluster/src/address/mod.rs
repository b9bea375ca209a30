//! The address of a file system: `pg://USER@HOST:PORT/DATABASE?fs=NAME&bucket=s3://...`.
//!
//! An address names a database as libpq's URLs do, a schema in it, and how TLS is used. What it
//! leaves open comes from the [environment](Environment), as libpq reads it.
//!
//! *Secrets.* An [`Address`] is displayed without its password, and so are its errors.

mod complete;
mod environment;
mod passfile;
mod secret;
mod url;

pub use complete::{Complete, SslMode};
pub use environment::Environment;
pub use secret::Secret;
pub use url::{Address, AddressError};

#[cfg(test)]
mod tests;
