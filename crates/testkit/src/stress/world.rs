//! What all threads of a round share, and the judge of their answers.

use super::Base;
use super::below::Below;
use holdfast_core::{Cancel, FileSystem, Options};
use holdfast_types::{Errno, Result};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// No thread may be in one operation for so long.
const PATIENCE: Duration = Duration::from_secs(120);

/// One file system, and the threads that work on it.
pub(super) struct World {
    pub(super) fs: FileSystem,
    pub(super) below: Below,
    /// Distinguishes this round's content from that of others; not 0.
    pub(super) round: u16,
    /// Waits for locks, which other threads may cancel.
    pub(super) waits: Mutex<Vec<Cancel>>,
    stopped: AtomicBool,
    trouble: Mutex<Option<String>>,
    done: AtomicU64,
    refused: AtomicU64,
    posts: Box<[Post]>,
}

/// Where a thread says what it is at.
#[derive(Default)]
struct Post {
    /// Number of operations begun.
    begun: AtomicU64,
    /// The one under way.
    at: Mutex<&'static str>,
}

impl World {
    /// # Errors
    /// If what it is to stand on cannot be made.
    pub(super) fn new(
        base: Base,
        round: u64,
        threads: usize,
        options: Options,
    ) -> std::result::Result<Self, String> {
        let below = Below::new(base)?;
        let fs = FileSystem::new(below.store(), options);
        Ok(Self {
            fs: fs.map_err(|error| format!("over a new store: {error:?}"))?,
            below,
            round: (round % u64::from(u16::MAX)) as u16 + 1,
            waits: Mutex::new(Vec::new()),
            stopped: AtomicBool::new(false),
            trouble: Mutex::new(None),
            done: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            posts: (0..threads).map(|_| Post::default()).collect(),
        })
    }

    /// Ends the work of all threads.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    /// Something is not as it must be. The first one to say so is heard.
    pub(super) fn complain(&self, trouble: String) {
        let mut first = self.trouble.lock();
        first.get_or_insert(trouble);
        self.stop();
    }

    /// Complains unless this holds.
    pub(super) fn demand(&self, holds: bool, trouble: impl FnOnce() -> String) {
        if !holds {
            self.complain(trouble());
        }
    }

    /// What went wrong, if anything has.
    pub(super) fn trouble(&self) -> std::result::Result<(), String> {
        let first = self.trouble.lock();
        let Some(trouble) = &*first else {
            return Ok(());
        };
        let refusal = self.below.refusal();
        let why = refusal.map_or(String::new(), |why| format!(" ({why})"));
        Err(format!("{trouble}{why}"))
    }

    /// Carries out an operation for this thread, and judges its answer.
    pub(super) fn judged(
        &self,
        thread: usize,
        name: &'static str,
        body: impl FnOnce() -> Result<()>,
    ) {
        let post = &self.posts[thread];
        *post.at.lock() = name;
        post.begun.fetch_add(1, Relaxed);
        let answer = body();
        match answer {
            Ok(()) => self.done.fetch_add(1, Relaxed),
            Err(_) => self.refused.fetch_add(1, Relaxed),
        };
        if let Err(error) = answer
            && !self.is_allowed(error)
        {
            self.complain(format!("{name} answered {error:?}"));
        }
    }

    /// Can an operation on a file system that is well answer so?
    fn is_allowed(&self, error: Errno) -> bool {
        match error {
            Errno::EIO => self.fs.is_revoked(),
            // Nothing here is damaged, read-only, or too old for its handle; what is asked by
            // number says so itself.
            Errno::EUCLEAN | Errno::EROFS | Errno::ESTALE => false,
            _ => true,
        }
    }

    /// Operations done and refused.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.done.load(Relaxed), self.refused.load(Relaxed))
    }

    /// Sleeps until then, or until something goes wrong or nothing goes on.
    pub(super) fn watch_over(&self, end: Instant) {
        let begun = || -> Vec<u64> {
            self.posts
                .iter()
                .map(|post| post.begun.load(Relaxed))
                .collect()
        };
        let (mut seen, mut since) = (begun(), vec![Instant::now(); self.posts.len()]);
        while !self.is_stopped() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
            let now = begun();
            for thread in 0..now.len() {
                if now[thread] != seen[thread] {
                    since[thread] = Instant::now();
                } else {
                    self.must_end(since[thread]);
                }
            }
            seen = now;
            self.cancel_waits();
        }
    }

    /// Ends the process if something has gone on since then for too long: threads that hang cannot
    /// be waited for.
    pub(super) fn must_end(&self, since: Instant) {
        if since.elapsed() > PATIENCE {
            let at = |post: &Post| *post.at.lock();
            let at: Vec<_> = self.posts.iter().map(at).collect();
            eprintln!("stress: FAILED: some thread does not come back from {at:?}");
            std::process::exit(3);
        }
    }

    /// Ends every wait for a lock.
    pub(super) fn cancel_waits(&self) {
        let waits = std::mem::take(&mut *self.waits.lock());
        for wait in waits {
            wait.cancel();
        }
    }
}
