//! A file system by its address: made, opened, and looked after.

use crate::address::{Address, AddressError, Environment};
use crate::content::FileOptions;
use crate::meta::{Meta, Settings};
use crate::objects::{Bucket, BucketError, Objects, Place};
use crate::postgres::{self, Config, ConnectError, MkfsOptions};
use crate::store::ClusterStore;
use holdfast_types::{Errno, Result};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// Most inodes, objects or numbers of one request of a collection.
const ROUND: usize = 4096;

/// A file system that cannot be opened or made.
#[derive(Debug, Error)]
pub enum TreeError {
    /// The address cannot be completed.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The database cannot be used.
    #[error(transparent)]
    Database(#[from] ConnectError),
    /// The bucket cannot be used.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// No bucket is named.
    #[error("bucket= is missing")]
    NoBucket,
}

impl TreeError {
    /// What helps, where the text does not say it.
    #[must_use]
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Bucket(error) => Some(error.remedy()),
            Self::NoBucket => Some("add bucket=s3://NAME/PREFIX or bucket=file:///FOLDER to it"),
            Self::Database(ConnectError::Unreachable { cause, .. })
                if cause.contains("certificate") =>
            {
                Some(
                    "sslrootcert=FILE names the certificate of its authority; sslmode=require \
                     encrypts without a look at it",
                )
            }
            Self::Database(ConnectError::Unreachable { cause, .. }) if cause.contains("TLS") => {
                Some("turn on ssl in the server, or add sslmode=disable in a network of your own")
            }
            Self::Database(ConnectError::Unreachable { .. }) => {
                Some("check host, port and database, and that the server runs")
            }
            Self::Database(ConnectError::Exists { .. }) => Some("--force removes what is there"),
            Self::Address(_) | Self::Database(_) => None,
        }
    }
}

/// The name of the client, and for how long calls wait.
#[derive(Clone, Debug)]
pub struct Client {
    /// The name of this machine.
    pub host: String,
    /// How long a call waits for the database.
    pub retry: Duration,
    /// How long it waits for the bucket.
    pub bucket_retry: Duration,
}

impl Client {
    fn config(
        &self,
        address: &Address,
        by: &Environment,
    ) -> std::result::Result<Config, TreeError> {
        let complete = address.complete(by)?;
        Ok(Config::of(&complete, self.retry, self.host.clone()))
    }
}

/// An open file system: a session with its database, and its bucket.
pub struct Tree {
    /// The session.
    pub meta: Arc<dyn Meta>,
    /// The bucket.
    pub bucket: Arc<Bucket>,
    /// The settings.
    pub settings: Settings,
}

/// What a collection found or did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Inodes without names that were freed.
    pub inodes: u64,
    /// Objects that were deleted, or would be.
    pub objects: u64,
}

impl Tree {
    /// Makes a file system, and returns its settings. With `force`, a file system that is there is
    /// removed with its objects.
    ///
    /// # Errors
    /// If there is one, or the database or the bucket cannot be used.
    pub fn make(
        address: &Address,
        by: &Environment,
        client: &Client,
        mut options: MkfsOptions,
        force: bool,
    ) -> std::result::Result<Settings, TreeError> {
        let url = address.bucket().ok_or(TreeError::NoBucket)?;
        let settings = &mut options.settings;
        let of = |text: Option<&str>| text.unwrap_or_default().to_owned();
        settings.bucket = url.into();
        (settings.endpoint, settings.region) = (of(address.endpoint()), of(address.region()));
        let place = Place::parse(url, &settings.endpoint, &settings.region)?;
        let bucket = Bucket::open(&place, settings.incarnation, by, client.bucket_retry)?;
        let config = client.config(address, by)?;
        let there = postgres::identity(&config)?;
        match bucket.owner()? {
            Some(owner) if there != Some(owner) => return Err(bucket.other(owner).into()),
            // Without `force`, mkfs below fails as the schema is in use.
            owner if force && there.is_some() => {
                postgres::remove(&config)?;
                owner.map(|_| bucket.clear()).transpose()?;
            }
            _ => {}
        }
        let made = postgres::mkfs(&config, &options)?;
        bucket.mark(made.uuid)?;
        Ok(made)
    }

    /// Opens a file system: begins a session, and compares the mark of its bucket.
    ///
    /// # Errors
    /// If the database or the bucket cannot be used, or do not belong to each other.
    pub fn open(
        address: &Address,
        by: &Environment,
        client: &Client,
    ) -> std::result::Result<Self, TreeError> {
        let meta = postgres::connect(client.config(address, by)?)?;
        let settings = meta.settings();
        let bucket = bucket_of(&settings, by, client.bucket_retry).inspect_err(|_| {
            // Otherwise others see the session for a minute.
            let _ = meta.end();
        })?;
        Ok(Self {
            meta,
            bucket: Arc::new(bucket),
            settings,
        })
    }

    /// The store for the core.
    ///
    /// # Errors
    /// Those of starting a thread, and of the directory of the cache.
    pub fn open_store(&self, files: FileOptions) -> io::Result<Arc<ClusterStore>> {
        let objects: Arc<dyn Objects> = self.bucket.clone();
        ClusterStore::new(Arc::clone(&self.meta), objects, files)
    }

    /// Frees inodes that are not in use, and deletes objects that nothing maps. With `dry`, only
    /// counts objects.
    ///
    /// # Errors
    /// `EIO`: the database or the bucket did not answer. What was done until then stays.
    pub fn delete_garbage(&self, dry: bool) -> Result<Collected> {
        let mut collected = Collected::default();
        loop {
            let freed = if dry { 0 } else { self.meta.sweep(ROUND)? };
            if freed == 0 {
                break;
            }
            collected.inodes += freed;
        }
        let mut found = BTreeSet::new();
        let mut after = 0;
        loop {
            let mut listed = Vec::new();
            self.bucket.list(after, ROUND, &mut listed)?;
            loop {
                let some = self.meta.deletable(&listed, ROUND)?;
                let before = found.len();
                found.extend(some.iter().copied());
                if !dry && !some.is_empty() {
                    self.bucket.delete(&some)?;
                    self.meta.deleted(&some)?;
                }
                // Those that were not deleted are found once more.
                if found.len() == before || some.len() < ROUND {
                    break;
                }
            }
            match listed.last() {
                Some(&last) => after = last,
                None => break,
            }
        }
        collected.objects = found.len() as u64;
        Ok(collected)
    }

    /// Ends the session.
    ///
    /// # Errors
    /// If the database did not answer: it ends by itself after a minute.
    pub fn end_session(&self) -> Result<()> {
        match self.meta.end() {
            // It was ended already.
            Err(Errno::ESTALE) => Ok(()),
            ended => ended,
        }
    }
}

fn bucket_of(
    settings: &Settings,
    by: &Environment,
    retry: Duration,
) -> std::result::Result<Bucket, TreeError> {
    let place = Place::parse(&settings.bucket, &settings.endpoint, &settings.region)?;
    let bucket = Bucket::open(&place, settings.incarnation, by, retry)?;
    bucket.check(settings.uuid)?;
    Ok(bucket)
}
