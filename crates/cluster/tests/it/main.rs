//! The engines, and the store over them.

mod conforms;
mod copies;
mod counting;
mod dirty;
mod machines;
mod model;
mod mounted;
mod notified;
mod overtaken;
mod postgres;
mod receiver;
mod requests;
mod staleness;
mod trips;

use counting::Counting;
use holdfast_cluster::memory::{Database, MemoryObjects};
use holdfast_cluster::meta::Settings;
use holdfast_cluster::{ClusterStore, FileOptions};
use holdfast_core::{FileSystem, Options};
use std::sync::Arc;
use std::time::Duration;

/// One database with its objects.
struct Cluster {
    database: Arc<Database>,
    objects: Arc<MemoryObjects>,
}

/// A mount of it.
struct Client {
    meta: Arc<Counting>,
    store: Arc<ClusterStore>,
    fs: FileSystem,
}

impl Cluster {
    /// A new file system with answers that are valid for so long.
    fn new(lease: Duration) -> Self {
        Self::with(Settings {
            lease,
            notifies: false,
            ..Settings::default()
        })
    }

    fn with(settings: Settings) -> Self {
        Self {
            database: Database::new(settings),
            objects: MemoryObjects::new(),
        }
    }

    fn client_with(&self, options: Options) -> Client {
        let meta = Counting::new(self.database.session());
        let objects = Arc::clone(&self.objects);
        let store = ClusterStore::new(meta.clone(), objects, FileOptions::default()).unwrap();
        Client {
            meta,
            fs: FileSystem::new(store.clone(), options).unwrap(),
            store,
        }
    }

    fn client(&self) -> Client {
        self.client_with(Options::default())
    }
}
