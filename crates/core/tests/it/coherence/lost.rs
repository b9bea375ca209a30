//! What a store asks of the core: which inodes are in use, and that open files learn of bytes that
//! it could not keep.

use super::{FOR_A_SECOND, NOTIFIED, Pair};
use holdfast_core::OpenFile;
use holdfast_core::types::{Caller, Errno, Ino, OpenFlags};

fn open(pair: &Pair, name: &[u8], flags: OpenFlags) -> OpenFile {
    let node = pair.lookup(&pair.fs.root(), name).unwrap();
    pair.fs.open(&Caller::root(), &node, flags).unwrap()
}

#[test]
fn each_open_file_reports_once_that_bytes_of_it_are_lost() {
    let mut pair = Pair::new(NOTIFIED);
    let ino = pair.store.write(Ino::ROOT, b"a", b"content");
    pair.store.write(Ino::ROOT, b"b", b"");
    pair.pass(1);
    let files = [
        OpenFlags::READ_WRITE,
        OpenFlags::WRITE_ONLY,
        OpenFlags::empty(),
    ]
    .map(|flags| open(&pair, b"a", flags));
    let other = open(&pair, b"b", OpenFlags::READ_WRITE);
    assert_eq!(pair.content(files[0].node()), Ok(b"content".to_vec()));
    pair.store.write_untold(Ino::ROOT, b"a", b"less");
    let above = pair.store.above().unwrap();
    above.lost(ino, Errno::EDQUOT);
    let late = open(&pair, b"a", OpenFlags::READ_WRITE);
    // Closing tells a writer, fsync(2) all.
    assert_eq!(pair.fs.flush(&files[0]), Err(Errno::EDQUOT));
    assert_eq!(pair.fs.fsync(&files[0], false), Ok(()));
    assert_eq!(pair.fs.fsync(&files[1], true), Err(Errno::EDQUOT));
    assert_eq!(pair.fs.flush(&files[1]), Ok(()));
    assert_eq!(pair.fs.flush(&files[2]), Ok(()));
    assert_eq!(pair.fs.fsync(&files[2], false), Err(Errno::EDQUOT));
    for file in [&other, &late] {
        assert_eq!(
            (pair.fs.flush(file), pair.fs.fsync(file, false)),
            (Ok(()), Ok(()))
        );
    }
    pair.pass(1);
    assert_eq!(pair.content(late.node()), Ok(b"less".to_vec()));
    above.lost(ino, Errno::EIO);
    assert_eq!(pair.fs.flush(&late), Err(Errno::EIO));
    assert_eq!(pair.fs.flush(&files[0]), Err(Errno::EIO));
    // Of an inode that is not in memory nobody has to learn.
    above.lost(Ino(u64::MAX), Errno::EIO);
}

#[test]
fn the_core_knows_what_is_open_or_referenced_by_number() {
    let pair = Pair::new(FOR_A_SECOND);
    let ino = pair.store.write(Ino::ROOT, b"a", b"content");
    let above = pair.store.above().unwrap();
    assert!(!above.knows(ino));
    assert_eq!(pair.list_plus(&pair.fs.root()).len(), 1);
    assert!(!above.knows(ino), "it is only in memory");
    let file = open(&pair, b"a", OpenFlags::empty());
    assert!(above.knows(ino));
    drop(file);
    assert!(!above.knows(ino));
    // As LOOKUP gives it to a kernel.
    let held = pair.lookup(&pair.fs.root(), b"a").unwrap().into_raw();
    assert!(above.knows(ino));
    pair.fs.drop_caches().unwrap();
    assert!(above.knows(ino), "also when it is not in memory");
    pair.fs.forget(held, 1);
    assert!(!above.knows(ino));
}
