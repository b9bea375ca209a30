//! Finds the holder of a device that cannot be opened. The result is shown to people, so it may be
//! a guess, and whatever cannot be read is skipped.

use crate::Holder;
use rustix::fs::{FileType, Stat, major, minor};
use std::fs::File;
use std::path::Path;

/// The holder of a lock on `file`, of which this process may have one that is `shared`.
pub(super) fn of_lock(file: &File, shared: bool) -> Holder {
    let Ok(stat) = rustix::fs::fstat(file) else {
        return Holder::Unknown;
    };
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    // The process that took the lock may have ended and left it to a child. Some file systems show
    // different device numbers in different places.
    let owner =
        lock_owners(&locks, &stat)
            .into_iter()
            .find(|&pid| match pid == std::process::id() {
                true => !shared,
                false => descriptors(pid, &stat) > 0,
            });
    // This process has it open at least once: it tries to lock it.
    owner.map_or_else(|| of_open_file(&stat, 1), process)
}

/// The holder of a block device that the kernel refuses to open.
pub(super) fn of_block_device(path: &Path) -> Holder {
    let Ok(stat) = rustix::fs::stat(path) else {
        return Holder::Unknown;
    };
    let device = format!("{}:{}", major(stat.st_rdev), minor(stat.st_rdev));
    let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let mounts = String::from_utf8_lossy(&mounts);
    if let Some(target) = mounted_at(&mounts, &device) {
        return Holder::Mount { target };
    }
    let above = std::fs::read_dir(format!("/sys/dev/block/{device}/holders"));
    match above.ok().and_then(|mut it| it.next()?.ok()) {
        Some(above) => Holder::Device {
            name: above.file_name().to_string_lossy().into_owned(),
        },
        None => of_open_file(&stat, 0),
    }
}

/// The processes with an flock(2) on a file, those with the same device first.
fn lock_owners(locks: &str, stat: &Stat) -> Vec<u32> {
    let device = format!("{:02x}:{:02x}", major(stat.st_dev), minor(stat.st_dev));
    let mut owners = Vec::new();
    for line in locks.lines() {
        // 1: FLOCK  ADVISORY  WRITE 1234 fe:00:98765 0 EOF
        let mut words = line.split_whitespace().skip(1);
        if words.next() != Some("FLOCK") {
            continue;
        }
        let (Some(pid), Some(place)) = (words.nth(2), words.next()) else {
            continue;
        };
        let (Ok(pid), Some((on, ino))) = (pid.parse(), place.rsplit_once(':')) else {
            continue;
        };
        if ino.parse() == Ok(stat.st_ino) {
            owners.push((on != device, pid));
        }
    }
    owners.sort_unstable();
    owners.into_iter().map(|(_, pid)| pid).collect()
}

/// The mount point of a device, as `major:minor`.
fn mounted_at(mounts: &str, device: &str) -> Option<String> {
    // 36 35 98:0 / /mnt rw,noatime shared:1 - ext3 /dev/root rw
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let mut lines = mounts.lines().map(words);
    lines
        .find(|words| words.get(2).is_some_and(|it| it == device))
        .and_then(|words| words.get(4).cloned())
}

/// A process that has the file open, or the device if it is one. This process counts if it has it
/// open more than `own` times.
fn of_open_file(stat: &Stat, own: usize) -> Holder {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Holder::Unknown;
    };
    let this = std::process::id();
    let holds = |&pid: &u32| descriptors(pid, stat) > if pid == this { own } else { 0 };
    let mut pids = processes.filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok());
    pids.find(holds).map_or(Holder::Unknown, process)
}

/// The number of descriptors that a process has of the file, or the device if it is one.
fn descriptors(pid: u32, stat: &Stat) -> usize {
    let Ok(descriptors) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
        return 0;
    };
    let block = FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice;
    let same = |it: &Stat| {
        if block {
            it.st_mode == stat.st_mode && it.st_rdev == stat.st_rdev
        } else {
            (it.st_dev, it.st_ino) == (stat.st_dev, stat.st_ino)
        }
    };
    let stats = descriptors.flatten().map(|it| rustix::fs::stat(it.path()));
    stats.flatten().filter(same).count()
}

fn process(pid: u32) -> Holder {
    if pid == std::process::id() {
        return Holder::ThisProcess;
    }
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut command = String::from_utf8_lossy(&words).replace('\0', " ");
    if command.trim().is_empty() {
        let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
        command = String::from_utf8_lossy(&name).into_owned();
    }
    // A command line can have megabytes, and control sequences of terminals.
    let command: String = command.trim().chars().map(plain).take(120).collect();
    Holder::Process { pid, command }
}

fn plain(character: char) -> char {
    if character.is_control() {
        ' '
    } else {
        character
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_owners_are_found_by_inode_those_of_the_same_device_first() {
        let file = tempfile::tempfile().unwrap();
        let stat = rustix::fs::fstat(&file).unwrap();
        let (ino, device) = (stat.st_ino, stat.st_dev);
        let device = format!("{:02x}:{:02x}", major(device), minor(device));
        let locks = format!(
            "1: POSIX  ADVISORY  WRITE 1 {device}:{ino} 0 EOF\n\
             2: FLOCK  ADVISORY  WRITE 2 ff:ff:{ino} 0 EOF\n\
             2: -> FLOCK  ADVISORY  WRITE 3 {device}:{ino} 0 EOF\n\
             3: FLOCK  ADVISORY  READ  4 {device}:{ino} 0 EOF\n\
             4: FLOCK  ADVISORY  READ  5 {device}:{} 0 EOF\n\
             5: FLOCK\n\nFLOCK x y z\n",
            ino + 1,
        );
        assert_eq!(lock_owners(&locks, &stat), [4, 2]);
    }

    #[test]
    fn a_mount_is_found_by_its_device() {
        let mounts =
            "36 35 98:0 / /mnt rw - ext3 /dev/a rw\n37 35 98:1 / /data rw - xfs /dev/b rw\n";
        assert_eq!(mounted_at(mounts, "98:1").as_deref(), Some("/data"));
        assert_eq!(mounted_at(mounts, "8:1"), None);
    }
}
