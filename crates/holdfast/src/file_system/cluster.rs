//! File systems of several machines.

use super::FileSystem;
use crate::Options;
use holdfast_cluster::address::{Address, Environment};
use holdfast_cluster::{Client, FileOptions, Tree};
use std::io;
use std::time::Duration;

/// How long calls wait for the database.
const RETRY: Duration = Duration::from_secs(30);

impl FileSystem {
    /// Opens a file system of several machines by its address, such as
    /// `pg://fs@db1,db2/files?fs=team`: with the feature `cluster`. What the address leaves open
    /// comes from the environment, as libpq and the tools of the bucket read it. `holdfast mkfs`
    /// makes such file systems.
    ///
    /// Files that are closed, or synced, are seen by other machines. The session ends with the last
    /// handle; call [`sync`](FileSystem::sync) before.
    ///
    /// ```no_run
    /// use holdfast::{FileSystem, Options};
    ///
    /// let fs = FileSystem::open_cluster("pg://fs@db1,db2/files?fs=team", Options::default())?;
    /// fs.write("/notes", "seen by all machines\n")?;
    /// fs.sync()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// The address is malformed, there is no such file system, or its database or its bucket cannot
    /// be used. The text says which, and what helps.
    pub fn open_cluster(address: &str, options: Options) -> io::Result<Self> {
        let address = Address::parse(address).map_err(io::Error::other)?;
        let names = ["USER", "LOGNAME"];
        let user = names.iter().find_map(|name| std::env::var(name).ok());
        let environment = Environment::of_process(user.unwrap_or_else(|| "root".into()));
        let host = rustix::system::uname();
        let client = Client {
            host: host.nodename().to_string_lossy().into_owned(),
            retry: RETRY,
        };
        let tree = Tree::open(&address, &environment, &client).map_err(io::Error::other)?;
        Self::with_store(tree.open_store(FileOptions::default())?, options)
    }
}
