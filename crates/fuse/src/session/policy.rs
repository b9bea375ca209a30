//! The policy under which a thread commits replies: a reply that does not send its caller away.
//!
//! A reply wakes the caller while the thread that commits it occupies the caller's processor. The
//! scheduler then moves the caller to another processor, which was halted mostly: an interrupt across
//! processors and the end of a halt, with each request. But its first test of a place is whether the
//! processor is idle *or runs nothing but work of the idle policy*. So a thread takes `SCHED_IDLE` while it
//! commits a reply, and goes back to `SCHED_OTHER` only before it sleeps: the caller stays, runs at
//! once, and its next request finds the thread runnable. In a conversation neither call is made.
//!
//! # Invariants
//! A thread of the idle policy gets hardly any time beside others. So while a thread has it, its seat
//! says `IDLE`, the watch is awake, and a seat that made no progress from one look to the next gets
//! `SCHED_OTHER` back for a while (`REVOKED`): waiting or starved, it holds up nobody longer than that.
//! A seat says `IDLE` before its thread takes the policy, and until after it gave it back.
//!
//! Going back takes `CAP_SYS_NICE` (or a limit of niceness): [`may_return`] tries it on a thread of its
//! own. Threads inherit the policy from those that start them; `holdfast_sync::without_idle_policy` sees to it
//! where a request starts one.

use super::{
    sys::{Policy, has_usual_policy, set_policy},
    watch::Watch,
};
use parking_lot::Mutex;
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// For how long a thread that was held up does without; twice as long each time it happens again soon.
const RESPITE: Duration = Duration::from_millis(100);
const RESPITE_MAX: Duration = Duration::from_millis(1600);

const NORMAL: u8 = 0;
const IDLE: u8 = 1;
const REVOKED: u8 = 2;

/// What the watch knows of one thread. Aligned, because its thread writes it with every reply.
#[repr(align(128))]
struct PolicySlot {
    thread: i32,
    state: AtomicU8,
    /// Replies committed.
    replies: AtomicU64,
    /// `replies` at the last look; written by the watch only.
    seen: AtomicU64,
}

/// All threads that may take the policy.
#[derive(Default)]
pub(crate) struct PolicySlots {
    /// Guards the list.
    all: Mutex<Vec<Arc<PolicySlot>>>,
    /// Why replies are committed without it.
    refused: OnceLock<String>,
    /// Did going back fail once?
    stuck: AtomicBool,
}

impl PolicySlots {
    /// Replies are committed under the policy that threads have.
    pub(super) fn refuse(&self, reason: String) {
        let _ = self.refused.set(reason);
    }

    /// Why replies are committed without it, if they are.
    pub(super) fn refused(&self) -> Option<&str> {
        self.refused.get().map(String::as_str)
    }

    /// Gives a thread that was held up its policy back. Tells whether any has the idle policy.
    pub(super) fn look(&self) -> bool {
        let mut any = false;
        for policy_slot in &*self.all.lock() {
            if policy_slot.state.load(Ordering::SeqCst) != IDLE {
                continue;
            }
            any = true;
            let replies = policy_slot.replies.load(Ordering::Relaxed);
            if policy_slot.seen.swap(replies, Ordering::Relaxed) == replies
                && policy_slot
                    .state
                    .compare_exchange(IDLE, REVOKED, Ordering::SeqCst, Ordering::SeqCst)
                    .is_ok()
            {
                self.go_back(policy_slot.thread);
            }
        }
        any
    }

    fn go_back(&self, thread: i32) {
        if let Err(error) = set_policy(thread, Policy::Other)
            && !self.stuck.swap(true, Ordering::Relaxed)
        {
            tracing::error!(%error, "SCHED_IDLE cannot be left any more: this mount may be slow beside other work");
        }
    }

    fn is_usable(&self) -> bool {
        self.refused.get().is_none() && !self.stuck.load(Ordering::Relaxed)
    }
}

/// Can a thread take the idle policy and give it back? If not: why.
pub(super) fn may_return() -> Result<(), String> {
    if !has_usual_policy() {
        return Err("this process has a policy of its own".into());
    }
    let tried = thread::Builder::new()
        .name("holdfast-policy".into())
        .spawn(|| {
            set_policy(0, Policy::Idle)?;
            set_policy(0, Policy::Other)
        });
    match tried.map(thread::JoinHandle::join) {
        Ok(Ok(Ok(()))) => Ok(()),
        Ok(Ok(Err(error))) => Err(format!("leaving SCHED_IDLE takes CAP_SYS_NICE: {error}")),
        Ok(Err(_)) => Err("the trial of SCHED_IDLE panicked".into()),
        Err(error) => Err(format!("SCHED_IDLE could not be tried: {error}")),
    }
}

/// The calling thread's policy.
pub(crate) struct ReplyPolicy {
    policy_slot: Arc<PolicySlot>,
    watch: Arc<Watch>,
    /// Until when it does without, once it was held up.
    until: Option<Instant>,
    /// How long that is the next time.
    respite: Duration,
    /// When it took the policy the last time after it had been held up.
    taken: Option<Instant>,
}

impl ReplyPolicy {
    /// A seat for the calling thread, if the policy is to be had.
    pub(crate) fn of_this_thread(watch: &Arc<Watch>) -> Option<Self> {
        if !watch.policy_slots.is_usable() {
            return None;
        }
        let policy_slot = Arc::new(PolicySlot {
            thread: rustix::thread::gettid().as_raw_nonzero().get(),
            state: AtomicU8::new(NORMAL),
            replies: AtomicU64::new(0),
            seen: AtomicU64::new(0),
        });
        watch.policy_slots.all.lock().push(policy_slot.clone());
        Some(Self {
            policy_slot,
            watch: watch.clone(),
            until: None,
            respite: RESPITE,
            taken: None,
        })
    }

    /// A reply is about to be committed.
    pub(crate) fn before_reply(&mut self) {
        let replies = self
            .policy_slot
            .replies
            .load(Ordering::Relaxed)
            .wrapping_add(1);
        self.policy_slot.replies.store(replies, Ordering::Relaxed);
        match self.policy_slot.state.load(Ordering::Relaxed) {
            IDLE => return,
            REVOKED if !self.respite_is_over() => return,
            _ => {}
        }
        if !self.watch.policy_slots.is_usable() {
            return;
        }
        // SeqCst: pairs with the last look of a watch that is about to sleep.
        self.policy_slot.state.store(IDLE, Ordering::SeqCst);
        if set_policy(0, Policy::Idle).is_ok() {
            self.watch.wake();
        } else {
            self.policy_slot.state.store(NORMAL, Ordering::SeqCst);
        }
    }

    /// Beside work of others that does not end, trying again and again would cost more than it
    /// gains: so the respite grows, unless all went well for as long as it lasted.
    fn respite_is_over(&mut self) -> bool {
        let now = Instant::now();
        let Some(until) = self.until else {
            let well = self
                .taken
                .is_none_or(|taken| now - taken > 2 * self.respite);
            self.respite = if well {
                RESPITE
            } else {
                (2 * self.respite).min(RESPITE_MAX)
            };
            self.until = Some(now + self.respite);
            return false;
        };
        if now < until {
            return false;
        }
        self.until = None;
        self.taken = Some(now);
        true
    }

    /// The thread is about to sleep, or to do what lasts.
    pub(crate) fn before_wait(&self) {
        if self.policy_slot.state.load(Ordering::Relaxed) == IDLE {
            self.watch.policy_slots.go_back(0);
            // If the watch was faster, it stays so.
            let _ = self.policy_slot.state.compare_exchange(
                IDLE,
                NORMAL,
                Ordering::SeqCst,
                Ordering::SeqCst,
            );
        }
    }
}

impl Drop for ReplyPolicy {
    fn drop(&mut self) {
        // The number of a thread that is gone may soon be another's.
        let mut all = self.watch.policy_slots.all.lock();
        all.retain(|policy_slot| !Arc::ptr_eq(policy_slot, &self.policy_slot));
        drop(all);
        self.before_wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy_of_this_thread() -> Policy {
        if has_usual_policy() {
            Policy::Other
        } else {
            Policy::Idle
        }
    }

    /// A policy of the calling thread, and its watch, which looks when the test does; none where
    /// going back is not allowed.
    fn policy() -> Option<(ReplyPolicy, Arc<Watch>)> {
        if let Err(reason) = may_return() {
            assert!(std::env::var_os("CI").is_none(), "{reason}");
            eprintln!("skipped: {reason}");
            return None;
        }
        let watch = Arc::new(Watch::default());
        let policy = ReplyPolicy::of_this_thread(&watch).unwrap();
        Some((policy, watch))
    }

    #[test]
    fn the_idle_policy_lasts_from_a_reply_to_the_next_wait() {
        let Some((mut policy, watch)) = policy() else {
            return;
        };
        assert!(!watch.policy_slots.look());
        for _ in 0..3 {
            policy.before_reply();
            assert_eq!(policy_of_this_thread(), Policy::Idle);
            assert!(watch.policy_slots.look());
        }
        policy.before_wait();
        assert_eq!(policy_of_this_thread(), Policy::Other);
        assert!(!watch.policy_slots.look());
    }

    #[test]
    fn a_thread_without_progress_between_two_looks_is_given_a_respite() {
        let Some((mut policy, watch)) = policy() else {
            return;
        };
        policy.before_reply();
        assert!(watch.policy_slots.look());
        assert_eq!(policy_of_this_thread(), Policy::Idle, "it has just begun");
        assert!(watch.policy_slots.look());
        assert_eq!(policy_of_this_thread(), Policy::Other);
        policy.before_reply();
        assert_eq!(policy_of_this_thread(), Policy::Other, "for a while");
        policy.until = policy.until.map(|until| until - RESPITE);
        policy.before_reply();
        assert_eq!(policy_of_this_thread(), Policy::Idle);
        // Held up again at once: the respite grows.
        watch.policy_slots.look();
        watch.policy_slots.look();
        policy.before_reply();
        assert_eq!(policy.respite, 2 * RESPITE);
    }

    #[test]
    fn a_thread_that_goes_leaves_no_seat_and_no_policy_behind() {
        let Some((mut policy, watch)) = policy() else {
            return;
        };
        policy.before_reply();
        drop(policy);
        assert!(watch.policy_slots.all.lock().is_empty());
        assert_eq!(policy_of_this_thread(), Policy::Other);
    }

    #[test]
    fn where_it_is_refused_nobody_takes_it() {
        let watch = Arc::new(Watch::default());
        watch.policy_slots.refuse("as the test wants".into());
        assert!(ReplyPolicy::of_this_thread(&watch).is_none());
        assert_eq!(watch.policy_slots.refused(), Some("as the test wants"));
    }
}
