//! A handle of one file system, and its options.

use std::sync::Arc;

use crate::core::Core;
use crate::node::Node;
use crate::options::Options;
use crate::registry::RouteGuard;

/// A file system: a handle that is cheap to clone.
#[derive(Clone)]
pub struct FileSystem {
    pub(crate) core: Arc<Core>,
    /// Dropped with the last handle.
    pub(crate) route: Arc<RouteGuard>,
}

impl FileSystem {
    /// The options in force.
    #[must_use]
    pub fn options(&self) -> Options {
        *self.core.options.read()
    }

    /// Changes the options (a remount). Those of the root directory have no effect.
    pub fn set_options(&self, options: Options) {
        let mut held = self.core.options.write();
        self.core.policy.set(&options);
        if options.memory.is_some() {
            self.core.reclaim.memory.set(options.memory);
        }
        *held = options;
    }

    /// The root directory.
    ///
    /// # Panics
    /// Never: the root is referenced from the start.
    #[must_use]
    pub fn root(&self) -> Node {
        self.core
            .root
            .get()
            .cloned()
            .expect("the root is always there")
    }
}
