//! The conformance suite: named cases, one claim each, for everything that calls itself a file
//! system.
//!
//! The suite runs over the library with any store and over a mount of it. It also runs over the
//! host's own file systems, which shows that its claims hold elsewhere too.
//!
//! A case works through a [`Bench`]: the callers of the usual cast, a directory of its own, and
//! operations with their expected results.

mod access;
mod bench;
mod content;
mod directories;
mod limits;
mod locks;
mod names;
mod subject;
mod times;

pub use bench::{Bench, Check};
pub use subject::{LibrarySubject, Subject};

use std::sync::Arc;

/// One claim about a file system.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The claim, as a name.
    pub name: &'static str,
    /// Do callers other than the superuser act in it? Over FUSE this needs `allow_other`.
    pub users: bool,
    /// Holds the subject to it.
    pub run: fn(&Bench) -> Check,
}

impl Case {
    const fn new(name: &'static str, run: fn(&Bench) -> Check) -> Self {
        Self {
            name,
            users: false,
            run,
        }
    }

    const fn with_users(name: &'static str, run: fn(&Bench) -> Check) -> Self {
        Self {
            name,
            users: true,
            run,
        }
    }
}

/// All cases.
#[must_use]
pub fn all() -> Vec<Case> {
    [
        names::CASES,
        directories::CASES,
        content::CASES,
        times::CASES,
        access::CASES,
        locks::CASES,
        limits::CASES,
    ]
    .concat()
}

/// Runs cases over a subject, each in a directory of its own, and answers what did not hold.
///
/// The directories are left behind where a case fails or leaves something.
#[must_use]
pub fn failures(subject: &Arc<dyn Subject>, cases: &[Case]) -> Vec<String> {
    let mut failures = Vec::new();
    for case in cases {
        let held = Bench::new(Arc::clone(subject), case.name).and_then(|bench| {
            (case.run)(&bench)?;
            bench.clear()
        });
        if let Err(what) = held {
            failures.push(format!("{}: {what}", case.name));
        }
    }
    failures
}
