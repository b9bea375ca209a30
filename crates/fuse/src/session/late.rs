//! Notices of inodes that the kernel does not know yet.
//!
//! # Invariants
//! `notifications` has one entry for each inode. An entry leaves when the kernel takes the notice, when the
//! kernel holds no reference of the inode any more, or after [`TRIES_MAX`] tries.

use super::notifier::Notification;
use holdfast_types::Ino;
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// After what time a notice is sent again at first, and at most: twice as long each time.
const PAUSE: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(64);
/// How often a notice is sent again: for about a minute, which is longer than the kernel believes most replies.
const TRIES_MAX: u32 = 1000;

#[derive(Default)]
pub(super) struct Late {
    notifications: HashMap<Ino, Waiting>,
}

struct Waiting {
    /// Does cached data go as well?
    data: bool,
    tries: u32,
    due: Instant,
    /// Was it sent since it was put here last?
    sent: bool,
}

impl Late {
    /// A notice was not taken, because its inode is unknown. `keeps`: may the kernel hold a reference all the same?
    pub(super) fn put(
        &mut self,
        notification: &Notification,
        now: Instant,
        keeps: impl Fn(Ino) -> bool,
    ) {
        let &Notification::Inode { ino, offset, .. } = notification else {
            return;
        };
        if !keeps(ino) {
            return;
        }
        let waiting = self.notifications.entry(ino).or_insert(Waiting {
            data: false,
            tries: 0,
            due: now,
            sent: false,
        });
        waiting.data |= offset >= 0;
        if waiting.tries < TRIES_MAX {
            let pause = PAUSE.saturating_mul(1 << waiting.tries.min(10));
            waiting.due = now + pause.min(PAUSE_MAX);
            waiting.tries += 1;
            waiting.sent = false;
        }
    }

    /// Those that are to be sent again now. The ones that are not [put](Self::put) back were taken.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Notification> {
        let due = self
            .notifications
            .iter_mut()
            .filter(|(_, it)| it.due <= now);
        let notifications = due.map(|(ino, waiting)| {
            waiting.sent = true;
            Notification::Inode {
                ino: *ino,
                offset: if waiting.data { 0 } else { -1 },
                len: 0,
            }
        });
        notifications.collect()
    }

    /// Lets those go that were sent and not put back.
    pub(super) fn tidy(&mut self) {
        self.notifications.retain(|_, waiting| !waiting.sent);
    }

    /// How long it is until one is due; `None`: there is none.
    pub(super) fn pause(&self, now: Instant) -> Option<Duration> {
        let due = self
            .notifications
            .values()
            .map(|waiting| waiting.due)
            .min()?;
        Some(due.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notification(ino: u64, offset: i64) -> Notification {
        Notification::Inode {
            ino: Ino(ino),
            offset,
            len: 0,
        }
    }

    #[test]
    fn a_notice_is_sent_again_until_it_is_taken() {
        let (mut late, mut now) = (Late::default(), Instant::now());
        assert_eq!(late.pause(now), None);
        late.put(&notification(7, -1), now, |_| true);
        for _ in 0..20 {
            now += late.pause(now).expect("it waits");
            assert!(late.due(now) == [notification(7, -1)]);
            late.put(&notification(7, -1), now, |_| true);
            late.tidy();
        }
        assert!(late.pause(now) <= Some(PAUSE_MAX));
        now += PAUSE_MAX;
        assert!(late.due(now) == [notification(7, -1)]);
        late.tidy();
        assert_eq!(late.pause(now), None, "it was taken");
    }

    #[test]
    fn notices_of_one_inode_become_one_and_those_of_inodes_that_are_given_back_go() {
        let (mut late, now) = (Late::default(), Instant::now());
        late.put(&notification(7, 0), now, |_| true);
        late.put(&notification(7, -1), now, |_| true);
        late.put(&notification(8, 0), now, |_| false);
        assert!(late.due(now + PAUSE_MAX) == [notification(7, 0)]);
        late.put(&notification(7, 0), now, |_| false);
        late.tidy();
        assert_eq!(late.pause(now), None);
    }

    #[test]
    fn what_is_never_taken_is_not_tried_for_ever() {
        let (mut late, mut now) = (Late::default(), Instant::now());
        late.put(&notification(7, 0), now, |_| true);
        let mut sent = 0;
        while let Some(pause) = late.pause(now) {
            now += pause;
            sent += late.due(now).len();
            late.put(&notification(7, 0), now, |_| true);
            late.tidy();
        }
        assert_eq!(sent, 1000);
    }
}
