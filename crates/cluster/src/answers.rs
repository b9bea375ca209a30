//! What the core gets of an answer of the database: the newest record of each inode, with what
//! waits here laid over it.

use crate::content::Files;
use crate::meta::Node;
use crate::recent::{Newest, Recent};
use holdfast_core::store::{InodeRecord, Touched, Version};
use holdfast_types::FileType;
use std::sync::Arc;

/// Takes in answers.
pub(crate) struct Answers {
    pub(crate) recent: Arc<Recent>,
    pub(crate) files: Arc<Files>,
}

/// Answers in an order: no other answer is taken in meanwhile.
pub(crate) struct Order<'a> {
    newest: Newest<'a>,
    files: &'a Files,
}

impl Answers {
    pub(crate) fn order(&self) -> Order<'_> {
        Order {
            newest: self.recent.lock(),
            files: &self.files,
        }
    }

    /// The record of a node from the database, or a newer one, with what waits here.
    pub(crate) fn take_in(&self, node: &Node) -> InodeRecord {
        self.order().take_in(node).0
    }
}

impl Order<'_> {
    /// As [`Answers::take_in`]. Is it the record of this node?
    fn take_in(&mut self, node: &Node) -> (InodeRecord, bool) {
        let mut record = node.record.clone();
        if record.kind == FileType::Regular {
            self.files.seen(node);
            // First: a file that is not dirty any more has left its node in the table.
            self.files.lay_over(&mut record);
        }
        match self.newest.seen(node) {
            None => (record, true),
            Some(mut newest) => {
                self.files.lay_over(&mut newest);
                (newest, false)
            }
        }
    }

    /// An inode that an operation changed, from the version that the database had before.
    pub(crate) fn touched(&mut self, before: Option<Version>, node: &Node) -> Touched {
        let before = before.map(|it| self.files.version_over(node.record.ino, it));
        let (record, is_of_node) = self.take_in(node);
        Touched {
            // A newer record has changes beside this one.
            before: before.filter(|_| is_of_node),
            record,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::FileOptions;
    use crate::memory::{Database, MemoryObjects};
    use crate::meta::Settings;
    use crate::numbers::Numbers;
    use holdfast_types::{Ino, Time};

    fn answers() -> (Answers, Node) {
        let meta = Database::new(Settings::default()).session();
        let numbers = Numbers::new(Arc::clone(&meta));
        let options = FileOptions::default();
        let files = Files::new(Arc::clone(&meta), MemoryObjects::new(), numbers, options).unwrap();
        let root = meta.load(&[Ino::ROOT], &[]).unwrap().remove(0);
        let recent = Arc::new(Recent::new());
        (Answers { recent, files }, root)
    }

    #[test]
    fn an_answer_that_was_overtaken_gives_the_newer_record_and_no_version_before() {
        let (answers, old) = answers();
        let before = Version::of(&old.record);
        let mut new = old.clone();
        (new.record.perm, new.record.ctime) = (0o700, Time(old.record.ctime.0 + 1));
        let touched = answers.order().touched(Some(before), &new);
        assert_eq!(
            (touched.before, &touched.record),
            (Some(before), &new.record)
        );
        let touched = answers.order().touched(Some(before), &old);
        assert_eq!((touched.before, &touched.record), (None, &new.record));
        assert_eq!(answers.take_in(&old), new.record);
        assert_eq!(answers.take_in(&new), new.record);
    }
}
