//! Files that a kernel writes by itself, past the file system.

use crate::{over, seen};
use holdfast_core::store::Coherence;
use holdfast_core::types::{Caller, Errno, FileType, OpenFlags};
use holdfast_core::{FileSystem, MemoryLimits, Options};
use std::fs;
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

#[test]
fn what_is_written_past_a_file_system_is_asked_for_until_it_was_seen_once_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let write = |len: usize| fs::write(&path, vec![len as u8; len]).unwrap();
    write(3);
    let fs = over(dir.path(), Coherence::For(Duration::from_secs(3600)));
    assert!(fs.sees_bypass());
    let file = seen::node(&fs, b"file").unwrap();
    let open = fs.open(&Caller::root(), &file, OpenFlags::empty()).unwrap();
    let size = || fs.attributes(&file).unwrap().size;
    let bytes = || {
        let mut bytes = vec![0; 100];
        let len = fs.read(&open, 0, &mut bytes).unwrap();
        bytes.truncate(len);
        bytes
    };
    assert_eq!((size(), bytes()), (3, vec![3; 3]));
    write(5);
    assert_eq!(size(), 3, "what was told holds for an hour");
    fs.begin_bypass(&file);
    for len in [5, 10, 7] {
        write(len);
        assert_eq!((size(), bytes()), (len as u64, vec![len as u8; len]));
    }
    // Other bytes, and all else the same, as far as times tell.
    fs::write(&path, [9; 7]).unwrap();
    fs.end_bypass(&file);
    assert_eq!((size(), bytes()), (7, vec![9; 7]));
    write(4);
    assert_eq!(size(), 7, "what was told afterwards holds again");
}

#[test]
fn the_file_behind_is_shown_by_a_directory_of_the_host_and_by_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), b"shown").unwrap();
    let host = over(dir.path(), Coherence::Exclusive);
    assert!(!host.sees_bypass());
    let file = seen::node(&host, b"file").unwrap();
    let mut shown = String::new();
    host.with_backing(&file, &mut |behind| {
        let path = format!("/proc/self/fd/{}", behind.as_raw_fd());
        let mut file = fs::File::open(path).unwrap();
        file.read_to_string(&mut shown).unwrap();
    })
    .unwrap();
    assert_eq!(shown, "shown");
    let memory = FileSystem::memory(MemoryLimits::default(), Options::default());
    let file = memory
        .mknod(
            &Caller::root(),
            &memory.root(),
            b"file",
            FileType::Regular,
            0o644,
            0,
        )
        .unwrap();
    let refused = memory.with_backing(&file, &mut |_| panic!("nothing is behind"));
    assert_eq!(refused, Err(Errno::EOPNOTSUPP));
    memory.begin_bypass(&file);
    memory.end_bypass(&file);
}
