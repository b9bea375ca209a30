//! The scheduling policy of threads that commit replies: it keeps the caller on its processor.
//!
//! A reply wakes the caller while the committing thread still runs on the caller's processor. The
//! scheduler then moves the caller to another processor, mostly a halted one, which costs an
//! inter-processor interrupt and a wake-up from halt for each request. But it first tests whether a
//! processor is idle *or runs only `SCHED_IDLE` threads*. So a thread takes `SCHED_IDLE` when it
//! commits a reply, and returns to `SCHED_OTHER` only before it sleeps. The caller stays and runs
//! at once, and its next request finds the thread runnable. During a sequence of requests neither
//! call is made.
//!
//! # Invariants
//! A `SCHED_IDLE` thread gets little time beside others. So while a thread has the policy, its
//! slot's `state == IDLE` and the watch is awake. If the thread neither replies nor runs between
//! two looks of the watch, the watch sets `SCHED_OTHER` and `state = REVOKED` for a while. A thread
//! that waits or starves is delayed no longer than that. A thread that runs keeps the policy: on a
//! virtual machine one page fault may take milliseconds. `state` becomes `IDLE` before the thread
//! takes the policy, and changes only after the thread has left it.
//!
//! Leaving `SCHED_IDLE` takes `CAP_SYS_NICE` (or a limit of niceness): [`may_return`] tries it on a
//! thread of its own. Threads inherit the policy from their creator;
//! `holdfast_sync::without_idle_policy` resets it where a request starts one.

use super::{
    sys::{Policy, cpu_time, has_usual_policy, set_policy},
    wakeup::Wakeup,
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

/// How long a thread does without the policy after it was delayed.
const RESPITE: Duration = Duration::from_millis(400);

/// Processor time, in nanoseconds, of a thread that runs between two looks of the watch: half of
/// the interval.
const RUNS: u64 = 500_000;

/// Also the state of a new slot.
const NORMAL: u8 = 0;
const IDLE: u8 = 1;
const REVOKED: u8 = 2;

/// State of one thread for the watch. Aligned, because its thread writes it with every reply.
#[derive(Default)]
#[repr(align(128))]
struct PolicySlot {
    thread: i32,
    state: AtomicU8,
    /// Committed replies.
    replies: AtomicU64,
    /// `replies` at the last look; written only by the watch.
    seen: AtomicU64,
    /// The thread's processor time at the last look, in nanoseconds; written only by the watch.
    ran: AtomicU64,
}

impl PolicySlot {
    /// Called by the watch: has the thread replied, or run, since the last call?
    fn has_progressed(&self) -> bool {
        let (ran, replies) = (cpu_time(self.thread), self.replies.load(Ordering::Relaxed));
        let runs = ran >= self.ran.swap(ran, Ordering::Relaxed) + RUNS;
        self.seen.swap(replies, Ordering::Relaxed) != replies || runs
    }
}

/// All threads that may take the policy.
#[derive(Default)]
pub(crate) struct PolicySlots {
    /// Guards the list.
    all: Mutex<Vec<Arc<PolicySlot>>>,
    /// Why the policy is not used.
    refused: OnceLock<String>,
    /// Did leaving the policy fail once?
    failed: AtomicBool,
}

impl PolicySlots {
    /// Turns the policy off.
    pub(super) fn refuse(&self, reason: String) {
        let _ = self.refused.set(reason);
    }

    /// Why the policy is not used, if it is not.
    pub(super) fn refused(&self) -> Option<&str> {
        self.refused.get().map(String::as_str)
    }

    /// Resets the policy of threads without progress. Does any thread have `SCHED_IDLE`?
    pub(super) fn look(&self) -> bool {
        let mut any = false;
        for policy_slot in &*self.all.lock() {
            if policy_slot.state.load(Ordering::SeqCst) != IDLE {
                continue;
            }
            any = true;
            if !policy_slot.has_progressed()
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
            && !self.failed.swap(true, Ordering::Relaxed)
        {
            tracing::error!(%error, "SCHED_IDLE cannot be left any more: this mount may be slow beside other work");
        }
    }

    fn is_usable(&self) -> bool {
        self.refused.get().is_none() && !self.failed.load(Ordering::Relaxed)
    }
}

/// Can a thread take `SCHED_IDLE` and leave it? If not, why.
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
    policy_slots: Arc<PolicySlots>,
    /// Until when it does without, after it was delayed.
    until: Option<Instant>,
}

impl ReplyPolicy {
    /// A slot for the calling thread, if the policy is usable.
    pub(crate) fn of_this_thread(policy_slots: &Arc<PolicySlots>) -> Option<Self> {
        if !policy_slots.is_usable() {
            return None;
        }
        let policy_slot = Arc::new(PolicySlot {
            thread: rustix::thread::gettid().as_raw_nonzero().get(),
            ..PolicySlot::default()
        });
        policy_slots.all.lock().push(policy_slot.clone());
        Some(Self {
            policy_slot,
            policy_slots: policy_slots.clone(),
            until: None,
        })
    }

    /// A reply is about to be committed.
    pub(super) fn before_reply(&mut self, wakeup: &Wakeup) {
        self.policy_slot.replies.fetch_add(1, Ordering::Relaxed);
        match self.policy_slot.state.load(Ordering::Relaxed) {
            IDLE => return,
            // Beside endless other work, frequent tries would cost more than they gain.
            REVOKED if Instant::now() < *self.until.get_or_insert_with(respite) => return,
            _ => self.until = None,
        }
        if !self.policy_slots.is_usable() {
            return;
        }
        // SeqCst: pairs with the last look of a watch that is about to sleep.
        self.policy_slot.state.store(IDLE, Ordering::SeqCst);
        if set_policy(0, Policy::Idle).is_ok() {
            wakeup.wake();
        } else {
            self.policy_slot.state.store(NORMAL, Ordering::SeqCst);
        }
    }

    /// The thread is about to sleep, or to serve a long request.
    pub(crate) fn before_wait(&self) {
        if self.policy_slot.state.load(Ordering::Relaxed) == IDLE {
            self.policy_slots.go_back(0);
            // If the watch has set `REVOKED` meanwhile, that stays.
            let _ = self.policy_slot.state.compare_exchange(
                IDLE,
                NORMAL,
                Ordering::SeqCst,
                Ordering::SeqCst,
            );
        }
    }
}

/// The end of a period without the policy that begins now.
fn respite() -> Instant {
    Instant::now() + RESPITE
}

impl Drop for ReplyPolicy {
    fn drop(&mut self) {
        // The id of an ended thread may be reused.
        let mut all = self.policy_slots.all.lock();
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

    /// A policy of the calling thread, with slots that the test looks at; `None` where leaving
    /// `SCHED_IDLE` is not permitted.
    fn policy() -> Option<(ReplyPolicy, Arc<PolicySlots>)> {
        if let Err(reason) = may_return() {
            assert!(std::env::var_os("CI").is_none(), "{reason}");
            eprintln!("skipped: {reason}");
            return None;
        }
        let policy_slots = Arc::new(PolicySlots::default());
        let policy = ReplyPolicy::of_this_thread(&policy_slots).unwrap();
        Some((policy, policy_slots))
    }

    #[test]
    fn the_idle_policy_lasts_from_a_reply_to_the_next_wait() {
        let Some((mut policy, policy_slots)) = policy() else {
            return;
        };
        assert!(!policy_slots.look());
        for _ in 0..3 {
            policy.before_reply(&Wakeup::default());
            assert_eq!(policy_of_this_thread(), Policy::Idle);
            assert!(policy_slots.look());
        }
        policy.before_wait();
        assert_eq!(policy_of_this_thread(), Policy::Other);
        assert!(!policy_slots.look());
    }

    #[test]
    fn a_thread_without_progress_between_two_looks_is_given_a_respite() {
        let Some((mut policy, policy_slots)) = policy() else {
            return;
        };
        policy.before_reply(&Wakeup::default());
        assert!(policy_slots.look());
        assert_eq!(policy_of_this_thread(), Policy::Idle, "it has just begun");
        assert!(policy_slots.look());
        assert_eq!(policy_of_this_thread(), Policy::Other);
        policy.before_reply(&Wakeup::default());
        assert_eq!(policy_of_this_thread(), Policy::Other, "for a while");
        policy.until = policy.until.map(|until| until - RESPITE);
        policy.before_reply(&Wakeup::default());
        assert_eq!(policy_of_this_thread(), Policy::Idle);
    }

    #[test]
    fn a_thread_that_runs_keeps_the_idle_policy() {
        let Some((mut policy, policy_slots)) = policy() else {
            return;
        };
        policy.before_reply(&Wakeup::default());
        assert!(policy_slots.look());
        let begun = cpu_time(policy.policy_slot.thread);
        while cpu_time(policy.policy_slot.thread) < begun + RUNS {}
        assert!(policy_slots.look());
        assert_eq!(policy_of_this_thread(), Policy::Idle);
    }

    #[test]
    fn a_thread_that_goes_leaves_no_seat_and_no_policy_behind() {
        let Some((mut policy, policy_slots)) = policy() else {
            return;
        };
        policy.before_reply(&Wakeup::default());
        drop(policy);
        assert!(policy_slots.all.lock().is_empty());
        assert_eq!(policy_of_this_thread(), Policy::Other);
    }

    #[test]
    fn where_it_is_refused_nobody_takes_it() {
        let policy_slots = Arc::new(PolicySlots::default());
        policy_slots.refuse("as the test wants".into());
        assert!(ReplyPolicy::of_this_thread(&policy_slots).is_none());
        assert_eq!(policy_slots.refused(), Some("as the test wants"));
    }
}
