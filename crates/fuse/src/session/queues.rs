//! All rings of a session on their way into being.

use super::service::Service;
use crate::{
    mount::MountError,
    transport::uring::{Mailbox, Nudger, Queue, QueueReport, queue_count},
};
use std::{
    io,
    os::fd::OwnedFd,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread::{self, JoinHandle},
};

/// Threads with rings, waiting for the word to register them.
pub(super) struct Queues {
    threads: Vec<JoinHandle<()>>,
    go: Vec<Sender<Arc<Service>>>,
    mailboxes: Vec<Arc<Mailbox>>,
    reports: Receiver<QueueReport>,
}

impl Queues {
    /// Builds a ring per processor; all or none.
    pub(super) fn build(device: &Arc<OwnedFd>, depth: usize, nudger: &Nudger) -> io::Result<Self> {
        let (report, reports) = channel();
        let count = queue_count()?;
        let mut queues = Self {
            threads: Vec::new(),
            go: Vec::new(),
            mailboxes: Vec::new(),
            reports,
        };
        for qid in 0..count {
            let mailbox = Arc::new(Mailbox::new()?);
            let (go, word) = channel();
            let queue = Queue {
                qid,
                depth,
                device: device.clone(),
                mailbox: mailbox.clone(),
                nudger: nudger.clone(),
                report: report.clone(),
                go: word,
            };
            let thread = thread::Builder::new()
                .name(format!("holdfast-cpu{qid}"))
                .spawn(move || queue.run())?;
            queues.threads.push(thread);
            queues.go.push(go);
            queues.mailboxes.push(mailbox);
        }
        for _ in 0..count {
            match queues.reports.recv() {
                Ok(QueueReport::Built(result)) => result?,
                // A thread that died has said why on its way.
                Ok(QueueReport::Registered(..)) | Err(_) => {
                    return Err(io::Error::other("a thread died"));
                }
            }
        }
        Ok(queues)
    }

    /// Registers all queues, after INIT was answered. If one fails, the mount must go: the
    /// kernel would wait for it for ever.
    pub(super) fn register(
        self,
        service: &Arc<Service>,
    ) -> Result<Vec<JoinHandle<()>>, MountError> {
        let dead = || MountError::Start {
            source: io::Error::other("a queue's thread died"),
        };
        let _ = service.mailboxes.set(self.mailboxes);
        for go in &self.go {
            go.send(service.clone()).map_err(|_| dead())?;
        }
        for _ in 0..self.go.len() {
            match self.reports.recv().map_err(|_| dead())? {
                QueueReport::Registered(_, Ok(())) | QueueReport::Built(..) => {}
                QueueReport::Registered(qid, Err(source)) => {
                    service.end();
                    return Err(MountError::Queue { qid, source });
                }
            }
        }
        Ok(self.threads)
    }
}
