//! The library for C: `libholdfast` and `holdfast.h`.
//!
//! `exports.rs` is the table of the functions that C calls. Each one turns its arguments into safe
//! types (`sys.rs`), and runs at the border (`border.rs`), where a panic ends and an error becomes
//! `-errno` and the text of `hf_last_error`. Handles are numbers of a table (`objects.rs`). All
//! rules of POSIX are those of the crate `holdfast`.

mod attributes;
mod border;
mod bulk;
mod calls;
mod exports;
mod failure;
mod files;
mod grow;
mod listing;
mod objects;
mod open;
mod sys;
pub mod types;
mod warm;
mod xattr;
