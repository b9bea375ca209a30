//! Notifications of inodes that the kernel does not know yet.
//!
//! # Invariants
//! `notifications` has at most one entry per inode. An entry is removed when the kernel accepts the
//! notification, when the kernel has no reference of the inode, or after [`TRIES_MAX`] tries.

use super::notification::Notification;
use holdfast_types::Ino;
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// Delay before a notification is sent again: the first one and the largest. It doubles each time.
const PAUSE: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(64);
/// Most repetitions: about a minute, which is longer than the kernel caches most replies.
const TRIES_MAX: u32 = 1000;

#[derive(Default)]
pub(super) struct Resend {
    notifications: HashMap<Ino, Waiting>,
}

struct Waiting {
    /// Is cached data dropped as well?
    data: bool,
    tries: u32,
    due: Instant,
    /// Was it sent after the last [`put`](Resend::put)?
    sent: bool,
}

impl Resend {
    /// The kernel did not know the inode of a notification. `keeps`: may it hold a reference all
    /// the same?
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

    /// Takes what is to be sent now. What is not [put](Self::put) back was accepted.
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

    /// Removes entries that were sent and not put back.
    pub(super) fn tidy(&mut self) {
        self.notifications.retain(|_, waiting| !waiting.sent);
    }

    /// Time until an entry is due; `None`: there is none.
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
        let (mut resend, mut now) = (Resend::default(), Instant::now());
        assert_eq!(resend.pause(now), None);
        resend.put(&notification(7, -1), now, |_| true);
        for _ in 0..20 {
            now += resend.pause(now).expect("it waits");
            assert!(resend.due(now) == [notification(7, -1)]);
            resend.put(&notification(7, -1), now, |_| true);
            resend.tidy();
        }
        assert!(resend.pause(now) <= Some(PAUSE_MAX));
        now += PAUSE_MAX;
        assert!(resend.due(now) == [notification(7, -1)]);
        resend.tidy();
        assert_eq!(resend.pause(now), None, "it was taken");
    }

    #[test]
    fn notices_of_one_inode_become_one_and_those_of_inodes_that_are_given_back_go() {
        let (mut resend, now) = (Resend::default(), Instant::now());
        resend.put(&notification(7, 0), now, |_| true);
        resend.put(&notification(7, -1), now, |_| true);
        resend.put(&notification(8, 0), now, |_| false);
        assert!(resend.due(now + PAUSE_MAX) == [notification(7, 0)]);
        resend.put(&notification(7, 0), now, |_| false);
        resend.tidy();
        assert_eq!(resend.pause(now), None);
    }

    #[test]
    fn what_is_never_taken_is_not_tried_for_ever() {
        let (mut resend, mut now) = (Resend::default(), Instant::now());
        resend.put(&notification(7, 0), now, |_| true);
        let mut sent = 0;
        while let Some(pause) = resend.pause(now) {
            now += pause;
            sent += resend.due(now).len();
            resend.put(&notification(7, 0), now, |_| true);
            resend.tidy();
        }
        assert_eq!(sent, 1000);
    }
}
