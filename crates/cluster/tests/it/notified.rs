//! What a machine watches is asked for once, for as long as it beats, and is right nevertheless.

use crate::counting::Trips;
use crate::{Client, Cluster};
use holdfast_cluster::meta::{Meta as _, Settings};
use holdfast_core::Node;
use holdfast_core::types::{Caller, Errno, OpenFlags, RenameFlags};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Long enough that a second use is another, and longer than an answer holds by itself.
const PAUSE: Duration = Duration::from_millis(1200);

fn who() -> Caller {
    Caller::root()
}

impl Client {
    fn child(&self, path: &[u8]) -> Result<Node, Errno> {
        self.fs.resolve(&who(), &self.fs.root(), path, false)
    }

    fn write_file(&self, path: &[u8], content: &[u8]) {
        let flags = OpenFlags::CREATE | OpenFlags::WRITE_ONLY | OpenFlags::TRUNCATE;
        let file = self.fs.open_at(&who(), &self.fs.root(), path, flags, 0o644);
        let file = file.unwrap();
        self.fs.write(&who(), &file, 0, content).unwrap();
        self.fs.flush(&file).unwrap();
    }

    fn content(&self, path: &[u8]) -> Result<Vec<u8>, Errno> {
        let flags = OpenFlags::empty();
        let file = self.fs.open_at(&who(), &self.fs.root(), path, flags, 0)?;
        let mut bytes = vec![0; 100];
        let count = self.fs.read(&file, 0, &mut bytes)?;
        bytes.truncate(count);
        Ok(bytes)
    }
}

/// Two machines. The second watches `dir`, in which `file` is.
fn watched() -> (Client, Client) {
    let cluster = Cluster::with(Settings::default());
    let (one, other) = (cluster.client(), cluster.client());
    one.fs.mkdir(&who(), &one.fs.root(), b"dir", 0o755).unwrap();
    one.write_file(b"dir/file", b"old");
    for _ in 0..3 {
        assert_eq!(other.content(b"dir/file").unwrap(), b"old");
        assert_eq!(other.child(b"dir/none").map(drop), Err(Errno::ENOENT));
        sleep(PAUSE);
    }
    assert_eq!(other.content(b"dir/file").unwrap(), b"old");
    other.meta.take();
    (one, other)
}

#[test]
fn what_is_watched_is_not_asked_for_while_the_lease_holds() {
    let (_one, other) = watched();
    for _ in 0..3 {
        sleep(PAUSE);
        assert_eq!(other.content(b"dir/file").unwrap(), b"old");
        assert_eq!(other.child(b"dir/none").map(drop), Err(Errno::ENOENT));
    }
    assert_eq!(other.meta.take(), Trips::new());
}

#[test]
fn a_change_at_one_machine_is_seen_at_the_other_after_its_next_beat() {
    let (one, other) = watched();
    let sees = |path: &[u8]| {
        other.store.beat().unwrap();
        other.content(path)
    };
    one.write_file(b"dir/none", b"new");
    assert_eq!(sees(b"dir/none").unwrap(), b"new");
    one.write_file(b"dir/file", b"other bytes");
    assert_eq!(sees(b"dir/file").unwrap(), b"other bytes");
    let dir = one.child(b"dir").unwrap();
    let renamed = one
        .fs
        .rename(&who(), &dir, b"none", &dir, b"file", RenameFlags::empty());
    renamed.unwrap();
    assert_eq!(sees(b"dir/file").unwrap(), b"new");
    assert_eq!(sees(b"dir/none"), Err(Errno::ENOENT));
    one.fs.unlink(&who(), &dir, b"file").unwrap();
    one.fs.rmdir(&who(), &one.fs.root(), b"dir").unwrap();
    assert_eq!(sees(b"dir/file"), Err(Errno::ENOENT));
    assert_eq!(other.child(b"dir").map(drop), Err(Errno::ENOENT));
}

#[test]
fn a_machine_that_is_cut_off_answers_from_memory_only_within_the_lease() {
    let cluster = Cluster::with(Settings::default());
    let client = cluster.client();
    client.write_file(b"file", b"bytes");
    for _ in 0..3 {
        assert_eq!(client.content(b"file").unwrap(), b"bytes");
        sleep(PAUSE);
    }
    assert_eq!(client.content(b"file").unwrap(), b"bytes");
    cluster.database.set_unreachable(true);
    let cut = Instant::now();
    while client.content(b"file").is_ok() {
        assert!(cut.elapsed() < Duration::from_secs(20), "it answers on");
        sleep(Duration::from_millis(20));
    }
    assert!(
        cut.elapsed() < Duration::from_secs(10),
        "longer than a lease"
    );
    cluster.database.set_unreachable(false);
    assert_eq!(client.content(b"file").unwrap(), b"bytes");
}

#[test]
fn a_file_that_was_removed_elsewhere_stays_readable_where_it_is_open() {
    let (one, other) = watched();
    let flags = OpenFlags::empty();
    let file = other
        .fs
        .open_at(&who(), &other.fs.root(), b"dir/file", flags, 0);
    let file = file.unwrap();
    let dir = one.child(b"dir").unwrap();
    one.fs.unlink(&who(), &dir, b"file").unwrap();
    let inodes = || one.meta.usage().unwrap().inodes;
    for _ in 0..3 {
        one.store.beat().unwrap();
        other.store.beat().unwrap();
        one.store.sweep().unwrap();
    }
    assert_eq!(inodes(), 3);
    let mut bytes = [0; 3];
    assert_eq!(other.fs.read(&file, 0, &mut bytes), Ok(3));
    assert_eq!(&bytes, b"old");
    drop(file);
    let end = Instant::now() + Duration::from_secs(20);
    while inodes() > 2 {
        assert!(Instant::now() < end, "it is never freed");
        one.store.beat().unwrap();
        other.store.beat().unwrap();
        one.store.sweep().unwrap();
        sleep(Duration::from_millis(20));
    }
}
