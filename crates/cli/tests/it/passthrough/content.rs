//! Reads and writes reach the host's files, and are visible at once.

use super::{Mount, on_both, python, truncate};
use holdfast_fuse::wire::Opcode;
use rustix::fs::{FallocateFlags, OFlags, SeekFrom, copy_file_range, fallocate, seek};
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

fn writable(path: &Path) -> File {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap()
}

/// Compares a file in the mount with the host's.
#[track_caller]
fn same(mount: &Mount, name: &str) {
    let told = |path| {
        let is = fs::metadata(path).unwrap();
        let (mtime, ctime) = (is.mtime_nsec(), is.ctime_nsec());
        (is.len(), is.blocks(), mtime, ctime, is.mode(), is.nlink())
    };
    assert_eq!(told(mount.at(name)), told(mount.below(name)), "{name}");
}

#[test]
fn bytes_go_to_the_host_and_come_from_there_without_a_request() {
    on_both(|mount| {
        fs::write(mount.at("new"), b"written through the mount").unwrap();
        let read = fs::read(mount.below("new")).unwrap();
        assert_eq!(read, b"written through the mount");
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n / 7) as u8).collect();
        fs::write(mount.below("old"), &bytes).unwrap();
        assert_eq!(fs::read(mount.at("old")).unwrap(), bytes);
        // Changes by others to an open file are read at once.
        let open = File::open(mount.at("old")).unwrap();
        let others = writable(&mount.below("old"));
        for round in 0..50_u8 {
            others.write_all_at(&[round; 5], 1_000_000).unwrap();
            let mut read = [0; 5];
            open.read_exact_at(&mut read, 1_000_000).unwrap();
            assert_eq!(read, [round; 5]);
        }
        drop(open);
        mount.end_untouched();
    });
}

#[test]
fn length_and_times_are_seen_by_stat_at_once() {
    on_both(|mount| {
        let file = File::create(mount.at("file")).unwrap();
        for round in 1..=200_u64 {
            (&file).write_all(b"ten bytes.").unwrap();
            assert_eq!(fs::metadata(mount.at("file")).unwrap().len(), round * 10);
            assert_eq!(file.metadata().unwrap().len(), round * 10);
            same(&mount, "file");
        }
        drop(file);
        same(&mount, "file");
        // Also with a writer on another open file, and with attributes from listings.
        let (one, other) = (writable(&mount.at("file")), writable(&mount.at("file")));
        for round in 0..50_u64 {
            one.write_all_at(b"x", 3000 + 2 * round).unwrap();
            other.write_all_at(b"x", 3001 + 2 * round).unwrap();
            let listed = fs::read_dir(mount.dir.path()).unwrap().next().unwrap();
            let len = listed.unwrap().metadata().unwrap().len();
            assert_eq!(len, 3002 + 2 * round);
            same(&mount, "file");
        }
        drop((one, other));
        same(&mount, "file");
        mount.end_untouched();
    });
}

#[test]
fn mappings_are_the_hosts() {
    on_both(|mount| {
        fs::write(mount.below("file"), vec![b'a'; 100_000]).unwrap();
        let told = python(
            "import mmap, os, sys
f = os.open(sys.argv[1], os.O_RDWR)
m = mmap.mmap(f, 0)
m[50000:50005] = b'store'
os.pwrite(f, b'write', 60000)
size = os.stat(sys.argv[1]).st_mtime_ns == os.stat(sys.argv[2]).st_mtime_ns
os.close(f)
m[70000:70004] = b'late'
print(m[60000:60005].decode(), m[0:1].decode(), size)",
            &[&mount.at("file"), &mount.below("file")],
        );
        assert_eq!(told, "write a True");
        for path in [mount.at("file"), mount.below("file")] {
            let read = fs::read(path).unwrap();
            assert_eq!(&read[50_000..50_005], b"store");
            assert_eq!(&read[60_000..60_005], b"write");
            assert_eq!(&read[70_000..70_004], b"late");
        }
        mount.end_untouched();
    });
}

#[test]
fn lengths_are_changed_beside_open_files() {
    on_both(|mount| {
        fs::write(mount.at("file"), vec![1; 10_000]).unwrap();
        let file = writable(&mount.at("file"));
        // By its path, by the open file, and on the host.
        truncate(&mount.at("file"), 5000);
        assert_eq!(file.metadata().unwrap().len(), 5000);
        file.set_len(7000).unwrap();
        same(&mount, "file");
        let mut read = Vec::new();
        (&file).read_to_end(&mut read).unwrap();
        assert_eq!((read.len(), read[4999], read[5000]), (7000, 1, 0));
        File::options()
            .write(true)
            .open(mount.below("file"))
            .unwrap()
            .set_len(10)
            .unwrap();
        assert_eq!(fs::metadata(mount.at("file")).unwrap().len(), 10);
        // Emptied by an open, and appended to by two that do not know of each other.
        drop(File::create(mount.at("file")).unwrap());
        assert_eq!(file.metadata().unwrap().len(), 0);
        let appends = |path| OpenOptions::new().append(true).open(path).unwrap();
        let (mut here, mut there) = (appends(mount.at("file")), appends(mount.below("file")));
        for _ in 0..10 {
            here.write_all(b"here").unwrap();
            there.write_all(b"there").unwrap();
        }
        assert_eq!(fs::read(mount.at("file")).unwrap(), b"herethere".repeat(10));
        same(&mount, "file");
        drop((file, here));
        mount.end_untouched();
    });
}

#[test]
fn ranges_copies_holes_and_direct_io_meet_what_was_written() {
    on_both(|mount| {
        let file = File::create_new(mount.at("file")).unwrap();
        let file = (file, writable(&mount.at("file"))).1;
        file.write_all_at(&[7; 65_536], 1 << 20).unwrap();
        assert_eq!(seek(&file, SeekFrom::Data(0)).unwrap(), 1 << 20);
        assert_eq!(
            seek(&file, SeekFrom::Hole(1 << 20)).unwrap(),
            (1 << 20) + 65_536
        );
        fallocate(
            &file,
            FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            1 << 20,
            4096,
        )
        .unwrap();
        let mut read = [1; 8192];
        file.read_exact_at(&mut read, 1 << 20).unwrap();
        assert!(read[..4096].iter().all(|&byte| byte == 0) && read[4096] == 7);
        fallocate(&file, FallocateFlags::empty(), 0, 3 << 20).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 3 << 20);
        same(&mount, "file");
        // A copy within the mount reads data just written on the host.
        file.write_all_at(b"just now", 4096).unwrap();
        let copy = File::create(mount.at("copy")).unwrap();
        let copied = copy_file_range(&file, Some(&mut 4096), &copy, Some(&mut 0), 8192).unwrap();
        assert_eq!(copied, 8192);
        assert_eq!(&fs::read(mount.at("copy")).unwrap()[..8], b"just now");
        file.sync_all().unwrap();
        file.sync_data().unwrap();
        let direct = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::DIRECT.bits().cast_signed())
            .open(mount.at("file"));
        // Not every host has it.
        if let Ok(direct) = direct {
            let mut page = vec![0; 3 * 4096];
            let at = page.as_ptr().align_offset(4096);
            let read = direct.read_at(&mut page[at..at + 4096], 4096).unwrap();
            assert_eq!((read, &page[at..at + 8]), (4096, &b"just now"[..]));
        }
        drop((file, copy));
        assert_eq!(mount.requests(Opcode::Read), 0);
        mount.end_untouched();
    });
}

#[test]
fn what_has_lost_its_name_or_moved_goes_on() {
    on_both(|mount| {
        for name in ["gone", "moved", "covered", "over"] {
            fs::write(mount.at(name), name).unwrap();
        }
        let gone = writable(&mount.at("gone"));
        let moved = writable(&mount.at("moved"));
        let covered = writable(&mount.at("covered"));
        fs::remove_file(mount.at("gone")).unwrap();
        fs::create_dir(mount.at("dir")).unwrap();
        fs::rename(mount.at("moved"), mount.at("dir/new name")).unwrap();
        fs::rename(mount.at("over"), mount.at("covered")).unwrap();
        for file in [&gone, &moved, &covered] {
            file.write_all_at(b"still written", 100).unwrap();
            assert_eq!(file.metadata().unwrap().len(), 113);
            let mut read = [0; 13];
            file.read_exact_at(&mut read, 100).unwrap();
            assert_eq!(&read, b"still written");
        }
        assert_eq!(gone.metadata().unwrap().nlink(), 0);
        gone.set_len(5).unwrap();
        assert_eq!(gone.metadata().unwrap().len(), 5);
        assert_eq!(fs::read(mount.at("covered")).unwrap(), b"over");
        let read = fs::read(mount.below("dir/new name")).unwrap();
        assert_eq!((read.len(), &read[..5]), (113, &b"moved"[..]));
        // An unnamed file that is linked later.
        let unnamed = tempfile::tempfile_in(mount.dir.path()).unwrap();
        unnamed.write_all_at(b"unnamed", 0).unwrap();
        assert_eq!(unnamed.metadata().unwrap().len(), 7);
        drop((gone, moved, covered, unnamed));
        mount.end_untouched();
    });
}
