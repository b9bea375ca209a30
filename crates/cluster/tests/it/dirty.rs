//! A file that is dirty on one mount, and changed on another.

use crate::Cluster;
use holdfast_cluster::meta::Settings;
use holdfast_core::types::{Caller, OpenFlags, SetAttr};
use std::time::Duration;

/// Longer than the test takes: only a message ends what is known.
const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn attributes_that_another_changes_are_seen_while_the_file_is_written() {
    let cluster = Cluster::with(Settings {
        lease: HOUR,
        ..Settings::default()
    });
    let (one, other) = (cluster.client(), cluster.client());
    let (who, root) = (Caller::root(), one.fs.root());
    let flags = OpenFlags::CREATE | OpenFlags::WRITE_ONLY;
    let file = one.fs.create(&who, &root, b"file", 0o644, flags).unwrap();
    one.fs.write(&who, &file, 0, b"first").unwrap();
    one.fs.fsync(&file, false).unwrap();
    // The second use of a directory makes it a topic.
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(110));
        one.fs.drop_caches().unwrap();
        one.fs.lookup(&who, &root, b"file").unwrap();
    }
    one.fs.write(&who, &file, 5, b", second").unwrap();
    let node = other.fs.lookup(&who, &other.fs.root(), b"file").unwrap();
    let set = SetAttr {
        perm: Some(0o600),
        ..SetAttr::default()
    };
    other.fs.setattr(&who, &node, &set, None).unwrap();
    one.store.beat().unwrap();
    one.fs.write(&who, &file, 13, b", third").unwrap();
    let seen = one.fs.attributes(file.node()).unwrap();
    assert_eq!((seen.perm, seen.size), (0o600, 20));
    one.fs.fsync(&file, false).unwrap();
    let seen = one.fs.attributes(file.node()).unwrap();
    assert_eq!((seen.perm, seen.size), (0o600, 20));
}
