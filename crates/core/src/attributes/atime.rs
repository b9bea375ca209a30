//! Access times.

use crate::clock;
use crate::file_system::Core;
use crate::inode::{Inode, Numbered as _};
use crate::options::AtimePolicy;
use crate::store::Change;
use crate::types::Time;

/// `relatime` moves an access time that is a day old.
const DAY: i64 = 24 * 60 * 60 * 1_000_000_000;

#[inline]
fn is_due((atime, mtime, ctime): (Time, Time, Time), policy: AtimePolicy, now: Time) -> bool {
    if atime == now {
        return false;
    }
    match policy {
        AtimePolicy::None => false,
        AtimePolicy::Strict => true,
        AtimePolicy::Relatime => {
            atime <= mtime || atime <= ctime || now.0.saturating_sub(atime.0) >= DAY
        }
    }
}

/// Access, modification and change; of a directory with all that was noted of its names.
fn times(inode: &Inode) -> (Time, Time, Time) {
    if inode.kind().is_dir() {
        let meta = inode.stat();
        (meta.atime, meta.mtime, meta.ctime)
    } else {
        inode.times()
    }
}

impl Core {
    /// An inode's content was read: moves its access time as the options say.
    #[inline]
    pub(crate) fn accessed(&self, inode: &Inode) {
        let policy = self.policy.atime();
        if policy == AtimePolicy::None {
            return;
        }
        let now = clock::now();
        // Asked without the lock first: most reads change nothing, and then write nothing. Beside a
        // writer most come in the tick of another read, and need not look at what he changes.
        if inode.atime() == now {
            return;
        }
        // Each time is the latest for itself: if they do not fit each other, then because a change is
        // under way, which may as well come after this read. Of a directory there is more to ask.
        if inode.kind().is_dir() || is_due(inode.latest_times(), policy, now) {
            self.move_access_time(inode, policy, now);
        }
    }

    #[inline(never)]
    fn move_access_time(&self, inode: &Inode, policy: AtimePolicy, now: Time) {
        if inode.kind().is_dir() && self.policy.nodiratime()
            || self.writable().is_err()
            || !is_due(times(inode), policy, now)
        {
            return;
        }
        let record = {
            let mut meta = inode.write();
            if !is_due(times(inode), policy, now) {
                return;
            }
            meta.atime = now;
            inode.record(&meta)
        };
        if self.pinned {
            return;
        }
        // A reader waits for no writer: its time goes with the next change, or with `sync`. Reading
        // goes on when its time cannot be kept: `apply` has stopped the writers.
        let change = [Change::Attributes { inode: record }];
        if self.policy.lazytime() || self.apply_unless_busy(inode, &change) == Ok(false) {
            inode.mark_lazy_time();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(atime: i64, mtime: i64) -> (Time, Time, Time) {
        (Time(atime), Time(mtime), Time(mtime))
    }

    #[test]
    fn relatime_moves_times_that_are_not_later_than_the_change_or_a_day_old() {
        let due = |atime, mtime, now| is_due(at(atime, mtime), AtimePolicy::Relatime, Time(now));
        assert!(due(5, 5, 6));
        assert!(!due(6, 5, 7));
        assert!(due(6, 5, 6 + DAY));
        assert!(!due(5, 5, 5), "nothing to move");
        assert!(is_due(at(6, 5), AtimePolicy::Strict, Time(7)));
        assert!(!is_due(at(1, 5), AtimePolicy::None, Time(7)));
    }
}
