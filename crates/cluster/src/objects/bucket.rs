//! Objects in a bucket that speaks S3, or in a folder of this machine.
//!
//! An object is named `o/INCARNATION/FOLDER/NUMBER`, in hexadecimal digits of a fixed number, so
//! that the order of names is that of numbers. A folder has 65,536 numbers.
//!
//! *The mark.* `holdfast-file-system` has the identity of the file system that the objects belong
//! to. It is written by mkfs and compared at each mount.

use super::executor::Executor;
use super::failure::BucketError;
use super::place::{Kind, Place};
use super::profile::{Keys, Profile};
use super::seam::Objects;
use crate::address::Environment;
use futures_util::{StreamExt, TryStreamExt, stream};
use holdfast_core::interrupt::is_interrupted;
use holdfast_types::{Errno, Result};
use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use object_store::local::LocalFileSystem;
use object_store::path::Path as Name;
use object_store::{
    BackoffConfig, ClientOptions, Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions,
    PutPayload, RetryConfig,
};
use parking_lot::Mutex;
use std::collections::BinaryHeap;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use uuid::Uuid;

const MARK: &str = "holdfast-file-system";
/// Bits of a number within its folder.
const FOLDER_BITS: u32 = 16;
/// How often a request is repeated, and for how long, while somebody waits at a terminal for mkfs
/// or mount.
const PROMPT: (usize, Duration) = (2, Duration::from_secs(5));
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest time for a request after another has failed.
const BRIEF: Duration = Duration::from_secs(1);
/// The pause before a PUT is sent anew that `object_store` does not repeat.
const PUT_PAUSE: Duration = Duration::from_secs(1);

type Store = Arc<dyn ObjectStore>;

/// The objects of a file system.
pub struct Bucket {
    place: Place,
    incarnation: u64,
    store: Store,
    /// With fewer retries.
    prompt: Store,
    executor: Executor,
    /// How long a request may take with all its repetitions.
    retry: Duration,
    /// When a request failed that had this long, unless one succeeded since.
    failed_at: Mutex<Option<Instant>>,
}

impl Bucket {
    /// Prepares the use of a bucket; no request is made. Requests of a mount fail after `retry`.
    ///
    /// # Errors
    /// If the folder does not exist, or keys that are named cannot be read.
    pub fn open(
        place: &Place,
        incarnation: u64,
        by: &Environment,
        retry: Duration,
    ) -> std::result::Result<Self, BucketError> {
        let failed = |why: std::io::Error| BucketError::Failed(place.to_string(), why.to_string());
        Ok(Self {
            incarnation,
            store: build(place, by, (usize::MAX, retry))?,
            retry,
            failed_at: Mutex::new(None),
            prompt: build(place, by, PROMPT)?,
            executor: Executor::start().map_err(failed)?,
            place: place.clone(),
        })
    }

    /// The identity of the file system that the mark names.
    ///
    /// # Errors
    /// If the bucket cannot be read.
    pub fn owner(&self) -> std::result::Result<Option<[u8; 16]>, BucketError> {
        let (store, name) = (Arc::clone(&self.prompt), self.place.name(MARK));
        let read = self.ask(async move {
            match store.get(&name).await {
                Err(error @ Error::NotFound { .. }) if !is_without_bucket(&error) => Ok(None),
                found => Ok(Some(found?.bytes().await?)),
            }
        })?;
        let Some(read) = read else {
            return Ok(None);
        };
        let text = std::str::from_utf8(&read).unwrap_or_default().trim();
        let uuid = Uuid::parse_str(text).map_err(|_| {
            let why = format!("{MARK} in it is no mark of a file system");
            BucketError::Failed(self.place.to_string(), why)
        })?;
        Ok(Some(uuid.into_bytes()))
    }

    /// Writes the mark, as mkfs does. The bucket must have none, or the same.
    ///
    /// # Errors
    /// If it belongs to another file system, or cannot be written to.
    pub fn mark(&self, uuid: [u8; 16]) -> std::result::Result<(), BucketError> {
        let (store, name) = (Arc::clone(&self.prompt), self.place.name(MARK));
        let text = format!("{}\n", Uuid::from_bytes(uuid));
        self.ask(async move {
            let options = PutOptions::from(PutMode::Create);
            match store.put_opts(&name, text.into(), options).await {
                // It is compared below, as ours may be the one that exists.
                Ok(_) | Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(()),
                Err(error) => Err(error),
            }
        })?;
        self.check(uuid)
    }

    /// Compares the mark, as a mount does.
    ///
    /// # Errors
    /// If the bucket belongs to another file system or to none, or cannot be read.
    pub fn check(&self, uuid: [u8; 16]) -> std::result::Result<(), BucketError> {
        match self.owner()? {
            Some(owner) if owner == uuid => Ok(()),
            Some(owner) => Err(self.other(owner)),
            None => {
                let uuid = Uuid::from_bytes(uuid).to_string();
                Err(BucketError::Unmarked(self.place.to_string(), uuid))
            }
        }
    }

    /// The error for a bucket with the mark of this file system.
    pub(crate) fn other(&self, owner: [u8; 16]) -> BucketError {
        BucketError::Other(self.place.to_string(), Uuid::from_bytes(owner).to_string())
    }

    /// All bytes of an object.
    pub(crate) fn read_whole(&self, object: u64) -> Result<Vec<u8>> {
        let (store, name) = (Arc::clone(&self.store), self.name(object));
        let found = self.perform("an object was not read", async move {
            match store.get(&name).await {
                Err(error @ Error::NotFound { .. }) if !is_without_bucket(&error) => Ok(None),
                found => Ok(Some(found?.bytes().await?)),
            }
        })?;
        found.map(Vec::from).ok_or(Errno::ENOENT)
    }

    /// Deletes all objects of all incarnations, and then the mark. Returns how many.
    ///
    /// # Errors
    /// If one of them may exist still; then the mark is left.
    pub fn clear(&self) -> std::result::Result<u64, BucketError> {
        let (store, prefix) = (Arc::clone(&self.store), self.place.name("o"));
        let mark = self.place.name(MARK);
        self.ask(async move {
            let found = store.list(Some(&prefix)).map_ok(|meta| meta.location);
            let deleted = store.delete_stream(found.boxed()).try_collect::<Vec<_>>();
            let count = deleted.await?.len() as u64;
            match store.delete(&mark).await {
                Ok(()) | Err(Error::NotFound { .. }) => Ok(count),
                Err(error) => Err(error),
            }
        })
    }

    fn ask<T: Send + 'static>(
        &self,
        question: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> std::result::Result<T, BucketError> {
        match self.executor.run(question) {
            Some(answer) => answer.map_err(|error| BucketError::of(&self.place, &error)),
            None => {
                let why = "a request ended with a panic".into();
                Err(BucketError::Failed(self.place.to_string(), why))
            }
        }
    }

    /// The same for the mount: its log has the reason.
    fn perform<T: Send + 'static>(
        &self,
        what: &str,
        question: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Result<T> {
        let failed = |why: &dyn std::fmt::Display| {
            tracing::warn!("{what}: {why}");
            Errno::EIO
        };
        let retry = self.time_limit();
        let answer = self
            .executor
            .run(async move { timeout(retry, question).await });
        match &answer {
            Some(Ok(Ok(_))) => *self.failed_at.lock() = None,
            Some(_) if retry == self.retry => *self.failed_at.lock() = Some(Instant::now()),
            _ => {}
        }
        match answer {
            Some(Ok(Ok(answer))) => Ok(answer),
            Some(Ok(Err(error))) => Err(failed(&BucketError::of(&self.place, &error))),
            Some(Err(_)) => Err(failed(&format_args!(
                "no answer of {} in {retry:?}",
                self.place
            ))),
            None if is_interrupted() => Err(Errno::EINTR),
            None => Err(failed(&"a request ended with a panic")),
        }
    }

    /// How long a request may take. One system call can make many requests, one after the other:
    /// when the bucket has failed for one, it does not fail for each of them as long.
    fn time_limit(&self) -> Duration {
        let failed_at = *self.failed_at.lock();
        match failed_at.is_some_and(|at| at.elapsed() < self.retry) {
            true => (self.retry / 10).min(BRIEF),
            false => self.retry,
        }
    }

    fn name(&self, object: u64) -> Name {
        let folder = object >> FOLDER_BITS;
        let rest = format!("o/{}/{folder:012x}/{object:016x}", self.incarnation);
        self.place.name(&rest)
    }
}

impl Objects for Bucket {
    fn put(&self, object: u64, content: Vec<u8>) -> Result<()> {
        let (store, name) = (Arc::clone(&self.store), self.name(object));
        let content = PutPayload::from(content);
        self.perform("an object was not stored", async move {
            loop {
                let options = PutOptions::from(PutMode::Create);
                match store.put_opts(&name, content.clone(), options).await {
                    Ok(_) => return Ok(()),
                    Err(error @ (Error::AlreadyExists { .. } | Error::Precondition { .. })) => {
                        // Was it stored by an earlier try, and the answer lost?
                        let found = store.get(&name).await?.bytes().await?;
                        let is_same = content.iter().flatten().eq(found.iter());
                        return is_same.then_some(()).ok_or(error);
                    }
                    // Not repeated by `object_store`: the request may have been performed.
                    Err(Error::Generic { .. }) => {
                        tokio::time::sleep(PUT_PAUSE).await;
                    }
                    Err(error) => return Err(error),
                }
            }
        })
    }

    fn get(&self, object: u64, ranges: &[Range<u64>]) -> Result<Vec<Arc<[u8]>>> {
        let (store, name) = (Arc::clone(&self.store), self.name(object));
        let mut asked = ranges.to_vec();
        // A server cuts ranges at the end by itself.
        let cuts = matches!(self.place.kind, Kind::Folder(_));
        let read = async move {
            if cuts {
                let size = store.head(&name).await?.size;
                asked.iter_mut().for_each(|it| it.end = it.end.min(size));
            }
            store.get_ranges(&name, &asked).await
        };
        let found = self.perform("an object was not read", async move {
            match read.await {
                Err(error @ Error::NotFound { .. }) if !is_without_bucket(&error) => Ok(None),
                found => found.map(Some),
            }
        })?;
        let found = found.ok_or(Errno::ENOENT)?;
        Ok(found.iter().map(|bytes| Arc::from(&bytes[..])).collect())
    }

    fn delete(&self, objects: &[u64]) -> Result<()> {
        let store = Arc::clone(&self.store);
        let names: Vec<_> = objects
            .iter()
            .map(|&object| Ok(self.name(object)))
            .collect();
        self.perform("objects were not deleted", async move {
            let mut answers = store.delete_stream(stream::iter(names).boxed());
            while let Some(answer) = answers.next().await {
                match answer {
                    Ok(_) => {}
                    Err(error @ Error::NotFound { .. }) if !is_without_bucket(&error) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        })
    }

    fn list(&self, after: u64, max: usize, found: &mut Vec<u64>) -> Result<()> {
        let store = Arc::clone(&self.store);
        let prefix = self.place.name(&format!("o/{}", self.incarnation));
        let offset = self.name(after);
        // S3 lists by name, a folder in any order.
        let is_ordered = matches!(self.place.kind, Kind::S3 { .. });
        let numbers = self.perform("objects were not listed", async move {
            let mut lowest = BinaryHeap::new();
            let mut all = store.list_with_offset(Some(&prefix), &offset);
            while let Some(meta) = all.try_next().await? {
                let number = number_of(&meta.location).filter(|&number| number > after);
                lowest.extend(number);
                if lowest.len() > max {
                    lowest.pop();
                }
                if is_ordered && lowest.len() == max {
                    break;
                }
            }
            Ok(lowest.into_sorted_vec())
        })?;
        found.extend(numbers);
        Ok(())
    }
}

/// The number of an object; `None`: it is none of ours.
fn number_of(name: &Name) -> Option<u64> {
    let last = name.filename()?;
    (last.len() == 16).then(|| u64::from_str_radix(last, 16).ok())?
}

/// Is the bucket missing, and not the object?
fn is_without_bucket(error: &Error) -> bool {
    matches!(error, Error::NotFound { source, .. } if source.to_string().contains("NoSuchBucket"))
}

fn build(
    place: &Place,
    by: &Environment,
    (max_retries, retry_timeout): (usize, Duration),
) -> std::result::Result<Store, BucketError> {
    let failed = |error| BucketError::of(place, &error);
    let (bucket, endpoint) = match &place.kind {
        Kind::S3 { bucket, .. } => (bucket, place.endpoint.as_deref()),
        Kind::Folder(path) if !path.is_dir() => {
            return Err(BucketError::Missing(place.to_string()));
        }
        Kind::Folder(path) => {
            let folder = LocalFileSystem::new_with_prefix(path).map_err(failed)?;
            return Ok(Arc::new(folder.with_fsync(true)));
        }
    };
    // One that is installed already serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = ClientOptions::new()
        .with_timeout(REQUEST_TIMEOUT)
        .with_connect_timeout(CONNECT_TIMEOUT);
    let mut builder = AmazonS3Builder::from_env()
        .with_bucket_name(bucket)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        // Before `with_allow_http`, which is one of these options.
        .with_client_options(client)
        .with_allow_http(endpoint.is_some_and(|it| it.starts_with("http://")))
        .with_retry(RetryConfig {
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(100),
                max_backoff: Duration::from_secs(5),
                base: 2.0,
            },
            max_retries,
            retry_timeout,
        });
    if let Some(endpoint) = endpoint {
        builder = builder
            .with_endpoint(endpoint)
            .with_virtual_hosted_style_request(false);
    }
    let variables = ["AWS_REGION", "AWS_DEFAULT_REGION"];
    let in_environment = variables.iter().any(|name| by.text(name).is_some());
    let region = match &place.region {
        None if !in_environment => Profile::region(by)?,
        region => region.clone(),
    };
    if let Some(region) = region {
        builder = builder.with_region(region);
    }
    if let Some(profile) = Profile::find(by)? {
        builder = builder.with_credentials(Arc::new(Keys::new(profile)));
    }
    Ok(Arc::new(builder.build().map_err(failed)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::slice;

    const RETRY: Duration = Duration::from_secs(1);

    fn nothing() -> Environment {
        Environment::new(|_| None, "me".into())
    }

    fn folder(path: &std::path::Path) -> Bucket {
        let place = Place::parse(&format!("file://{}", path.display()), "", "").unwrap();
        Bucket::open(&place, 1, &nothing(), RETRY).unwrap()
    }

    #[test]
    fn objects_are_stored_read_listed_and_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let bucket = folder(dir.path());
        let numbers = [1, 2, 255, 256, 65_536, 1 << 40];
        for object in numbers {
            bucket.put(object, object.to_le_bytes().to_vec()).unwrap();
        }
        let ranges = [2..4, 0..1];
        let read = bucket.get(256, &ranges).unwrap();
        assert_eq!(read, [Arc::from(*b"\0\0") as Arc<[u8]>, Arc::from(*b"\0")]);
        assert_eq!(bucket.get(3, &ranges), Err(Errno::ENOENT));
        let cut = bucket.get(2, slice::from_ref(&(6..9))).unwrap();
        assert_eq!(cut, [Arc::from(*b"\0\0") as Arc<[u8]>], "at its end");
        assert_eq!(bucket.get(2, slice::from_ref(&(100..109))), Err(Errno::EIO));
        let listed = |after, max| {
            let mut found = Vec::new();
            bucket.list(after, max, &mut found).unwrap();
            found
        };
        assert_eq!(listed(0, 10), numbers);
        assert_eq!(listed(2, 2), [255, 256]);
        assert_eq!(listed(256, 9), [65_536, 1 << 40]);
        bucket.delete(&[1, 2, 3, 1 << 40]).unwrap();
        assert_eq!(listed(0, 10), [255, 256, 65_536]);
        assert_eq!(bucket.get(1, slice::from_ref(&(0..1))), Err(Errno::ENOENT));
    }

    #[test]
    fn an_object_is_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let bucket = folder(dir.path());
        bucket.put(7, vec![1; 10]).unwrap();
        // As after a lost answer.
        bucket.put(7, vec![1; 10]).unwrap();
        assert_eq!(bucket.put(7, vec![2; 10]), Err(Errno::EIO));
        assert_eq!(bucket.put(7, vec![1; 9]), Err(Errno::EIO));
        assert_eq!(
            bucket.get(7, slice::from_ref(&(0..10))),
            Ok(vec![Arc::from([1; 10])])
        );
    }

    #[test]
    fn a_bucket_belongs_to_the_file_system_of_its_mark() {
        let dir = tempfile::tempdir().unwrap();
        let bucket = folder(dir.path());
        assert_eq!(bucket.owner(), Ok(None));
        assert!(matches!(
            bucket.check([1; 16]),
            Err(BucketError::Unmarked(..))
        ));
        bucket.mark([1; 16]).unwrap();
        bucket.mark([1; 16]).unwrap();
        let error = bucket.mark([2; 16]).unwrap_err();
        assert!(error.to_string().contains("01010101-0101"), "{error}");
        assert_eq!(bucket.owner(), Ok(Some([1; 16])));
        bucket.put(9, vec![0]).unwrap();
        assert_eq!(bucket.clear(), Ok(1));
        assert_eq!(bucket.owner(), Ok(None));
        assert_eq!(bucket.get(9, slice::from_ref(&(0..1))), Err(Errno::ENOENT));
    }

    #[test]
    fn a_folder_that_is_missing_is_named() {
        let place = Place::parse("file:///no/such", "", "").unwrap();
        let error = Bucket::open(&place, 1, &nothing(), RETRY).err().unwrap();
        assert_eq!(error.to_string(), "folder /no/such does not exist");
    }

    #[test]
    fn a_server_that_does_not_answer_is_named() {
        let keys = |name: &str| (name.starts_with("AWS_")).then(|| "x".into());
        let by = Environment::new(keys, "me".into());
        let place = Place::parse("s3://b/p", "http://127.0.0.1:1", "r").unwrap();
        let bucket = Bucket::open(&place, 1, &by, RETRY).unwrap();
        let error = bucket.owner().unwrap_err();
        assert!(
            matches!(&error, BucketError::Silent(place, _) if place.contains("127.0.0.1:1"))
                || matches!(&error, BucketError::Refused(..)),
            "{error:?}"
        );
    }

    /// A bucket at a server that gives this answer to each request, or none, and the folder of
    /// keys.
    fn at_server(answer: &'static [u8]) -> (Bucket, tempfile::TempDir) {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let mut silent = Vec::new();
            for mut client in listener.incoming().flatten() {
                if answer.is_empty() {
                    silent.push(client);
                } else {
                    let _ = (client.read(&mut [0; 4096]), client.write_all(answer));
                }
            }
        });
        let home = tempfile::tempdir().unwrap();
        let keys = "[default]\naws_access_key_id = x\naws_secret_access_key = y\n";
        std::fs::create_dir(home.path().join(".aws")).unwrap();
        std::fs::write(home.path().join(".aws/credentials"), keys).unwrap();
        let path = home.path().to_owned();
        let by = Environment::new(
            move |name| (name == "HOME").then(|| path.clone().into()),
            "me".into(),
        );
        let place = Place::parse("s3://b/p", &endpoint, "r").unwrap();
        (Bucket::open(&place, 1, &by, RETRY).unwrap(), home)
    }

    #[test]
    fn a_request_fails_when_the_time_for_it_is_over() {
        let busy = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        for answer in [&b""[..], &busy[..]] {
            let (bucket, _keys) = at_server(answer);
            for request in [
                &|| bucket.get(1, slice::from_ref(&(0..1))).map(drop),
                &|| bucket.put(1, vec![0; 10]) as Result<()>,
            ] as [&dyn Fn() -> Result<()>; 2]
            {
                *bucket.failed_at.lock() = None;
                let begun = Instant::now();
                assert_eq!(request(), Err(Errno::EIO));
                let took = begun.elapsed();
                assert!(took > RETRY / 4 && took < 4 * RETRY, "{took:?}");
            }
        }
    }

    #[test]
    fn after_a_failure_others_fail_soon_until_the_bucket_is_tried_in_full() {
        let (bucket, _keys) = at_server(b"");
        let took = || {
            let begun = Instant::now();
            assert_eq!(bucket.list(0, 1, &mut Vec::new()), Err(Errno::EIO));
            begun.elapsed()
        };
        assert!(took() >= RETRY);
        assert!(took() < RETRY);
        *bucket.failed_at.lock() = Instant::now().checked_sub(2 * RETRY);
        assert!(took() >= RETRY);
    }

    #[test]
    fn a_request_of_a_caller_that_was_ended_is_not_waited_for() {
        use holdfast_core::interrupt::{Interrupted, during};
        let (bucket, _keys) = at_server(b"");
        let caller = Interrupted::new(|| true);
        let answer = during(Some(caller), || bucket.get(1, slice::from_ref(&(0..1))));
        assert_eq!(answer, Err(Errno::EINTR));
    }
}
