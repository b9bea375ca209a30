//! What the options `sync` and `dirsync` have the host make durable before a call returns.

use crate::NEVER;
use holdfast_core::types::{Caller, Ino, OpenFlags, RenameFlags, Result};
use holdfast_core::{FileSystem, Node, Options as CoreOptions, Store};
use holdfast_hostdir::{HostDirectory, Options};
use holdfast_testkit::store::{Record, Recorded, RecordingStore};
use std::sync::Arc;

/// What a step had the host do after the change: directories, and the whole file system.
#[derive(Debug, PartialEq, Eq)]
struct Durable {
    dirs: Vec<Ino>,
    whole: bool,
}

struct Place {
    store: Arc<RecordingStore>,
    fs: FileSystem,
    who: Caller,
}

impl Place {
    fn over(root: &std::path::Path, core: CoreOptions) -> Self {
        let options = Options {
            coherence: NEVER,
            ..Options::default()
        };
        let host: Arc<dyn Store> = Arc::new(HostDirectory::open(root, options).unwrap());
        let store = RecordingStore::new(host, Record::default());
        Self {
            fs: FileSystem::new(store.clone(), core).unwrap(),
            store,
            who: Caller::root(),
        }
    }

    fn after<T>(&self, step: impl FnOnce(&FileSystem, &Caller) -> Result<T>) -> (T, Durable) {
        self.store.hook().clear();
        let done = step(&self.fs, &self.who).unwrap();
        let events = self.store.hook().events();
        let change = events.iter().rposition(|it| *it == Recorded::Performed);
        let later = &events[change.expect("a change")..];
        let dirs = later.iter().filter_map(|event| match event {
            Recorded::Synced(ino) => Some(*ino),
            _ => None,
        });
        let durable = Durable {
            dirs: dirs.collect(),
            whole: later.contains(&Recorded::Commit(None)),
        };
        (done, durable)
    }
}

#[test]
fn the_directories_whose_names_change_are_durable_with_dirsync() {
    let host = tempfile::tempdir().unwrap();
    let options = CoreOptions {
        dirsync: true,
        ..CoreOptions::default()
    };
    let at = Place::over(host.path(), options);
    let root = at.fs.root();
    let synced = |nodes: &[&Node]| Durable {
        dirs: nodes.iter().map(|node| node.ino()).collect(),
        whole: false,
    };
    let (dir, durable) = at.after(|fs, who| fs.mkdir(who, &root, b"dir", 0o700));
    assert_eq!(durable, synced(&[&root]));
    let flags = OpenFlags::READ_WRITE;
    let (file, durable) = at.after(|fs, who| fs.create(who, &dir, b"file", 0o600, flags));
    assert_eq!(durable, synced(&[&dir]));
    let (_, durable) = at.after(|fs, who| fs.link(who, file.node(), &dir, b"link"));
    assert_eq!(durable, synced(&[&dir]));
    let (_, durable) = at.after(|fs, who| fs.symlink(who, &dir, b"symlink", b"file"));
    assert_eq!(durable, synced(&[&dir]));
    let flags = RenameFlags::empty();
    let (_, durable) = at.after(|fs, who| fs.rename(who, &dir, b"link", &root, b"away", flags));
    assert_eq!(durable, synced(&[&dir, &root]));
    let (_, durable) = at.after(|fs, who| fs.unlink(who, &root, b"away"));
    assert_eq!(durable, synced(&[&root]));
    let (_, durable) = at.after(|fs, who| fs.write(who, &file, 0, b"content"));
    assert_eq!(durable, synced(&[]));
}

#[test]
fn the_hosts_file_system_is_durable_with_sync() {
    let host = tempfile::tempdir().unwrap();
    for sync in [true, false] {
        let options = CoreOptions {
            sync,
            ..CoreOptions::default()
        };
        let at = Place::over(host.path(), options);
        let root = at.fs.root();
        let name = format!("file {sync}");
        let expected = Durable {
            dirs: Vec::new(),
            whole: sync,
        };
        let flags = OpenFlags::READ_WRITE;
        let create =
            |fs: &FileSystem, who: &Caller| fs.create(who, &root, name.as_bytes(), 0o600, flags);
        let (file, durable) = at.after(create);
        assert_eq!(durable, expected);
        let (_, durable) = at.after(|fs, who| fs.write(who, &file, 0, b"content"));
        assert_eq!(durable, expected);
    }
}
