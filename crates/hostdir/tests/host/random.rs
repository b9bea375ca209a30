//! Random trees that change at random below a file system over them: after each few changes all is as the host has it.

use crate::{NEVER, over, seen};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Marsaglia's xorshift: the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    /// One of few directories and names, so that changes meet.
    fn path(&mut self, root: &Path) -> PathBuf {
        let dirs = ["", "a", "b", "a/c"];
        let dir = dirs[self.below(4) as usize];
        let name = ["one", "two", "three", "a", "b", "c"][self.below(6) as usize];
        root.join(dir).join(name)
    }
}

/// Changes something; what the host refuses (a directory in the way, nothing there) is refused.
fn change(random: &mut Random, root: &Path) {
    let (path, other) = (random.path(root), random.path(root));
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
            vec![random.below(256) as u8; random.below(5000) as usize],
        ),
    };
}

#[test]
fn whatever_changes_is_seen_as_the_host_has_it() {
    for seed in 1..=30 {
        println!("seed {seed}");
        let dir = tempfile::tempdir().unwrap();
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ seed);
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
