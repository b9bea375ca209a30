//! A number that changes by itself, for those who ask for it all the time: a thread of the process keeps it in a word.
//!
//! [`Ticker::told`] is two loads from lines that are written once in a millisecond. What it answers may be as old
//! as the thread is late. So whoever goes by it looks himself now and then, and
//! [corrects](Ticker::correct) the word: then it is as new as the last look of anybody, and the thread only sees to it
//! that it does not stay when nobody looks. A thread that does not run, because the machine is busy
//! or was stopped, does no harm to those who look.
//!
//! The thread is started by those who would [have it](Ticker::start), ends by itself when nobody has
//! [wanted](Ticker::want) the word for 64 rounds, and leaves a 0, which is no answer. So does fork(2) in a child: the
//! word lies in a page that the kernel wipes there.
#![expect(unsafe_code, reason = "a page of the kernel's")]

mod told;

use crate::idle_policy::without_idle_policy;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::fmt;
use std::mem;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread;
use std::time::Duration;
use told::Told;

pub use told::Keeper;

/// Between two looks of the thread.
const PERIOD: Duration = Duration::from_millis(1);

/// It calls a function and sleeps.
const STACK: usize = 64 << 10;

/// What a page is for.
const LEN: usize = size_of::<Told>();

/// Where nobody has asked for a page yet: never kept, so always 0.
static NOWHERE: Told = Told::new();

/// A number, and how to look for it.
pub struct Ticker {
    look: fn() -> u64,
    /// [`NOWHERE`], or in a page that lasts as long as the process.
    told: AtomicPtr<Told>,
}

impl Ticker {
    /// Of what `look` says, which is not 0 if there is something to be told.
    #[must_use]
    pub const fn new(look: fn() -> u64) -> Self {
        Self {
            look,
            told: AtomicPtr::new((&raw const NOWHERE).cast_mut()),
        }
    }

    /// What the function said lately; 0 if nobody keeps the word.
    #[inline(always)]
    #[must_use]
    pub fn told(&self) -> u64 {
        self.at_hand().word()
    }

    #[inline(always)]
    fn at_hand(&self) -> &'static Told {
        // Acquire pairs with the release in `page`: it is mapped.
        let told = NonNull::new(self.told.load(Ordering::Acquire));
        // SAFETY: a static, or a page that is never unmapped; both are only shared.
        told.map_or(&NOWHERE, |told| unsafe { told.as_ref() })
    }

    /// Says what was seen by somebody who looked himself after he was `told`.
    #[inline]
    pub fn correct(&self, told: u64, seen: u64) {
        self.at_hand().correct(told, seen);
    }

    /// Says that the word, if there is one, is to be kept on for a while.
    #[inline]
    pub fn want(&self) {
        self.at_hand().want();
    }

    /// Has a thread keep the word, unless one does. If there can be none, nobody keeps it.
    #[cold]
    pub fn start(&'static self) {
        let Some(mut keeper) = self.keep() else {
            return;
        };
        let look = self.look;
        let thread = thread::Builder::new().name("holdfast-ticker".to_owned());
        // If it fails, the keeper goes with what was to be done. Nobody waits for the end of the thread: it holds
        // nothing, and may end with the process.
        let _ = without_idle_policy(|| {
            thread.stack_size(STACK).spawn(move || {
                while keeper.round(look) {
                    thread::sleep(PERIOD);
                }
            })
        });
    }

    /// Becomes the keeper, unless there is one, or no page for the word.
    #[must_use]
    pub fn keep(&self) -> Option<Keeper<'static>> {
        self.page()?.keep()
    }

    /// Without a lock: another thread may have had it at a fork.
    fn page(&self) -> Option<&'static Told> {
        let nowhere = (&raw const NOWHERE).cast_mut();
        if self.told.load(Ordering::Relaxed) == nowhere {
            let page = Page::map()?;
            let order = (Ordering::Release, Ordering::Relaxed);
            let told = page.told.as_ptr();
            let first = self.told.compare_exchange(nowhere, told, order.0, order.1);
            if first.is_ok() {
                mem::forget(page);
            }
        }
        Some(self.at_hand())
    }
}

impl fmt::Debug for Ticker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticker")
            .field("told", &self.told())
            .finish_non_exhaustive()
    }
}

/// A page that is all zeros, and so again in a child of the process. Unmapped when dropped.
struct Page {
    told: NonNull<Told>,
}

impl Page {
    /// None, where the kernel does not do that (before 4.14), or has no memory.
    fn map() -> Option<Self> {
        const { assert!(align_of::<Told>() <= 4096) };
        if cfg!(miri) {
            return None;
        }
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, wherever the kernel likes, rounded up to a page.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), LEN, protection, MapFlags::PRIVATE) };
        // All zeros is a word that nobody keeps.
        let page = Self {
            told: NonNull::new(start.ok()?.cast())?,
        };
        // SAFETY: the mapping above, which nobody knows yet.
        let wiped = unsafe { madvise(page.told.as_ptr().cast(), LEN, Advice::LinuxWipeOnFork) };
        wiped.is_ok().then_some(page)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: the mapping, which nobody has been told of.
        let _ = unsafe { munmap(self.told.as_ptr().cast(), LEN) };
    }
}

#[cfg(test)]
mod tests;
