//! What the handles of C lead to.
//!
//! *Invariants.* A handle is a number that is dealt once in the life of the process: that of a
//! closed object leads nowhere ever after. An object is freed when its handle is closed and the
//! last call that uses it has returned.

use std::any::Any;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use holdfast::types::Errno;
use holdfast::{Dir, File, FileSystem, ReadDir, Volume};
use parking_lot::{Mutex, RwLock};

use crate::failure::{Failure, Result};

/// One file system, which all handles that were opened through it share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The path of the volume, or `memory`.
    pub(crate) name: String,
    pub(crate) fs: FileSystem,
    /// The open volume; `None` for a file system in memory, and once it is closed.
    pub(crate) volume: Mutex<Option<Volume>>,
    /// A call panicked: what it was changing may be half done.
    dead: AtomicBool,
}

impl Shared {
    pub(crate) fn new(name: String, fs: FileSystem, volume: Option<Volume>) -> Arc<Self> {
        Arc::new(Self {
            name,
            fs,
            volume: Mutex::new(volume),
            dead: AtomicBool::new(false),
        })
    }

    pub(crate) fn kill(&self) {
        // Relaxed: the flag carries nothing else.
        self.dead.store(true, Ordering::Relaxed);
    }

    /// # Errors
    /// `EIO` after a panic.
    pub(crate) fn alive(&self) -> Result<()> {
        if self.dead.load(Ordering::Relaxed) {
            let reason = format!(
                "{}: an earlier call panicked, so this file system only answers EIO; close it, \
                 open it anew, and report the panic",
                self.name
            );
            return Err(Failure::new(Errno::EIO, reason));
        }
        Ok(())
    }

    /// Why the volume has failed.
    pub(crate) fn failure(&self) -> Option<String> {
        let volume = self.volume.lock();
        Some(volume.as_ref()?.failure()?.to_owned())
    }
}

/// A file system for one user, and the directory that relative paths start from.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) shared: Arc<Shared>,
    pub(crate) dir: Dir,
    /// Does closing this handle close the file system?
    pub(crate) owner: bool,
}

/// An open file, and the path that it was opened by.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) shared: Arc<Shared>,
    pub(crate) file: File,
    pub(crate) path: String,
}

/// A listing of a directory, and its path.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) shared: Arc<Shared>,
    pub(crate) entries: Mutex<ReadDir>,
    pub(crate) path: String,
}

/// A kind of objects that handles lead to.
pub(crate) trait Kind: Any + Send + Sync {
    /// The functions of `holdfast.h` that give such a handle.
    const GIVEN_BY: &'static str;
    fn shared(&self) -> &Arc<Shared>;
}

macro_rules! kinds {
    ($($kind:ident: $given_by:literal),*) => {$(
        impl Kind for $kind {
            const GIVEN_BY: &'static str = $given_by;

            fn shared(&self) -> &Arc<Shared> {
                &self.shared
            }
        }
    )*};
}

kinds! {
    Place: "hf_memory, hf_open_volume, hf_create_volume, hf_subdir or hf_as_user",
    Opened: "hf_open",
    Listing: "hf_opendir"
}

/// The file system of an object, and the object.
type Entry = (Arc<Shared>, Arc<dyn Any + Send + Sync>);

/// The first handle: above small numbers, which come from mistakes, and which the runtimes of some
/// languages refuse as pointers.
const FIRST: u64 = 1 << 16;

/// Threads that use different handles seldom meet at a shard.
const SHARDS: usize = 64;

/// The next handle.
static NEXT: AtomicU64 = AtomicU64::new(FIRST);
/// The objects of all open handles.
static OBJECTS: [RwLock<BTreeMap<usize, Entry>>; SHARDS] =
    [const { RwLock::new(BTreeMap::new()) }; SHARDS];

thread_local! {
    /// The handle that the running call of this thread looked up last.
    static USED: Cell<usize> = const { Cell::new(0) };
}

fn shard(handle: usize) -> &'static RwLock<BTreeMap<usize, Entry>> {
    &OBJECTS[handle % SHARDS]
}

fn look(handle: usize) -> Option<Entry> {
    shard(handle).read().get(&handle).cloned()
}

/// Makes a handle of an object.
///
/// # Errors
/// `ENFILE` once all numbers were dealt, which only 32 bits allow.
pub(crate) fn insert(object: impl Kind) -> Result<usize> {
    // Relaxed: only the number counts.
    let handle = usize::try_from(NEXT.fetch_add(1, Ordering::Relaxed)).map_err(|_| {
        let reason = "this process has opened too many handles; start another one";
        Failure::new(Errno::ENFILE, reason)
    })?;
    let entry: Entry = (Arc::clone(object.shared()), Arc::new(object));
    shard(handle).write().insert(handle, entry);
    Ok(handle)
}

/// The object of a handle.
///
/// # Errors
/// `EBADF` for a closed handle and one of another kind; `EIO` after a panic.
pub(crate) fn find<K: Kind>(handle: usize) -> Result<Arc<K>> {
    let (shared, object) = look(handle).ok_or_else(closed::<K>)?;
    USED.set(handle);
    shared.alive()?;
    object.downcast().map_err(|_| closed::<K>())
}

/// Ends a handle. Calls that use its object go on.
///
/// # Errors
/// `EBADF` for a closed handle and one of another kind.
pub(crate) fn remove<K: Kind>(handle: usize) -> Result<Arc<K>> {
    let (_, object) = look(handle).ok_or_else(closed::<K>)?;
    let found = object.downcast().map_err(|_| closed::<K>())?;
    // `None`: another thread has closed it since.
    let removed = shard(handle).write().remove(&handle);
    removed.map(|_| found).ok_or_else(closed::<K>)
}

/// Ends all handles of a file system.
pub(crate) fn remove_all(shared: &Arc<Shared>) {
    for shard in &OBJECTS {
        // Freed without the lock: the last use of a file frees its content.
        let mut gone = Vec::new();
        shard.write().retain(|_, entry| {
            let stays = !Arc::ptr_eq(&entry.0, shared);
            if !stays {
                gone.push(entry.clone());
            }
            stays
        });
    }
}

/// Begins a call on this thread, which has looked up no handle.
pub(crate) fn begin_call() {
    USED.set(0);
}

/// The file system of the handle that this thread's call looked up last, if it is open.
pub(crate) fn used() -> Option<Arc<Shared>> {
    Some(look(USED.get())?.0)
}

fn closed<K: Kind>() -> Failure {
    let reason = format!(
        "the handle is closed or of another kind; pass one that {} gave",
        K::GIVEN_BY
    );
    Failure::new(Errno::EBADF, reason)
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros;

    use super::*;
    use crate::open::memory;

    fn place() -> Place {
        memory(FromZeros::new_zeroed()).unwrap()
    }

    #[test]
    fn a_closed_handle_and_one_of_another_kind_are_refused() {
        let handle = insert(place()).unwrap();
        assert!(find::<Place>(handle).is_ok());
        assert_eq!(find::<Opened>(handle).unwrap_err().errno, Errno::EBADF);
        assert_eq!(remove::<Listing>(handle).unwrap_err().errno, Errno::EBADF);
        remove::<Place>(handle).unwrap();
        let failure = find::<Place>(handle).unwrap_err();
        assert_eq!(failure.errno, Errno::EBADF);
        assert!(failure.reason.contains("hf_open_volume"), "{failure:?}");
        assert_ne!(insert(place()).unwrap(), handle, "numbers are dealt once");
    }

    #[test]
    fn all_handles_of_a_file_system_end_together() {
        let place = place();
        let shared = Arc::clone(&place.shared);
        let file = place.dir.create_new("/file").unwrap();
        let opened = Opened {
            shared: Arc::clone(&shared),
            file,
            path: "/file".to_owned(),
        };
        let handles = [insert(place).unwrap(), insert(opened).unwrap()];
        remove_all(&shared);
        assert!(handles.into_iter().all(|handle| look(handle).is_none()));
    }
}
