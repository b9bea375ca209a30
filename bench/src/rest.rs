//! Waiting until the kernel has done what a target left it to do.
//!
//! Some file systems defer work beyond the call that a phase measures. XFS frees the extents of a
//! removed file in a thread of the kernel (a second for 400,000 of them). Btrfs frees them at its
//! next commit. The next target would pay for that work.

use crate::targets::Target;
use rustix::fs::syncfs;
use std::fs::{self, File};
use std::thread;
use std::time::{Duration, Instant};

/// How long the kernel's threads must have done next to nothing.
const STILL: Duration = Duration::from_millis(100);
/// Ticks of the accounting clock, a hundredth of a second each, that are next to nothing in that
/// time.
const FEW: u64 = 1;
/// After this time the run goes on whatever they do.
const PATIENCE: Duration = Duration::from_secs(20);
/// `PF_KTHREAD` of the kernel's `sched.h`, in the flags that `stat` tells.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Lets the host finish what a run on this target has left: nothing, unless it is a directory of
/// the host. Where the kernel's threads are not to be seen (in a container), there is nothing to
/// wait for.
pub(crate) fn after(target: &Target) {
    let Target::Directory(path) = target else {
        return;
    };
    // What is put off until a commit begins with it. A failure has shown in the phases, or does so
    // next.
    let _ = File::open(path).map(|directory| syncfs(&directory));
    if !until_still(busy, PATIENCE) {
        eprintln!(
            "after {} s the kernel's threads are still busy with what {target} left to them",
            PATIENCE.as_secs()
        );
    }
}

/// Waits until this count hardly grows; false if it still did at the end of all patience.
fn until_still(mut count: impl FnMut() -> u64, patience: Duration) -> bool {
    let begin = Instant::now();
    let mut before = count();
    while begin.elapsed() < patience {
        thread::sleep(STILL);
        let now = count();
        // A thread that ended took its time with it.
        if now.saturating_sub(before) <= FEW {
            return true;
        }
        before = now;
    }
    false
}

/// Ticks of processor time that all threads of the kernel have used.
fn busy() -> u64 {
    let Ok(processes) = fs::read_dir("/proc") else {
        return 0;
    };
    let ticks = processes.flatten().filter_map(|process| {
        process.file_name().to_str()?.parse::<u32>().ok()?;
        kernel_ticks(&fs::read_to_string(process.path().join("stat")).ok()?)
    });
    ticks.sum()
}

/// The processor time in one `stat` of /proc, in ticks, if it is that of a kernel's thread.
fn kernel_ticks(stat: &str) -> Option<u64> {
    // The name may hold anything, blanks and parentheses included.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    // State, parent, group, session, terminal and its group come first; six counts are between.
    let flags: u64 = fields.nth(6)?.parse().ok()?;
    let user: u64 = fields.nth(4)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    (flags & KERNEL_THREAD != 0).then_some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_threads_of_the_kernel_are_counted() {
        let worker =
            "10 (kworker/0:0+xfs) a) I 2 0 0 0 -1 69238880 0 0 0 0 3 125 0 0 20 0 1 0 7 0 0";
        assert_eq!(kernel_ticks(worker), Some(128));
        let own = fs::read_to_string("/proc/self/stat").expect("told");
        assert_eq!(kernel_ticks(&own), None);
        assert_eq!(kernel_ticks("1 (x) R 1"), None);
    }

    #[test]
    fn one_waits_while_work_is_done_and_not_for_ever() {
        let mut work = [0, 20, 40, 41, 80].into_iter();
        assert!(until_still(|| work.next().expect("asked"), PATIENCE));
        assert_eq!(work.next(), Some(80), "still at the fourth look");
        let mut more = 0;
        let grows = || {
            more += 10;
            more
        };
        assert!(!until_still(grows, STILL * 2));
    }

    #[test]
    fn a_target_in_this_process_leaves_nothing_to_the_kernel() {
        let begin = Instant::now();
        after(&Target::Memory);
        assert!(begin.elapsed() < STILL);
    }
}
