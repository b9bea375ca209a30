//! Changes travel in batches, over a few connections.
//!
//! A connection with a free slot takes what waits, at most [`REQUESTS_MAX`] requests and
//! [`BYTES_MAX`] bytes, and sends it as one transaction. There is no timer: a request that is alone
//! leaves at once.
//!
//! *Exactly once.* Each slot counts its batches. After a lost answer the same bytes are sent with
//! the same number, and the database answers what it answered then, or performs them. So a slot
//! never gives a batch up that was sent. If a caller has stopped waiting for it, nothing later is
//! sent before its answer has come: it would be overtaken.

use super::errors::Trouble;
use super::link::Link;
use super::wire::array;
use holdfast_types::{Errno, Result};
use parking_lot::Mutex;
use siphasher::sip::SipHasher24;
use std::collections::VecDeque;
use std::hash::Hasher as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use tokio::sync::{Notify, oneshot};

const REQUESTS_MAX: usize = 256;
const BYTES_MAX: usize = 1 << 20;
/// So often a batch is repeated that was rolled back because of another transaction.
const REPEATS: u32 = 10;
/// So often a request is sent that another transaction was in the way of.
const ATTEMPTS: u32 = 50;

/// The number of slots.
pub(crate) const SLOTS: usize = 4;

/// A request as `hf1_perform` takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Encoded {
    pub(crate) words: Vec<i64>,
    pub(crate) blobs: Vec<Vec<u8>>,
}

/// The answer in binary form. `None`: an object that it maps is not in use.
type Reply = Result<Option<Vec<u8>>>;

/// A request that waits.
struct Job {
    request: Encoded,
    attempts: u32,
    reply: oneshot::Sender<Reply>,
    /// The caller, while it waits.
    caller: Weak<()>,
}

impl Job {
    fn bytes(&self) -> usize {
        let blobs = self.request.blobs.iter().map(Vec::len);
        8 * self.request.words.len() + blobs.sum::<usize>()
    }

    /// Returns whether a caller took the answer. One that stopped waiting has its own.
    fn answer(self, answer: Reply) -> bool {
        self.reply.send(answer).is_ok()
    }
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// Batches that wait for a job.
    idle: [bool; SLOTS],
    /// The callers of what each slot has sent.
    sent: [Vec<Weak<()>>; SLOTS],
}

impl Queue {
    /// Was a change sent that is not answered, and that its caller has given up? It may still be
    /// performed, so a later change must not overtake it.
    fn is_overdue(&self) -> bool {
        self.sent.iter().flatten().any(|it| it.strong_count() == 0)
    }
}

/// The queue of a session, which its slots empty.
pub(crate) struct Batches {
    queue: Mutex<Queue>,
    /// Wakes the slot of this number.
    wake: [Notify; SLOTS],
    /// A change was committed that others have messages of.
    messages: Notify,
    fenced: AtomicBool,
    /// Changes that were performed when their callers had stopped waiting.
    unclaimed: AtomicU64,
    /// `SELECT hf1_perform(...)`.
    statement: String,
    session: i64,
}

impl Batches {
    /// Makes the queue of a session.
    pub(crate) fn new(session: i64, statement: String) -> Arc<Self> {
        Arc::new(Self {
            queue: Mutex::default(),
            wake: Default::default(),
            messages: Notify::new(),
            fenced: AtomicBool::new(false),
            unclaimed: AtomicU64::new(0),
            statement,
            session,
        })
    }

    /// Has the session ended?
    pub(crate) fn is_fenced(&self) -> bool {
        self.fenced.load(Ordering::SeqCst)
    }

    /// The number of changes that were performed when their callers had stopped waiting.
    pub(crate) fn unclaimed(&self) -> u64 {
        self.unclaimed.load(Ordering::SeqCst)
    }

    /// The session has ended: all that waits fails.
    pub(crate) fn fence(&self) {
        self.fenced.store(true, Ordering::SeqCst);
        let jobs = std::mem::take(&mut self.queue.lock().jobs);
        answer_all(jobs, Err(Errno::ESTALE));
    }

    /// Performs a request, and waits for its answer, in binary form. `None`: an object that it maps
    /// is not in use.
    ///
    /// # Errors
    /// `ESTALE`: the session has ended.
    pub(crate) async fn perform(&self, request: Encoded) -> Reply {
        let (reply, answer) = oneshot::channel();
        let caller = Arc::new(());
        self.push(Job {
            request,
            attempts: 0,
            reply,
            caller: Arc::downgrade(&caller),
        });
        if self.is_fenced() {
            self.fence();
        }
        // Without an answer, the thread of the connections has ended.
        answer.await.unwrap_or(Err(Errno::EIO))
    }

    fn push(&self, job: Job) {
        let mut queue = self.queue.lock();
        queue.jobs.push_back(job);
        self.wake_one(&mut queue);
    }

    /// Wakes the first slot that is idle: its server process is the one that is warm.
    fn wake_one(&self, queue: &mut Queue) {
        if let Some(slot) = queue.idle.iter().position(|idle| *idle) {
            queue.idle[slot] = false;
            self.wake[slot].notify_one();
        }
    }

    /// A slot sends these now, or has an answer to what it sent.
    fn departs(&self, slot: usize, batch: &[Job]) {
        let callers = batch.iter().map(|job| Weak::clone(&job.caller));
        self.queue.lock().sent[slot] = callers.collect();
    }

    /// Takes a batch.
    async fn next_batch(&self, slot: usize) -> Vec<Job> {
        loop {
            let batch = self.drain(slot);
            if !batch.is_empty() {
                return batch;
            }
            self.wake[slot].notified().await;
        }
    }

    fn drain(&self, slot: usize) -> Vec<Job> {
        let mut queue = self.queue.lock();
        let (mut batch, mut bytes) = (Vec::new(), 0);
        if queue.is_overdue() {
            queue.idle[slot] = true;
            return batch;
        }
        while let Some(job) = queue.jobs.front() {
            bytes += job.bytes();
            if batch.len() == REQUESTS_MAX || bytes > BYTES_MAX && !batch.is_empty() {
                self.wake_one(&mut queue);
                break;
            }
            // A request that no caller waits for, and that was not sent, is dropped.
            let job = queue.jobs.pop_front();
            batch.extend(job.filter(|job| !job.reply.is_closed()));
        }
        queue.idle[slot] = batch.is_empty();
        // All were asked for at once, so any order will do: this one changes each directory once.
        batch.sort_by_key(|job| (job.request.words.get(3).copied(), job.request.words[0]));
        batch
    }

    /// A slot: one batch after the other.
    pub(crate) async fn run(self: Arc<Self>, slot: usize, link: Link) {
        let mut seq = 0;
        loop {
            let mut batches = vec![self.next_batch(slot).await];
            while let Some(batch) = batches.pop() {
                if let Some((first, second)) = self.send(slot, &mut seq, &link, batch).await {
                    batches.extend([second, first]);
                }
            }
        }
    }

    /// Sends a batch until it is answered. Returns the halves of a batch that failed as a whole.
    async fn send(
        &self,
        number: usize,
        seq: &mut i64,
        link: &Link,
        mut batch: Vec<Job>,
    ) -> Option<(Vec<Job>, Vec<Job>)> {
        self.departs(number, &batch);
        let mut words = Vec::with_capacity(16 * batch.len());
        let mut blobs = Vec::with_capacity(batch.len());
        for job in &batch {
            words.extend(&job.request.words);
            blobs.extend(job.request.blobs.iter().map(Vec::as_slice));
        }
        let (slot, hash) = (number as i32, hash(&words, &blobs));
        let next = *seq + 1;
        let mut repeats = 0;
        let trouble = loop {
            let sent = link
                .send(
                    &self.statement,
                    &[&self.session, &slot, &next, &hash, &words, &blobs],
                )
                .await;
            match sent {
                Ok(rows) => {
                    *seq = next;
                    self.departs(number, &[]);
                    let answers = rows.first().and_then(|row| row.try_get(0).ok());
                    self.deliver(batch, answers.unwrap_or_default());
                    return None;
                }
                Err(Trouble::Lost) => {}
                Err(Trouble::Repeat) if repeats < REPEATS => repeats += 1,
                Err(trouble) => break trouble,
            }
        };
        self.departs(number, &[]);
        match trouble {
            Trouble::Fenced => {
                self.fence();
                answer_all(batch, Err(Errno::ESTALE));
                None
            }
            _ if batch.len() > 1 => {
                let second = batch.split_off(batch.len() / 2);
                Some((batch, second))
            }
            trouble => {
                let answer = match trouble {
                    Trouble::NotMapped => Ok(None),
                    Trouble::Failed(errno) => Err(errno),
                    _ => Err(Errno::EIO),
                };
                answer_all(batch, answer);
                None
            }
        }
    }

    /// Waits for a change that others have messages of.
    pub(crate) async fn messages(&self) {
        self.messages.notified().await;
    }

    /// Hands the answers to those that wait.
    fn deliver(&self, batch: Vec<Job>, answers: &[u8]) {
        let mut answers = array(answers).unwrap_or_default();
        if answers.last().is_some_and(|last| is(last, MESSAGES)) {
            answers.pop();
            self.messages.notify_one();
        }
        if answers.len() != batch.len() {
            tracing::error!(
                "the database answered {} of {} requests",
                answers.len(),
                batch.len()
            );
            answer_all(batch, Err(Errno::EIO));
            return;
        }
        for (mut job, answer) in batch.into_iter().zip(answers) {
            if !is(answer, REPEAT) {
                if !job.answer(Ok(Some(answer.to_vec()))) {
                    self.unclaimed.fetch_add(1, Ordering::SeqCst);
                }
            } else if job.attempts == ATTEMPTS {
                job.answer(Err(Errno::EIO));
            } else {
                job.attempts += 1;
                self.push(job);
            }
        }
    }
}

fn answer_all(jobs: impl IntoIterator<Item = Job>, answer: Reply) {
    for job in jobs {
        job.answer(answer.clone());
    }
}

/// The code of a request that is to be sent once more.
const REPEAT: i32 = -2;
/// The code of an answer that belongs to no request: others have messages.
const MESSAGES: i32 = -3;

/// Has an answer this code? It is a row of six fields, and the code is the first of them.
fn is(answer: &[u8], code: i32) -> bool {
    const HEAD: [u8; 12] = [0, 0, 0, 6, 0, 0, 0, 23, 0, 0, 0, 4];
    answer
        .strip_prefix(&HEAD)
        .is_some_and(|rest| rest.starts_with(&code.to_be_bytes()))
}

/// Tells one batch from another.
fn hash(words: &[i64], blobs: &[&[u8]]) -> i64 {
    let mut hasher = SipHasher24::new();
    hasher.write_usize(words.len());
    for word in words {
        hasher.write(&word.to_le_bytes());
    }
    for blob in blobs {
        hasher.write_usize(blob.len());
        hasher.write(blob);
    }
    hasher.finish().cast_signed()
}
