//! The engine in memory: the model of a database, for tests and simulations.
//!
//! All state is under one lock, so each request and each question happens at one moment. Nothing is
//! durable.
//!
//! *Clock.* A database takes its time from the system, plus what a test [adds](Database::pass), or
//! [stands still](Database::stop_clock) but for that.

mod attributes;
mod check;
mod content;
mod garbage;
mod map;
mod names;
mod objects;
mod perform;
mod rename;
mod session;
mod sessions;
mod state;
mod transaction;

pub use objects::{Fault, MemoryObjects};

use crate::meta::{Meta, Settings};
use holdfast_types::Time;
use session::{MemorySession, Tables};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A database in memory. Sessions share it.
pub struct Database(Arc<Tables>);

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Database")
    }
}

impl Database {
    /// A file system with an empty root directory.
    #[must_use]
    pub fn new(settings: Settings) -> Arc<Self> {
        Arc::new(Self(Arc::new(Tables::new(settings))))
    }

    /// Begins a session.
    #[must_use]
    pub fn session(&self) -> Arc<dyn Meta> {
        Arc::new(MemorySession::begin(Arc::clone(&self.0)))
    }

    /// The clock stands still at a time, until the next [`pass`](Self::pass).
    pub fn stop_clock(&self, at: Time) {
        self.0.state.lock().clock.stop(at);
    }

    /// Time passes.
    pub fn pass(&self, time: Duration) {
        self.0.state.lock().clock.pass(time);
    }

    /// From now on, all calls of all sessions fail with `EIO`, and nothing happens; or not any
    /// more.
    pub fn set_unreachable(&self, unreachable: bool) {
        self.0.unreachable.store(unreachable, Ordering::SeqCst);
    }

    /// The database starts anew: what it kept of interest and messages is lost.
    pub fn restart(&self) {
        self.0.state.lock().restart();
    }
}

#[cfg(test)]
mod tests;
