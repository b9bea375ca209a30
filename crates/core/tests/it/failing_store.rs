//! What becomes of a file system whose store fails.

use holdfast_core::store::{
    Behind, Change, EntryRecord, Grant, Guarantees, InodeRecord, Intent, Lsn, NameRun, Rest, Space,
    SpaceReport, SpaceRun, Store, Writes,
};
use holdfast_core::types::{Caller, Errno, Ino, OpenFlags, Result};
use holdfast_core::{FileSystem, Options, Visit};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Takes changes until it is broken; holds nothing.
#[derive(Default)]
struct Fragile {
    broken: AtomicBool,
}

impl Store for Fragile {
    fn guarantees(&self) -> Guarantees {
        Guarantees {
            pinned: false,
            blocks: false,
            small: 0,
            frees: false,
        }
    }
    fn writes(self: Arc<Self>) -> Writes {
        Writes::Behind(self)
    }
    fn load_inodes(&self, _inos: &[Ino], _found: &mut Vec<InodeRecord>) -> Result<()> {
        Ok(())
    }
    fn load_rests(&self, _records: &[InodeRecord], _found: &mut Vec<Rest>) -> Result<()> {
        Err(Errno::EIO)
    }
    fn look_up(
        &self,
        _dir: Ino,
        names: &[&[u8]],
        found: &mut Vec<Option<(EntryRecord, Option<InodeRecord>)>>,
    ) -> Result<()> {
        found.extend(names.iter().map(|_| None));
        Ok(())
    }
    fn read_names(&self, _dir: Ino, _after: u64, _max: usize, _run: &mut NameRun) -> Result<()> {
        Err(Errno::EIO)
    }
    fn end_cookie(&self, _dir: Ino) -> Result<u64> {
        Err(Errno::EIO)
    }
    fn next_space(&self, _ino: Ino, _offset: u64) -> Result<Option<SpaceRun>> {
        Err(Errno::EIO)
    }
    fn read_data(&self, _ino: Ino, _offset: u64, _buf: &mut [u8]) -> Result<()> {
        Err(Errno::EIO)
    }
    fn space(&self) -> Result<SpaceReport> {
        Ok(SpaceReport::default())
    }
    fn commit(&self, _upto: Option<Lsn>) -> Result<()> {
        Ok(())
    }
}

impl Behind for Fragile {
    fn reserve(&self, _intent: &Intent) -> Result<Grant> {
        Ok(Grant::NONE)
    }
    fn give_back(&self, _held: Grant) {}
    fn release(&self, _space: Space) {}
    fn apply(&self, _held: &mut Grant, _batch: &[Change<'_>]) -> Result<Lsn> {
        if self.broken.load(Relaxed) {
            Err(Errno::EIO)
        } else {
            Ok(Lsn(0))
        }
    }
    fn last_ino(&self) -> Result<Ino> {
        Ok(Ino(0))
    }
}

#[test]
fn after_one_failed_change_nothing_is_written_and_everything_is_read() {
    let store = Arc::new(Fragile::default());
    let fs = FileSystem::new(Arc::clone(&store) as Arc<dyn Store>, Options::default()).unwrap();
    let (who, root) = (Caller::root(), fs.root());
    let file = fs
        .create(&who, &root, b"a", 0o600, OpenFlags::READ_WRITE)
        .unwrap();
    fs.write(&who, &file, 0, b"before").unwrap();
    store.broken.store(true, Relaxed);
    assert_eq!(fs.write(&who, &file, 0, b"during").err(), Some(Errno::EIO));
    store.broken.store(false, Relaxed);
    assert_eq!(fs.write(&who, &file, 0, b"after").err(), Some(Errno::EROFS));
    assert_eq!(fs.mkdir(&who, &root, b"d", 0o755).err(), Some(Errno::EROFS));
    assert_eq!(fs.unlink(&who, &root, b"a").err(), Some(Errno::EROFS));
    let mut byte = [0];
    assert_eq!(fs.read(&file, 0, &mut byte), Ok(1));
}

#[test]
fn what_a_store_can_let_go_of_is_not_counted() {
    let store = Arc::new(Fragile::default());
    let fs = FileSystem::new(store, Options::default()).unwrap();
    assert_eq!(fs.quota_on(true), Err(Errno::EOPNOTSUPP));
    assert!(!fs.quota_is_on());
}

#[test]
fn a_store_that_does_not_walk_shows_no_inodes_by_number() {
    let fs = FileSystem::new(Arc::new(Fragile::default()), Options::default()).unwrap();
    let mut scans = fs.bulkstats(4).unwrap();
    assert_eq!(scans.len(), 1);
    let shown = fs.bulkstat(&mut scans[0], |_, _| Ok(Visit::Continue));
    assert_eq!(shown, Err(Errno::EOPNOTSUPP));
    let told = fs.bulkstat_attributes(&mut scans[0], |_| Ok(Visit::Continue));
    assert_eq!(told, Err(Errno::EOPNOTSUPP));
}
