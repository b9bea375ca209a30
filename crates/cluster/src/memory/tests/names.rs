use super::{ROOT, Two, bytes, touched};
use crate::meta::{Answer, Change, Request};
use holdfast_core::store::Version;
use holdfast_types::{Errno, FileType, Ino, RenameFlags, SetTime, Time, XattrSet};

const PLAIN: RenameFlags = RenameFlags::empty();

#[test]
fn a_name_is_found_listed_and_removed() {
    let two = Two::new();
    let dir = two.directory(ROOT, "dir");
    let file = two.file(dir, "file");
    let found = two.b.look_up(dir, &[b"file", b"other"], &[]).unwrap();
    let found: Vec<_> = found.into_iter().map(|it| it?.node).collect();
    assert_eq!(found, [Some(two.node(file)), None]);
    assert_eq!(two.names(dir), [("file".to_owned(), file)]);
    assert_eq!(
        (two.nlink(ROOT), two.nlink(dir), two.nlink(file)),
        (3, 2, 1)
    );
    assert_eq!(two.node(dir).record.size, 32);
    assert_eq!(
        two.try_make(dir, "file", FileType::Fifo),
        Err(Errno::EEXIST)
    );
    assert_eq!(two.try_make(file, "x", FileType::Fifo), Err(Errno::ENOTDIR));
    assert_eq!(
        two.try_make(Ino(9999), "x", FileType::Fifo),
        Err(Errno::ESTALE)
    );
    assert_eq!(two.remove(ROOT, "dir", true), Err(Errno::ENOTEMPTY));
    assert_eq!(two.remove(ROOT, "dir", false), Err(Errno::EISDIR));
    assert_eq!(two.remove(dir, "file", true), Err(Errno::ENOTDIR));
    two.remove(dir, "file", false).unwrap();
    two.remove(ROOT, "dir", true).unwrap();
    assert_eq!(two.remove(ROOT, "dir", true), Err(Errno::ENOENT));
    assert_eq!(two.try_make(dir, "x", FileType::Fifo), Err(Errno::ENOENT));
    assert_eq!(
        (two.nlink(ROOT), two.nlink(dir), two.nlink(file)),
        (2, 0, 0)
    );
    two.is_clean();
}

#[test]
fn each_change_moves_the_version_though_the_clock_stands() {
    let two = Two::new();
    let file = two.file(ROOT, "file");
    let mut last = Version::of(&two.node(file).record);
    for _ in 0..3 {
        let request = Request::SetAttributes {
            ino: file,
            change: Change::default(),
        };
        let [(before, node)] = &touched(two.a.perform(request).unwrap())[..] else {
            panic!("one inode is touched");
        };
        assert_eq!(*before, Some(last));
        let version = Version::of(&node.record);
        assert!(version.ctime > last.ctime);
        assert_eq!(version.mtime, last.mtime);
        last = version;
    }
    let answer = touched(two.link(file, ROOT, "second").unwrap());
    let inos: Vec<_> = answer.iter().map(|(_, node)| node.record.ino).collect();
    assert_eq!(inos, [ROOT, file]);
    assert_eq!(answer[1].0, Some(last));
    let root = &answer[0].1.record;
    assert!(root.mtime == root.ctime && root.ctime > answer[0].0.unwrap().ctime);
}

#[test]
fn a_link_needs_an_inode_with_a_name_or_one_that_never_had_one() {
    let two = Two::new();
    let dir = two.directory(ROOT, "dir");
    let file = two.file(ROOT, "file");
    assert_eq!(two.link(dir, ROOT, "x"), Err(Errno::EPERM));
    assert_eq!(two.link(file, ROOT, "dir"), Err(Errno::EEXIST));
    two.link(file, dir, "second").unwrap();
    assert_eq!((two.nlink(file), two.node(file).record.parent), (2, dir));
    two.remove(ROOT, "file", false).unwrap();
    two.remove(dir, "second", false).unwrap();
    assert_eq!(two.link(file, ROOT, "x"), Err(Errno::ENOENT));
    let new = two.new_inode(FileType::Regular);
    let unnamed = new.ino;
    two.a.perform(Request::MakeUnnamed { dir, new }).unwrap();
    assert_eq!(two.nlink(unnamed), 0);
    two.link(unnamed, ROOT, "x").unwrap();
    assert_eq!(two.nlink(unnamed), 1);
    two.is_clean();
}

#[test]
fn no_directory_moves_below_itself() {
    let two = Two::new();
    let a = two.directory(ROOT, "a");
    let b = two.directory(a, "b");
    let c = two.directory(b, "c");
    let x = two.file(ROOT, "x");
    assert_eq!(two.rename((ROOT, "a"), (c, "a"), PLAIN), Err(Errno::EINVAL));
    assert_eq!(two.rename((ROOT, "a"), (a, "a"), PLAIN), Err(Errno::EINVAL));
    let exchange = RenameFlags::EXCHANGE;
    let exchanged = two.rename((b, "c"), (ROOT, "a"), exchange);
    assert_eq!(exchanged, Err(Errno::EINVAL));
    two.rename((ROOT, "x"), (c, "x"), PLAIN).unwrap();
    two.rename((a, "b"), (ROOT, "b"), PLAIN).unwrap();
    two.rename((ROOT, "a"), (c, "a"), PLAIN).unwrap();
    assert_eq!(two.node(a).record.parent, c);
    assert_eq!((two.nlink(ROOT), two.nlink(c), two.nlink(a)), (3, 3, 2));
    assert_eq!(two.node(x).record.parent, c);
    two.is_clean();
}

#[test]
fn a_rename_replaces_what_it_may() {
    let two = Two::new();
    let [d, e] = ["d", "e"].map(|name| two.directory(ROOT, name));
    let [f, g] = ["f", "g"].map(|name| two.file(ROOT, name));
    two.file(e, "inside");
    let at = |name| (ROOT, name);
    assert_eq!(two.rename(at("f"), at("d"), PLAIN), Err(Errno::EISDIR));
    assert_eq!(two.rename(at("d"), at("f"), PLAIN), Err(Errno::ENOTDIR));
    assert_eq!(two.rename(at("d"), at("e"), PLAIN), Err(Errno::ENOTEMPTY));
    assert_eq!(two.rename(at("n"), at("e"), PLAIN), Err(Errno::ENOENT));
    let no_replace = RenameFlags::NOREPLACE;
    assert_eq!(two.rename(at("f"), at("g"), no_replace), Err(Errno::EEXIST));
    assert_eq!(
        two.rename(at("f"), at("n"), RenameFlags::EXCHANGE),
        Err(Errno::ENOENT)
    );
    let replaced = two.rename(at("f"), at("g"), PLAIN).unwrap();
    let Answer::Done { entry, other, .. } = replaced else {
        panic!("refused");
    };
    assert_eq!(entry, Some((f, FileType::Regular)));
    assert_eq!(other, Some((g, FileType::Regular)));
    assert_eq!((two.nlink(f), two.nlink(g)), (1, 0));
    two.rename(at("e"), at("d"), PLAIN).unwrap();
    assert_eq!((two.nlink(ROOT), two.nlink(d), two.nlink(e)), (3, 0, 2));
    two.link(f, ROOT, "same").unwrap();
    let same = two.rename(at("g"), at("same"), PLAIN).unwrap();
    assert_eq!(touched(same), []);
    assert_eq!(two.nlink(f), 2);
    two.is_clean();
}

#[test]
fn an_exchange_moves_both_and_a_whiteout_stays_behind() {
    let two = Two::new();
    let d = two.directory(ROOT, "d");
    let e = two.directory(d, "e");
    let f = two.file(ROOT, "f");
    two.rename((ROOT, "f"), (d, "e"), RenameFlags::EXCHANGE)
        .unwrap();
    assert_eq!(two.names(d), [("e".to_owned(), f)]);
    assert_eq!((two.nlink(ROOT), two.nlink(d)), (4, 2));
    assert_eq!(
        (two.node(e).record.parent, two.node(f).record.parent),
        (ROOT, d)
    );
    two.rename((d, "e"), (d, "n"), RenameFlags::WHITEOUT)
        .unwrap();
    let names = two.names(d);
    assert_eq!(names[0], ("n".to_owned(), f));
    assert_eq!(names[1].0, "e");
    assert_eq!(two.node(names[1].1).record.kind, FileType::CharDevice);
    let both = RenameFlags::EXCHANGE | RenameFlags::WHITEOUT;
    assert_eq!(two.rename((d, "e"), (d, "n"), both), Err(Errno::EINVAL));
    two.is_clean();
}

#[test]
fn attributes_and_extended_ones_change() {
    let two = Two::new();
    let file = two.file(ROOT, "file");
    let set = |name: &str, how, value: Option<&str>, perm| {
        two.a.perform(Request::SetXattr {
            ino: file,
            name: bytes(name),
            value: value.map(bytes),
            how,
            perm,
        })
    };
    assert_eq!(
        set("user.x", XattrSet::Replace, Some("1"), None),
        Err(Errno::ENODATA)
    );
    set("user.x", XattrSet::Create, Some("1"), None).unwrap();
    assert_eq!(
        set("user.x", XattrSet::Create, Some("1"), None),
        Err(Errno::EEXIST)
    );
    set("security.capability", XattrSet::Any, Some("cap"), None).unwrap();
    let acl = "system.posix_acl_access";
    set(acl, XattrSet::Any, Some("acl"), Some(0o600)).unwrap();
    set(acl, XattrSet::Any, None, Some(0o640)).unwrap();
    let names = |it: Vec<holdfast_core::store::Rest>| {
        let xattrs = it.into_iter().flat_map(|rest| rest.xattrs);
        xattrs.map(|(name, _)| name).collect::<Vec<_>>()
    };
    let rests = two.a.load_rests(&[file]).unwrap();
    assert_eq!(names(rests), ["security.capability", "user.x"].map(bytes));
    assert_eq!(two.node(file).record.perm, 0o640);
    let change = Change {
        uid: Some(1),
        mtime: Some(SetTime::At(Time::new(5, 0))),
        atime: Some(SetTime::Now),
        ..Change::default()
    };
    two.a
        .perform(Request::SetAttributes { ino: file, change })
        .unwrap();
    let record = two.node(file).record;
    assert_eq!(
        (record.uid, record.gid, record.mtime),
        (1, 8, Time::new(5, 0))
    );
    assert_eq!(record.atime, record.ctime);
    let rests = two.a.load_rests(&[file]).unwrap();
    assert_eq!(names(rests), ["user.x"].map(bytes));
    let remove = |ino| {
        two.a.perform(Request::RemoveXattr {
            ino,
            name: bytes("user.x"),
        })
    };
    remove(file).unwrap();
    assert_eq!(remove(file), Err(Errno::ENODATA));
    assert_eq!(remove(Ino(9999)), Err(Errno::ESTALE));
    assert!(!two.node(file).record.xattrs);
    assert_eq!(two.a.load_rests(&[file, Ino(9999)]), Err(Errno::ESTALE));
}

#[test]
fn directories_are_read_in_pages_or_whole() {
    let two = Two::new();
    let dir = two.directory(ROOT, "dir");
    let files = ["a", "b", "c"].map(|name| two.file(dir, name));
    let first = two.a.read_names(dir, 0, 2, &[]).unwrap();
    let rest = two.a.read_names(dir, first[1].cookie, 9, &[]).unwrap();
    assert_eq!(rest.len(), 1);
    assert!(
        two.a
            .read_names(dir, rest[0].cookie, 9, &[])
            .unwrap()
            .is_empty()
    );
    assert!(two.a.read_names(dir, u64::MAX, 9, &[]).unwrap().is_empty());
    let read = two
        .a
        .read_directories(&[dir, files[0], ROOT], 3, true, &[])
        .unwrap();
    let [Some(whole), None, Some(root)] = &read[..] else {
        panic!("{read:?}");
    };
    assert_eq!(whole.node, two.node(dir));
    assert_eq!((whole.names.len(), whole.inodes.len()), (3, 3));
    assert_eq!(root.inodes, [two.node(dir)]);
    let few = two.a.read_directories(&[dir], 2, true, &[]).unwrap();
    assert_eq!(few, [None]);
    let walked = two.a.walk(dir, 2).unwrap();
    assert_eq!(walked, [two.node(files[0]), two.node(files[1])]);
}
