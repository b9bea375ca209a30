//! Copies of files within one file system.

use crate::Cluster;
use holdfast_cluster::objects::Objects;
use holdfast_core::types::{Caller, OpenFlags};
use std::time::Duration;

const LARGE: usize = 3_000_001;

#[test]
fn a_large_copy_shares_the_objects_and_each_file_changes_alone() {
    let cluster = Cluster::new(Duration::from_secs(3600));
    let client = cluster.client();
    let (fs, who, root) = (&client.fs, Caller::root(), client.fs.root());
    let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
    let create = |name: &[u8]| fs.create(&who, &root, name, 0o644, flags).unwrap();
    let (from, to) = (create(b"from"), create(b"to"));
    let content: Vec<u8> = (0..LARGE).map(|at| (at / 1000) as u8 | 1).collect();
    assert_eq!(fs.write(&who, &from, 0, &content), Ok(LARGE));
    fs.fsync(&from, false).unwrap();
    let objects = || {
        let mut found = Vec::new();
        cluster.objects.list(0, 100, &mut found).unwrap();
        found
    };
    let before = objects();
    client.meta.take();
    let copied = fs.copy_file_range(&who, &from, 0, &to, 0, u64::MAX);
    assert_eq!(copied, Ok(LARGE as u64));
    assert_eq!(client.meta.take().get("flush"), Some(&1));
    fs.fsync(&to, false).unwrap();
    assert_eq!((objects(), client.meta.take().len()), (before, 0));
    assert_eq!(fs.write(&who, &from, 5000, b"changed"), Ok(7));
    fs.fsync(&from, false).unwrap();
    let read = |file| {
        let mut read = vec![0; LARGE + 1];
        let count = fs.read(file, 0, &mut read).unwrap();
        read.truncate(count);
        read
    };
    assert!(read(&to) == content, "the copy stays");
    let mut changed = content.clone();
    changed[5000..5007].copy_from_slice(b"changed");
    assert!(read(&from) == changed);
    // A part between pages, with a rest that is no page.
    let copied = fs.copy_file_range(&who, &from, 4096, &to, 8192, 100_000);
    let copied = copied.unwrap() as usize;
    assert!((4096..=100_000).contains(&copied), "{copied}");
    let mut expected = content;
    expected[8192..8192 + copied].copy_from_slice(&changed[4096..4096 + copied]);
    assert!(read(&to) == expected);
    fs.sync().unwrap();
    assert_eq!(cluster.database.session().check(false), Ok(Vec::new()));
}
