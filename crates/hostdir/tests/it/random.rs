//! Random trees that change at random below a file system over them: after each few changes all is
//! as the host has it.

use crate::{NEVER, NOTIFIED, notifications, over, seen};
use holdfast_core::FileSystem;
use holdfast_core::store::Coherence;
use holdfast_core::types::{Caller, Fallocate, FileType, OpenFlags, RenameFlags, SetAttr};
use holdfast_testkit::rng::Rng;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

/// One of few directories and names, so that changes meet.
fn name(random: &mut Rng) -> String {
    let dir = random.pick(&["", "a/", "b/", "a/c/"]);
    let name = random.pick(&["one", "two", "three", "a", "b", "c"]);
    format!("{dir}{name}")
}

/// Changes something; what the host refuses (a directory in the way, nothing there) is refused.
fn change(random: &mut Rng, root: &Path) {
    let (path, other) = (root.join(name(random)), root.join(name(random)));
    let _ = match random.below(12) {
        0 | 1 => fs::create_dir_all(&path),
        2 => fs::remove_file(&path),
        3 => fs::remove_dir_all(&path),
        4 | 5 => fs::rename(&path, &other),
        6 => fs::hard_link(&path, &other),
        7 => symlink(other.file_name().unwrap(), &path),
        8 => fs::set_permissions(
            &path,
            fs::Permissions::from_mode(0o700 | random.below(64) as u32),
        ),
        9 => OpenOptions::new()
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(&vec![7; random.below(9000) as usize])),
        10 => OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|file| file.set_len(random.below(20_000))),
        _ => fs::write(
            &path,
            // Often of the length that it has.
            vec![random.below(256) as u8; 1500 * random.index(4)],
        ),
    };
}

/// Changes something through a file system; what it refuses it refuses.
fn change_here(random: &mut Rng, fs: &FileSystem) {
    let (who, root) = (Caller::root(), fs.root());
    let (name, other) = (name(random), name(random));
    let (name, other) = (name.as_bytes(), other.as_bytes());
    let node = seen::node(fs, name);
    let opened = |flags: OpenFlags| fs.open_at(&who, &root, name, flags, 0o640);
    let _ = match random.below(18) {
        0 | 1 => fs.mkdir_at(&who, &root, name, 0o755).map(drop),
        2 => fs.unlink_at(&who, &root, name),
        3 => fs.rmdir_at(&who, &root, name),
        4 | 5 => fs.rename_at(&who, &root, name, &root, other, RenameFlags::empty()),
        6 => fs.rename_at(&who, &root, name, &root, other, RenameFlags::EXCHANGE),
        7 => node.and_then(|node| fs.link_at(&who, &node, &root, other)),
        8 => fs.symlink_at(&who, &root, name, b"somewhere").map(drop),
        9 => node.and_then(|node| {
            let set = SetAttr {
                perm: Some(0o700 | random.below(64) as u16),
                ..SetAttr::default()
            };
            fs.setattr(&who, &node, &set, None).map(drop)
        }),
        10 => opened(OpenFlags::WRITE_ONLY).and_then(|file| {
            let data = vec![3; random.below(9000) as usize];
            fs.append(&who, &file, &data).map(drop)
        }),
        11 => opened(OpenFlags::READ_WRITE).and_then(|file| {
            let set = SetAttr {
                size: Some(random.below(400_000)),
                ..SetAttr::default()
            };
            fs.setattr(&who, file.node(), &set, Some(&file)).map(drop)
        }),
        12 => opened(OpenFlags::READ_WRITE).and_then(|file| {
            let data = vec![5; random.below(9000) as usize];
            let at = random.below(400_000);
            fs.write(&who, &file, at, &data).map(drop)
        }),
        13 => opened(OpenFlags::READ_WRITE).and_then(|file| {
            let punch = Fallocate::PUNCH_HOLE | Fallocate::KEEP_SIZE;
            let mode = *random.pick(&[punch, Fallocate::empty()]);
            fs.fallocate(&who, &file, mode, random.below(100_000), 9000)
        }),
        14 => opened(OpenFlags::READ_WRITE).and_then(|file| {
            let to = random.below(400_000);
            fs.copy_file_range(&who, &file, 0, &file, to, 5000)
                .map(drop)
        }),
        15 => fs
            .mknod_at(&who, &root, name, FileType::Socket, 0o600, 0)
            .map(drop),
        _ => opened(OpenFlags::CREATE | OpenFlags::WRITE_ONLY | OpenFlags::TRUNCATE).and_then(
            |file| {
                let data = vec![random.below(256) as u8; random.below(5000) as usize];
                fs.write(&who, &file, 0, &data).map(drop)
            },
        ),
    };
}

#[test]
fn whatever_is_changed_here_and_there_is_as_the_host_has_it() {
    for seed in 1..=80 {
        println!("seed {seed}");
        let dir = tempfile::tempdir().unwrap();
        let mut random = Rng::new(seed);
        // Where others change it as well nothing is believed, or all until it is told; else all is.
        let hour = Coherence::For(Duration::from_secs(3600));
        let coherence = [NEVER, NOTIFIED, Coherence::Exclusive, hour][seed as usize % 4];
        let alone = seed % 4 > 1;
        (0..20).for_each(|_| change(&mut random, dir.path()));
        let fs = over(dir.path(), coherence);
        for _ in 0..15 {
            for _ in 0..=random.below(6) {
                match !alone && random.below(4) == 0 {
                    true => change(&mut random, dir.path()),
                    false => change_here(&mut random, &fs),
                }
            }
            if coherence == NOTIFIED {
                notifications::wait(&fs, dir.path());
            }
            seen::compare(&fs, dir.path());
            if random.below(5) == 0 {
                fs.drop_caches().unwrap();
            }
        }
    }
}

#[test]
fn whatever_changes_is_seen_as_the_host_has_it() {
    for seed in 1..=30 {
        println!("seed {seed}");
        let dir = tempfile::tempdir().unwrap();
        let mut random = Rng::new(seed);
        (0..20).for_each(|_| change(&mut random, dir.path()));
        let fs = over(dir.path(), NEVER);
        for _ in 0..12 {
            seen::compare(&fs, dir.path());
            for _ in 0..=random.below(4) {
                change(&mut random, dir.path());
            }
            if random.below(5) == 0 {
                fs.drop_caches().unwrap();
            }
        }
    }
}
