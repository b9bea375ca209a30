//! The two threads of a pair, and how they take turns.
//!
//! Orders and tapes change hands in slots that were made beforehand: nothing is allocated by one
//! thread and freed by the other, which would mix their allocators' memory.
//!
//! *Locking.* A post's lock guards its slots, and is never held while an order is carried out.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use std::sync::Arc;

use crate::memory;
use crate::operation::{Action, Operation};
use crate::stage::{Home, Stage};
use crate::step::{Recorder, Tape};

/// What a thread is told to do.
#[derive(Clone, Copy)]
pub(crate) enum Order {
    /// Make the side's own objects, for so many rounds.
    SetUp(usize),
    /// Let their times come to rest.
    Settle(usize),
    /// These rounds without a record: the first, and the one behind the last.
    WarmUp(usize, usize),
    /// Drop what the last operation used, and prepare that of a round.
    Prepare(usize),
    /// Carry it out, recorded.
    Run,
    /// Drop what is left, and end.
    Stop,
}

#[derive(Default)]
struct Slots {
    order: Option<Order>,
    answer: Option<Result<(), String>>,
    tape: Option<Tape>,
}

#[derive(Default)]
struct Post {
    slots: Mutex<Slots>,
    changed: Condvar,
}

impl Post {
    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `take` finds something.
    fn wait<T>(&self, mut take: impl FnMut(&mut Slots) -> Option<T>) -> T {
        let mut slots = self.slots();
        loop {
            if let Some(taken) = take(&mut slots) {
                return taken;
            }
            slots = self
                .changed
                .wait(slots)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A thread that carries out one side's operations.
pub(crate) struct Worker {
    post: Arc<Post>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts the thread of a side, on a processor of its own if there are two.
    pub(crate) fn start(stage: Arc<Stage>, side: usize, operation: &'static Operation) -> Self {
        let post = Arc::new(Post::default());
        let theirs = Arc::clone(&post);
        let thread = thread::spawn(move || {
            pin(side);
            serve(&theirs, &stage, side, operation);
        });
        Self {
            post,
            thread: Some(thread),
        }
    }

    /// Has an order carried out, and waits for it.
    ///
    /// # Errors
    /// What went wrong there, in words.
    pub(crate) fn order(&self, order: Order) -> Result<(), String> {
        self.post.slots().order = Some(order);
        self.post.changed.notify_all();
        self.post.wait(|slots| slots.answer.take())
    }

    /// Lends the thread a tape for its next run.
    pub(crate) fn lend(&self, tape: Tape) {
        self.post.slots().tape = Some(tape);
    }

    /// Takes the tape back.
    pub(crate) fn take_back(&self) -> Option<Tape> {
        self.post.slots().tape.take()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take()
            && self.order(Order::Stop).is_ok()
        {
            // The thread has answered, so it ends. A panic after that is not reported.
            let _ = thread.join();
        }
    }
}

fn serve(post: &Post, stage: &Stage, side: usize, operation: &Operation) {
    let mut player = Player {
        recorder: None,
        home: None,
        action: None,
    };
    loop {
        let order = post.wait(|slots| slots.order.take());
        let mut tape = match order {
            Order::Run => post.slots().tape.take(),
            _ => None,
        };
        let answer = player.perform(order, stage, side, operation, tape.as_mut());
        {
            let mut slots = post.slots();
            slots.answer = Some(answer);
            slots.tape = tape;
        }
        post.changed.notify_all();
        if matches!(order, Order::Stop) {
            return;
        }
    }
}

/// What a thread holds between orders.
struct Player {
    recorder: Option<Recorder>,
    home: Option<Home>,
    action: Option<Action>,
}

impl Player {
    fn perform(
        &mut self,
        order: Order,
        stage: &Stage,
        side: usize,
        operation: &Operation,
        tape: Option<&mut Tape>,
    ) -> Result<(), String> {
        let said = |error: holdfast_core::types::Errno| format!("{}: {error}", operation.name);
        match order {
            Order::SetUp(rounds) => {
                self.recorder = Some(Recorder::new().map_err(|error| error.to_string())?);
                let home = stage.home(side).map_err(said)?;
                stage.make_objects(&home, rounds).map_err(said)?;
                self.home = Some(home);
                Ok(())
            }
            Order::Settle(rounds) => stage.settle(self.home()?, rounds).map_err(said),
            Order::WarmUp(start, end) => (start..end).try_for_each(|round| {
                let setup = stage.setup(self.home()?, round).map_err(said)?;
                (operation.prepare)(setup).map_err(said)?().map_err(said)
            }),
            Order::Prepare(round) => {
                self.action = None;
                let setup = stage.setup(self.home()?, round).map_err(said)?;
                self.action = Some((operation.prepare)(setup).map_err(said)?);
                Ok(())
            }
            Order::Run => {
                let action = self.action.as_mut().ok_or("nothing was prepared")?;
                let recorder = self.recorder.as_ref().ok_or("not set up")?;
                let tape = tape.ok_or("no tape")?;
                let mut outcome = Ok(());
                memory::silently(|| recorder.record(tape, || outcome = action()));
                outcome.map_err(said)
            }
            Order::Stop => {
                self.action = None;
                Ok(())
            }
        }
    }

    fn home(&self) -> Result<&Home, String> {
        self.home.as_ref().ok_or_else(|| "no home yet".to_owned())
    }
}

/// Keeps the thread on the first or second of the processors that it may use: state that the
/// file system keeps per processor is the thread's own then. With one processor only, it is not.
fn pin(side: usize) {
    let Ok(allowed) = rustix::thread::sched_getaffinity(None) else {
        return;
    };
    let mine = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    if let Some(cpu) = mine.clone().nth(side) {
        let mut only = rustix::thread::CpuSet::new();
        only.set(cpu);
        // Where it is refused the thread stays where it is, which is as good as one processor.
        let _ = rustix::thread::sched_setaffinity(None, &only);
    }
}
