//! Sessions and transports, most of them with a real mount.

mod core_mount;
mod damaged;
mod file_handles;
mod prefetch;
mod requests;
mod revoke;
mod set_id;
mod support;
mod transports;
