//! A file system of several machines as the source of a mount.

use super::options::Plan;
use crate::cluster::report;
use crate::cluster::{client, environment, failure};
use crate::info::report::ClusterUse;
use crate::message::{Failure, Result};
use holdfast::{AtimePolicy, FileSystem, Options, engine, engine::store::Store};
use holdfast_cluster::address::Address;
use holdfast_cluster::{ClusterStore, FileOptions, Tree};
use holdfast_fuse::{Config, KeptContent, mount::AtimeOption};
use std::sync::Arc;
use std::time::Duration;

/// How long calls wait for the database by default.
const RETRY: Duration = Duration::from_secs(30);

/// An open file system.
pub(super) struct Mounted {
    pub(super) fs: FileSystem,
    store: Arc<ClusterStore>,
    tree: Arc<Tree>,
}

impl Mounted {
    /// Begins a session.
    ///
    /// # Errors
    /// If the database or the bucket cannot be used.
    pub(super) fn open(address: &Address, plan: &Plan) -> Result<Self> {
        let mut client = client(plan.retry.unwrap_or(RETRY));
        client.bucket_retry = plan.retry.unwrap_or(client.bucket_retry);
        let opened = Tree::open(address, &environment(), &client);
        let tree = opened.map_err(|error| failure(address, &error))?;
        let defaults = FileOptions::default();
        let files = FileOptions {
            dirty: plan.dirty,
            cache: plan.cache_dir.clone(),
            cache_size: plan.cache_size.unwrap_or(defaults.cache_size),
            retry: plan.retry.unwrap_or(defaults.retry),
        };
        let started = tree
            .open_store(files)
            .map_err(|error| match &plan.cache_dir {
                Some(dir) => Failure::of(&error).at(dir),
                None => Failure::of(&error).about(address),
            });
        let made = started.and_then(|store| {
            // Reading moves no times: that would be a change by each reader.
            let options = Options {
                atime: AtimePolicy::None,
                ..plan.core
            };
            let core = engine::FileSystem::new(Arc::clone(&store) as _, options);
            let core = core.map_err(|error| crate::cluster::refusal(address, error))?;
            Ok((store, FileSystem::from_core(core)))
        });
        let (store, fs) = made.inspect_err(|_| crate::cluster::end(&tree))?;
        let tree = Arc::new(tree);
        Ok(Self { fs, store, tree })
    }

    /// The kernel keeps an answer for one half of its validity, the core for the other. Of what the
    /// core is notified of, the kernel is notified as well.
    pub(super) fn configure(&self, config: &mut Config) {
        let valid = self.tree.settings.lease / 2;
        config.no_open = false;
        config.content = KeptContent::ByAttributes;
        config.entry_timeout = valid;
        config.attr_timeout = valid;
        // Another machine makes the file that a program waits for.
        config.negative_timeout = Duration::ZERO;
        config.notified_timeout = self
            .tree
            .settings
            .notifies
            .then_some(self.tree.settings.lease);
        config.cache_listings = false;
        config.interruptible = true;
        config.mount.atime = AtimeOption::None;
    }

    /// Asks the database for the report, at each call.
    pub(super) fn reporter(&self) -> Box<dyn Fn() -> Option<ClusterUse> + Send + Sync> {
        let tree = Arc::clone(&self.tree);
        Box::new(move || match report::of(&tree) {
            Ok(found) => Some(found),
            Err(error) => {
                tracing::info!("the database was not asked for a report: {error}");
                None
            }
        })
    }

    /// Writes what waits, and ends the session.
    pub(super) fn close(self, source: &str) -> Result<()> {
        let written = self.store.commit(None);
        crate::cluster::end(&self.tree);
        written.map_err(|error| {
            let text = format!("what was written last is not stored: {error}");
            Failure::new(text).about(source)
        })
    }
}
