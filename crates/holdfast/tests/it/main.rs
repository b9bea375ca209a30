//! The public interface of the library.

mod archives;
mod concurrency;
mod handles;
mod listing;
mod open_files;
mod quota;
mod revoke;
mod side_by_side;
mod volumes;
