//! A target in a thread of its own: two hosts in one run each need a thread in which they may
//! change the root.

use crate::diff::op::{Bytes, Op};
use crate::diff::target::{Step, Target};
use crate::diff::view::{Detail, View};
use holdfast_types::Result;
use std::sync::mpsc::{Receiver, Sender, channel};

type Job = Box<dyn FnOnce(&mut dyn Target) + Send>;

/// The near end of a target in another thread.
#[derive(Debug)]
pub struct Remote {
    jobs: Option<Sender<Job>>,
    ended: Receiver<()>,
}

impl Remote {
    /// Makes a target in a new thread.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn spawn<T: Target>(make: impl FnOnce() -> Result<T> + Send + 'static) -> Result<Self> {
        let (jobs, inbox) = channel::<Job>();
        let (made, ready) = channel();
        let (end, ended) = channel();
        std::thread::spawn(move || {
            let mut target = match make() {
                Ok(target) => target,
                Err(error) => {
                    let _ = made.send(Err(error));
                    return;
                }
            };
            let _ = made.send(Ok(()));
            while let Ok(job) = inbox.recv() {
                job(&mut target);
            }
            drop(target);
            let _ = end.send(());
        });
        ready.recv().map_err(|_| holdfast_types::Errno::EIO)??;
        Ok(Self {
            jobs: Some(jobs),
            ended,
        })
    }

    fn ask<R: Send + 'static>(&self, job: impl FnOnce(&mut dyn Target) -> R + Send + 'static) -> R {
        let (answer, answered) = channel();
        let job: Job = Box::new(move |target| drop(answer.send(job(target))));
        self.jobs
            .as_ref()
            .expect("present until dropped")
            .send(job)
            .expect("the thread lives");
        answered.recv().expect("the thread answers")
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.jobs = None;
        let _ = self.ended.recv();
    }
}

impl Target for Remote {
    fn run(&mut self, caller: usize, op: &Op, slots: &[usize]) -> Step {
        let (op, slots) = (op.clone(), slots.to_vec());
        self.ask(move |target| target.run(caller, &op, &slots))
    }

    fn look(&mut self, path: &Bytes, follow: bool, detail: Detail) -> Result<View> {
        let path = path.clone();
        self.ask(move |target| target.look(&path, follow, detail))
    }
}
