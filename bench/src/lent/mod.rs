//! Memory that a virtual machine's host has taken back.
//!
//! A guest with a balloon that reports free pages (`VIRTIO_BALLOON_F_REPORTING`) returns each free
//! extent of 2 MiB to its host within seconds. It gets the memory back page by page, at the first
//! touch: 12 µs for each page of 4 KiB, against 0.2 to 0.7 for a page that is present. Creating a
//! file in memory took 230 or 680 ns for this reason alone. So the memory that a phase may need is
//! touched just before the phase and freed again, for every target alike.

mod sys;

use rustix::system::sysinfo;
use std::fs;
use std::path::Path;

/// Where control groups are found.
const GROUPS: &str = "/sys/fs/cgroup";

/// Lets the machine have so many bytes of free memory at hand: half of what is free at most, and of
/// what the process may still take. Where there is no such host, it costs the zeroing of that
/// memory, and changes nothing.
pub(crate) fn populate(bytes: u64) {
    let info = sysinfo();
    let free = info.freeram as u64 * u64::from(info.mem_unit).max(1);
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let free = free.min(left_by_groups(Path::new(GROUPS), &own));
    let bytes = usize::try_from(bytes.min(free / 2)).unwrap_or(0);
    if let Err(error) = sys::touch(bytes) {
        eprintln!(
            "free memory could not be touched before a phase, which may wait for the host: {error}"
        );
    }
}

/// What the control groups of a process leave it to take: `own` is how the kernel names them
/// (cgroups(7), version 2).
fn left_by_groups(groups: &Path, own: &str) -> u64 {
    let named = own.lines().find_map(|line| line.strip_prefix("0::/"));
    let number = |path: &Path, file| -> Option<u64> {
        let text = fs::read_to_string(path.join(file)).ok()?;
        text.trim().parse().ok()
    };
    let own = groups.join(named.unwrap_or_default());
    let above = own.ancestors().take_while(|path| path.starts_with(groups));
    let left = above.filter_map(|path| {
        // `max` is no number, and no limit.
        let limit = number(path, "memory.max")?;
        Some(limit.saturating_sub(number(path, "memory.current").unwrap_or(0)))
    });
    left.min().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;
    use holdfast_testkit::alone::alone;

    #[test]
    fn the_narrowest_of_the_groups_above_says_what_is_left() {
        let root = tempfile::tempdir().expect("temporary directory");
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("below the root")).expect("made");
            fs::write(path, text).expect("written");
        };
        let left = |own| left_by_groups(root.path(), own);
        assert_eq!(left("0::/a/b\n"), u64::MAX, "none of them has a limit");
        put("a/b/memory.max", "max\n");
        put("a/memory.max", "1000\n");
        put("a/memory.current", "400\n");
        put("memory.max", "9000\n");
        assert_eq!(left("1:name=x:/a\n0::/a/b\n"), 600);
        assert_eq!((left("0::/c\n"), left("")), (9000, 9000));
        put("a/memory.current", "1400\n");
        assert_eq!(left("0::/a/b\n"), 0);
    }

    #[test]
    fn what_was_touched_is_free_again() {
        // Other tests of the process take memory meanwhile.
        if !alone("lent::tests::what_was_touched_is_free_again") {
            return;
        }
        let before = Process::Own.rss_bytes().expect("told");
        populate(64 << 20);
        let after = Process::Own.rss_bytes().expect("told");
        assert!(after < before + (32 << 20), "{before} then {after}");
    }

    #[test]
    fn more_than_there_is_and_nothing_at_all_are_asked_for_in_vain() {
        populate(0);
        assert!(sys::touch(usize::MAX).is_err());
        sys::touch(1).expect("a page");
    }
}
