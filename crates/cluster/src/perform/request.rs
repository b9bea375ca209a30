//! Requests to the database, and what the core gets of their answers.

use crate::meta::{Answer, Request};
use crate::store::ClusterStore;
use holdfast_core::store::{Done, Shared as _, Touched};
use holdfast_types::{Errno, Ino, Result};
use std::time::Duration;

/// A request that takes no longer was sent once.
const ONE_TRIP: Duration = Duration::from_millis(100);

impl ClusterStore {
    /// Makes a request about an inode. What waits for it here comes first.
    pub(super) fn ask_about(&self, ino: Ino, request: Request) -> Result<Done> {
        self.answers.files.flush(ino)?;
        self.ask(request)
    }

    /// Makes a request.
    pub(super) fn ask(&self, request: Request) -> Result<Done> {
        self.session.topics().beside(|| self.ask_beside(request))
    }

    fn ask_beside(&self, request: Request) -> Result<Done> {
        let (sent, mark) = (self.now(), self.session.mark());
        let Answer::Done {
            entry,
            other,
            touched,
        } = self.meta.perform(request)?
        else {
            // Only a flush is refused.
            return Err(Errno::EIO);
        };
        let mut order = self.answers.order();
        // Under the lock: a later time has no older record.
        let at = self.now();
        let touched = touched
            .iter()
            .map(|(before, node)| order.touched(*before, node));
        let mut touched: Vec<Touched> = touched.collect();
        drop(order);
        // The core asks for inodes that others may have changed between the change and `at`: those
        // of messages that were taken in meanwhile, and all if the request was sent several times.
        let is_old = at.duration_since(sent) >= ONE_TRIP.max(self.settings.lease / 2);
        touched.retain(|it| !is_old && !self.session.is_news(mark, &[it.record.ino]));
        Ok(Done {
            entry,
            other,
            touched,
            ..Done::at(at)
        })
    }
}
