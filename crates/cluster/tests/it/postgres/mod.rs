//! The engine PostgreSQL, on servers of the tests' own.

mod beside;
mod bounds;
mod broken;
mod build;
mod concurrent;
mod conforms;
mod killed;
mod model;
mod plans;
mod proxy;
mod server;
mod sessions;
mod tls;
mod waiting;
