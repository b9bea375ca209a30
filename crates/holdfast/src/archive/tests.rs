use std::ffi::OsStr;
use std::path::Path;

use tar::{EntryType, Header};

use super::*;
use crate::copy::tests::{sample, told};
use crate::types::Errno;
use crate::{AtimePolicy, Caller, OpenOptions, Options, XattrSet};
use std::sync::atomic::Ordering;

/// Unpacks an archive; panics on the first failure.
fn unpacked(archive: &[u8]) -> FileSystem {
    let fs = plain();
    let options = UnpackOptions::of(fs.caller());
    let told = &mut |event: CopyEvent<'_>| {
        if let CopyEvent::Failed(failed) = event {
            panic!("{failed}");
        }
    };
    fs.unpack(&mut &archive[..], "/tree", &options, told)
        .unwrap();
    fs
}

/// A file system with an empty directory, which does not move access times.
fn plain() -> FileSystem {
    let fs = FileSystem::builder().options(Options {
        atime: AtimePolicy::None,
        ..Options::default()
    });
    let fs = fs.caller(Caller::root()).build();
    fs.create_dir("/tree").unwrap();
    fs
}

fn packed(fs: &FileSystem) -> Vec<u8> {
    let mut archive = Vec::new();
    let told = &mut |event: CopyEvent<'_>| {
        if let CopyEvent::Failed(failed) = event {
            panic!("{failed}");
        }
    };
    fs.pack("/tree", &mut archive, &PackOptions::default(), told)
        .unwrap();
    archive
}

/// The attributes that an archive keeps: all but access times.
fn kept(fs: &FileSystem) -> Vec<String> {
    // Drops the access time of each line.
    let shown = told(fs, "/tree").into_iter();
    shown
        .map(|line| {
            line.split(" Time(")
                .enumerate()
                .filter(|(at, _)| *at != 2)
                .map(|(_, part)| part.to_owned())
                .collect()
        })
        .collect()
}

fn add_odd_names(fs: &FileSystem) {
    let long = "n".repeat(255);
    let mut dir = fs.open_dir("/tree").unwrap();
    for _ in 0..14 {
        dir.create_dir(&long).unwrap();
        dir = dir.open_dir(&long).unwrap();
    }
    dir.write("deep", "down").unwrap();
    dir.symlink("t".repeat(4000), "far").unwrap();
    fs.chown("/tree/void", Some(4_000_000_000), Some(3_000_000))
        .unwrap();
    fs.set_xattr("/tree/void", "user.text", b"a=b\nc\n", XattrSet::Any)
        .unwrap();
}

#[test]
fn a_tree_is_the_same_out_of_its_archive() {
    let fs = sample();
    add_odd_names(&fs);
    let archive = packed(&fs);
    let again = unpacked(&archive);
    assert_eq!(kept(&again), kept(&fs));
    let holes = |fs: &FileSystem| fs.metadata("/tree/sparse").unwrap().attr().blocks;
    assert_eq!(holes(&again), holes(&fs));
    assert_eq!(packed(&again), archive);
}

/// One member by hand.
fn member(kind: EntryType, name: &str, target: &str, content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(0o755);
    header.set_uid(7);
    header.set_gid(8);
    header.set_mtime(9);
    header.set_size(content.len() as u64);
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_cksum();
    let mut bytes = [header.as_bytes(), content].concat();
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// Unpacks, and returns the failures.
fn failures(fs: &FileSystem, archive: &[u8]) -> Vec<String> {
    let mut failed = Vec::new();
    let options = UnpackOptions::of(fs.caller());
    let told = &mut |event: CopyEvent<'_>| {
        if let CopyEvent::Failed(error) = event {
            failed.push(error.to_string());
        }
    };
    fs.unpack(&mut &archive[..], "/tree", &options, told)
        .unwrap();
    failed
}

#[test]
fn nothing_is_made_outside_of_the_directory() {
    let fs = plain();
    fs.create_dir("/outside").unwrap();
    fs.write("/outside/secret", "kept").unwrap();
    let archive = [
        member(EntryType::Regular, "../outside/a", "", b"x"),
        member(EntryType::Regular, "dir/../../outside/b", "", b"x"),
        member(EntryType::Symlink, "way", "/outside", b""),
        member(EntryType::Regular, "way/c", "", b"x"),
        member(EntryType::Directory, "way/d", "", b""),
        member(EntryType::Link, "steal", "way/secret", b""),
        member(EntryType::Link, "steal", "../outside/secret", b""),
        member(EntryType::Symlink, "here", ".", b""),
        member(EntryType::Symlink, "file", "/outside/secret", b""),
        member(EntryType::Regular, "file", "", b"own"),
        member(EntryType::Regular, "/outside/e", "", b"inside"),
        member(EntryType::Symlink, "dirlink", "/outside", b""),
        member(EntryType::Directory, "dirlink", "", b""),
        member(EntryType::Regular, "dirlink/f", "", b"inside"),
    ]
    .concat();
    let failed = failures(&fs, &archive);
    assert_eq!(failed.len(), 6, "{failed:#?}");
    let names: Vec<_> = fs
        .read_dir("/outside")
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["secret"]);
    assert_eq!(fs.read("/outside/secret").unwrap(), b"kept");
    assert_eq!(fs.metadata("/outside").unwrap().uid(), 0);
    assert_eq!(fs.read("/tree/file").unwrap(), b"own");
    assert_eq!(fs.read("/tree/outside/e").unwrap(), b"inside");
    assert_eq!(fs.read("/tree/dirlink/f").unwrap(), b"inside");
}

/// A PAX header.
fn records(kind: u8, pairs: &[(&str, &[u8])]) -> Vec<u8> {
    let mut content = Vec::new();
    for (key, value) in pairs {
        let rest = key.len() + value.len() + 3;
        let length = (rest + 1..).find(|length| rest + length.to_string().len() == *length);
        content.extend(format!("{} {key}=", length.unwrap()).bytes());
        content.extend(*value);
        content.push(b'\n');
    }
    member(EntryType::new(kind), "PaxHeaders", "", &content)
}

/// A hand-made member with a size other than that of its data.
fn with_size(mut bytes: Vec<u8>, size: &[u8; 12]) -> Vec<u8> {
    let mut header = Header::new_old();
    header.as_mut_bytes().copy_from_slice(&bytes[..512]);
    header.as_old_mut().size = *size;
    header.set_cksum();
    bytes[..512].copy_from_slice(header.as_bytes());
    bytes
}

#[test]
fn a_directory_that_appears_twice_has_the_last_attributes() {
    let mut again = member(EntryType::Directory, "dir", "", b"");
    let mut header = Header::new_old();
    header.as_mut_bytes().copy_from_slice(&again);
    header.set_mode(0o700);
    header.set_mtime(99);
    header.set_cksum();
    again.copy_from_slice(header.as_bytes());
    let archive = [
        member(EntryType::Directory, "dir/", "", b""),
        member(EntryType::Regular, "dir/file", "", b"x"),
        again,
    ];
    let fs = unpacked(&archive.concat());
    let meta = fs.metadata("/tree/dir").unwrap();
    assert_eq!((meta.mode() & 0o7777, meta.mtime()), (0o700, 99));
}

#[test]
fn the_size_of_a_hard_link_is_data_only_where_there_is_data() {
    let link = || member(EntryType::Link, "link", "file", b"");
    let data = [&[7; 600][..], &[0; 424]].concat();
    for between in [
        with_size(link(), b"00000001130\0"),
        [with_size(link(), b"00000001130\0"), data.clone()].concat(),
        [records(b'x', &[("size", b"600")]), link(), data].concat(),
    ] {
        let archive = [
            member(EntryType::Regular, "file", "", b"x"),
            between,
            member(EntryType::Regular, "last", "", b"y"),
            vec![0; 1024],
        ];
        let fs = unpacked(&archive.concat());
        assert_eq!(fs.read("/tree/last").unwrap(), b"y");
        assert_eq!(fs.read("/tree/link").unwrap(), b"x");
        assert_eq!(fs.metadata("/tree/file").unwrap().nlink(), 2);
    }
    let fs = plain();
    let itself = member(EntryType::Link, "link", "link", b"");
    let missing = member(EntryType::Link, "made/link", "missing/file", b"");
    assert_eq!(failures(&fs, &[itself, missing].concat()).len(), 2);
    assert!(fs.exists("/tree/made") && !fs.exists("/tree/missing"));
}

#[test]
fn labels_dumps_and_unknown_types_are_what_gnu_tar_makes_of_them() {
    let fs = plain();
    let archive = [
        member(EntryType::new(b'V'), "label", "", b""),
        member(EntryType::new(b'D'), "dump", "", b"Yfile\0\0"),
        member(EntryType::new(b'M'), "continued", "", b"rest"),
        member(EntryType::new(b'Z'), "unknown", "", b"content"),
        // The name belongs to the lost header.
        member(EntryType::GNULongName, "L", "", b"lost\0"),
        [b'j'; 512].to_vec(),
        with_size(member(EntryType::Regular, "no-size", "", b""), &[b' '; 12]),
        records(
            b'x',
            &[("mtime", b"later"), ("SCHILY.acl.ace", b"owner@:r:allow")],
        ),
        member(EntryType::Regular, "file", "", b"x"),
    ];
    let failed = failures(&fs, &archive.concat());
    assert_eq!(failed.len(), 4, "{failed:#?}");
    assert!(
        failed[0].contains("goes on from another archive"),
        "{failed:#?}"
    );
    assert!(
        failed[1..].iter().all(|text| text.starts_with("file: ")),
        "{failed:#?}"
    );
    let names = fs
        .read_dir("/tree")
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, ["dump", "file", "unknown"]);
    assert!(fs.metadata("/tree/dump").unwrap().is_dir());
    assert_eq!(fs.read("/tree/unknown").unwrap(), b"content");
}

#[test]
fn attributes_of_bsdtar_are_what_it_packed() {
    let acl = b"user::rw-,group::r--,other::---,user:7:rwx:7,mask::rwx";
    let archive = [
        records(
            b'x',
            &[
                ("LIBARCHIVE.xattr.user.a%20b%3D", b"AQI"),
                ("SCHILY.xattr.user.a%20b%3D", b"\x01\x02"),
                ("SCHILY.xattr.user.gnu%3D%25%20", b"kept\n"),
                ("SCHILY.acl.access", acl),
            ],
        ),
        member(EntryType::Regular, "file", "", b"x"),
    ];
    let fs = unpacked(&archive.concat());
    let mut names = fs.list_xattr("/tree/file").unwrap();
    names.sort();
    let expected = ["system.posix_acl_access", "user.a b=", "user.gnu=%%20"];
    assert_eq!(names, expected);
    assert_eq!(
        fs.get_xattr("/tree/file", "user.a b=").unwrap().unwrap(),
        [1, 2]
    );
    // The header has the group's permissions, 5; the mask's are 7.
    let mode = fs.metadata("/tree/file").unwrap().mode();
    assert_eq!(mode & 0o7777, 0o670, "{mode:o}");
    let again = unpacked(&packed(&fs));
    assert_eq!(kept(&again), kept(&fs));
}

#[test]
fn what_a_directory_lends_its_files_is_no_part_of_an_archive() {
    let fs = plain();
    let acl = acl_text::from_text(
        b"user::rwx,user:9:rwx,group::rwx,mask::rwx,other::---",
        None,
    );
    fs.set_xattr(
        "/tree",
        "system.posix_acl_default",
        acl.unwrap(),
        XattrSet::Any,
    )
    .unwrap();
    let archive = member(EntryType::Regular, "file", "", b"x");
    assert_eq!(failures(&fs, &archive), [""; 0]);
    assert_eq!(fs.list_xattr("/tree/file").unwrap(), [""; 0]);
    assert_eq!(fs.metadata("/tree/file").unwrap().mode() & 0o777, 0o755);
}

/// A stream that fails at its end.
struct DamagedEnd<'a>(&'a [u8]);

impl Read for DamagedEnd<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buf)? {
            0 => Err(io::Error::new(io::ErrorKind::InvalidData, "wrong checksum")),
            read => Ok(read),
        }
    }
}

#[test]
fn damage_names_the_member_and_that_of_the_streams_end_is_found() {
    let file = member(EntryType::Regular, "file", "", &[7; 5000]);
    let dir = member(EntryType::Directory, "dir", "", b"");
    let whole = [dir, file, vec![0; 1024]].concat();
    let fs = plain();
    let options = UnpackOptions::of(fs.caller());
    let unpack = |archive: &mut dyn Read, options: &UnpackOptions| {
        fs.unpack(archive, "/tree", options, &mut |_| ())
    };
    let error = unpack(&mut DamagedEnd(&whole), &options).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("behind the last member: wrong checksum"),
        "{error}"
    );
    let less = UnpackOptions {
        drain: false,
        ..options.clone()
    };
    assert!(unpack(&mut DamagedEnd(&whole), &less).is_ok());
    let error = unpack(&mut DamagedEnd(&whole[..3000]), &options).unwrap_err();
    assert_eq!(error.to_string(), "file: wrong checksum");
    for cut in [1025, 3000, 1024 + 5000, 512 + 7] {
        let error = unpack(&mut &whole[..cut], &options).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("the archive ends in the middle of"),
            "{error}"
        );
        // Its directories are finished nevertheless.
        assert_eq!(fs.metadata("/tree/dir").unwrap().mtime(), 9);
    }
}

#[test]
fn a_user_gets_his_own_files_by_his_own_rights() {
    let root = plain();
    root.set_permissions("/tree", crate::Permissions::from_mode(0o777))
        .unwrap();
    root.create_dir("/tree/locked").unwrap();
    let fs = root.as_user(Caller::user(1000, 1001).with_umask(0o027));
    let archive = [
        member(EntryType::Regular, "mine", "", b"x"),
        member(EntryType::Regular, "locked/a", "", b"x"),
        member(EntryType::Directory, "dir", "", b""),
        member(EntryType::Regular, "dir/inner", "", b"x"),
    ]
    .concat();
    let failed = failures(&fs, &archive);
    assert_eq!(failed.len(), 1, "{failed:?}");
    let meta = root.metadata("/tree/dir/inner").unwrap();
    assert_eq!(
        (meta.uid(), meta.gid(), meta.mode() & 0o7777),
        (1000, 1001, 0o750)
    );
    assert_eq!(root.metadata("/tree/dir").unwrap().mtime(), 9);
}

#[test]
fn a_stop_ends_it_with_an_error() {
    let fs = plain();
    let stop = Arc::new(AtomicBool::new(false));
    let options = UnpackOptions {
        stop: Some(Arc::clone(&stop)),
        ..UnpackOptions::of(fs.caller())
    };
    let archive = [
        member(EntryType::Regular, "one", "", b"x"),
        member(EntryType::Regular, "two", "", b"x"),
    ]
    .concat();
    let told = &mut |_: CopyEvent<'_>| stop.store(true, Ordering::Relaxed);
    let error = fs
        .unpack(&mut &archive[..], "/tree", &options, told)
        .unwrap_err();
    assert_eq!(error.error.raw_os_error(), Some(Errno::ECANCELED.raw()));
    assert!(fs.exists("/tree/one") && !fs.exists("/tree/two"));
    let options = PackOptions {
        stop: Some(stop),
        ..PackOptions::default()
    };
    let error = fs
        .pack("/tree", &mut Vec::new(), &options, &mut |_| ())
        .unwrap_err();
    assert_eq!(error.error.raw_os_error(), Some(Errno::ECANCELED.raw()));
}

#[test]
fn a_damaged_archive_is_an_error_and_never_a_panic() {
    let whole = packed(&sample());
    // The large content at the end is of no use here.
    let whole = &whole[whole.len().saturating_sub(60 * 512)..];
    let mut archives: Vec<Vec<u8>> = Vec::new();
    for (name, content) in [("a", &b"x"[..]), ("GNUSparseFile.0/a", b"1\n0\n9\n")] {
        archives.push(member(EntryType::Regular, name, "", content));
        for kind in *b"xgLKSVMDN5123467" {
            archives.push(
                [
                    member(EntryType::new(kind), name, "a", content),
                    whole.to_vec(),
                ]
                .concat(),
            );
        }
    }
    let mut rng = holdfast_testkit::rng::Rng::new(1);
    let mut random = || rng.bits() as usize;
    let options = UnpackOptions::of(&Caller::root());
    for round in 0..3000 {
        let mut archive = archives[round % archives.len()].clone();
        for _ in 0..random() % 4 {
            let at = random() % archive.len().min(1024);
            archive[at] = random() as u8;
        }
        // A correct checksum, so that the header is parsed.
        if random() % 4 > 0 {
            let mut header = Header::new_old();
            header.as_mut_bytes().copy_from_slice(&archive[..512]);
            header.set_cksum();
            archive[..512].copy_from_slice(header.as_bytes());
        }
        archive.truncate(archive.len() - random() % 600);
        let fs = plain();
        let _ = fs.unpack(&mut &archive[..], "/tree", &options, &mut |_| ());
    }
}

#[test]
fn no_tar_at_all_says_so() {
    let fs = plain();
    let options = UnpackOptions::of(fs.caller());
    for bytes in [&[b'x'; 2048][..], b"abc", b""] {
        let error = fs
            .unpack(&mut &bytes[..], "/tree", &options, &mut |_| ())
            .unwrap_err();
        assert_eq!(error.to_string(), "this is no tar archive");
    }
    let empty = fs.unpack(&mut &[0; 512][..], "/tree", &options, &mut |_| ());
    assert_eq!(empty.unwrap(), crate::Copied::default());
}

#[test]
fn one_file_is_an_archive_and_names_are_kept() {
    #[derive(Debug)]
    struct Ada;
    impl Owners for Ada {
        fn number(&self, kind: Named, name: &[u8]) -> Option<u32> {
            (kind == Named::User && name == b"ada").then_some(1815)
        }
        fn name(&self, kind: Named, number: u32) -> Option<Vec<u8>> {
            (kind == Named::User && number == 7).then(|| b"ada".to_vec())
        }
    }
    let fs = plain();
    let file = fs
        .open_with("/tree/one", OpenOptions::new().write(true).create(true))
        .unwrap();
    drop(file);
    fs.chown("/tree/one", Some(7), Some(8)).unwrap();
    let mut archive = Vec::new();
    let options = PackOptions {
        names: Some(Arc::new(Ada)),
        ..PackOptions::default()
    };
    fs.pack("/tree/one", &mut archive, &options, &mut |_| ())
        .unwrap();
    let again = plain();
    let options = UnpackOptions {
        names: Some(Arc::new(Ada)),
        ..UnpackOptions::of(again.caller())
    };
    again
        .unpack(&mut &archive[..], "/tree", &options, &mut |_| ())
        .unwrap();
    let names: Vec<_> = again
        .read_dir(Path::new("/tree"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, [OsStr::new("one")]);
    let meta = again.metadata("/tree/one").unwrap();
    assert_eq!((meta.uid(), meta.gid()), (1815, 8));
}
