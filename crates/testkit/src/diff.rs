//! The differential tester: the same random operations against the library and against the
//! host kernel's tmpfs, compared after every step.
//!
//! A *target* runs operations as one of a fixed cast of callers. An inspector reads its state and
//! leaves no trace. The *generator* makes operations that collide: few
//! names, few directories, callers with overlapping rights. The *run* compares results and
//! every affected object, and keeps the list of operations; the *shrinker* replays that list
//! with operations dropped until a short sequence is left. Where the kernel decides freely,
//! [`freedoms`] says so, and why.
//!
//! tmpfs has no ZERO_RANGE, COLLAPSE_RANGE and INSERT_RANGE: those are held against a naive
//! image of the bytes in [`crate::fsx`].

pub mod cast;
pub mod command;
pub mod freedoms;
pub mod generate;
pub mod host;
pub mod library;
pub mod op;
pub mod outcome;
pub mod remote;
pub mod run;
pub mod shrink;
pub mod target;
pub mod view;

mod compare;
