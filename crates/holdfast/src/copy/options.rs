//! What a copy is asked for, and what it reports.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::counts::{Copied, CopyError};

/// Options of a copy.
#[derive(Clone, Debug, Default)]
pub struct CopyOptions {
    /// Device and number of a host file to skip, such as the image copied into.
    pub skip: Option<(u64, u64)>,
    /// Once true, the copy ends with `ECANCELED`.
    pub stop: Option<Arc<AtomicBool>>,
}

/// An event of a copy.
#[derive(Debug)]
pub enum CopyEvent<'c> {
    /// The counts so far.
    Progress(&'c Copied),
    /// One name failed; the copy goes on.
    Failed(&'c CopyError),
    /// A remark about a name that was copied.
    Warning {
        /// Its path.
        path: &'c Path,
        /// The remark.
        text: &'c str,
    },
    /// A name below the top was skipped, as the options demand.
    Skipped(&'c Path),
}
