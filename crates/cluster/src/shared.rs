//! The abilities of the store: others change it, and its inodes can be walked by number.

use crate::meta::Directory;
use crate::store::ClusterStore;
use holdfast_core::store::{
    Changes, Coherence, InodeRecord, NameRun, Shared, WalkInodes, WholeDirectory,
};
use holdfast_types::{Ino, Result};
use std::sync::Weak;
use std::time::{Duration, Instant};

/// How long an answer that is watched holds, while the lease does.
const NOTIFIED: Duration = Duration::from_secs(24 * 3600);

impl Shared for ClusterStore {
    fn coherence(&self) -> Coherence {
        // A front end keeps an answer for the other half.
        let valid = self.settings.lease / 2;
        match self.settings.notifies {
            true => Coherence::Notified {
                valid,
                notified: NOTIFIED,
            },
            false => Coherence::For(valid),
        }
    }

    fn attach(&self, changes: Weak<dyn Changes>) {
        self.answers.files.attach(Weak::clone(&changes));
        self.session.attach(changes);
    }

    fn listen(&self, ino: Ino) {
        if let Some(node) = self.answers.recent.node(ino) {
            self.session.uses(&node.record);
        }
    }

    fn notified_until(&self) -> Option<Instant> {
        Some(self.session.lease().until(self.now()))
    }

    fn hears_of(&self, record: &InodeRecord, since: Instant) -> bool {
        self.session.covers(record, since)
    }

    fn read_directories(
        &self,
        dirs: &[Ino],
        most: usize,
        inodes: bool,
    ) -> Vec<Option<WholeDirectory>> {
        let topics = self.session.topics();
        let answers = topics.ask(|topics| self.meta.read_directories(dirs, most, inodes, topics));
        // A request for one of them alone returns the error.
        let Ok(answers) = self.unless_ended(answers) else {
            return dirs.iter().map(|_| None).collect();
        };
        let whole = |directory: Directory| {
            let mut names = NameRun::default();
            for entry in &directory.names {
                names.push(&entry.name, entry.cookie, entry.ino, entry.kind);
            }
            WholeDirectory {
                record: self.answers.take_in(&directory.node),
                names,
                inodes: (directory.inodes.iter())
                    .map(|node| self.answers.take_in(node))
                    .collect(),
            }
        };
        let answers = answers.into_iter();
        answers.map(|answer| answer.map(whole)).collect()
    }

    fn forgotten(&self, ino: Ino) {
        self.answers.files.forget(ino);
        self.session.forgotten(ino);
    }
}

impl WalkInodes for ClusterStore {
    fn walk(&self, after: Ino, max: usize, run: &mut Vec<InodeRecord>) -> Result<()> {
        let topics = self.session.topics();
        let nodes = self.unless_ended(topics.beside(|| self.meta.walk(after, max)))?;
        run.extend(nodes.iter().map(|node| self.answers.take_in(node)));
        Ok(())
    }
}
