use super::{Call, Hook, Wrapped};
use holdfast_core::store::{Change, InodeRecord, Lsn, Operation};
use holdfast_types::{Ino, Result};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;

/// A store that remembers what it was asked.
pub type RecordingStore = Wrapped<Record>;

/// What is remembered of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Noted {
    /// Attributes of an inode.
    Attributes(InodeRecord),
    /// Bytes of a file.
    Write,
    /// The end of an inode.
    Free(Ino),
    /// Anything else.
    Other,
}

impl From<&Change<'_>> for Noted {
    fn from(change: &Change<'_>) -> Self {
        match change {
            Change::Attributes { inode } => Self::Attributes(inode.clone()),
            Change::Write { .. } => Self::Write,
            Change::Free { ino } => Self::Free(*ino),
            _ => Self::Other,
        }
    }
}

/// One event of a recording, in the order of completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// A batch was accepted.
    Batch(Vec<Noted>),
    /// Everything up to a point was made durable (`None`: all of it).
    Commit(Option<Lsn>),
    /// A store that is written through did something.
    Performed,
    /// Such a store made an inode durable.
    Synced(Ino),
}

#[derive(Debug, Default)]
struct Log {
    calls: BTreeMap<Call, u64>,
    events: Vec<Recorded>,
}

/// What a [`RecordingStore`] remembers.
#[derive(Debug, Default)]
pub struct Record {
    log: Mutex<Log>,
}

impl Record {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock()
    }

    /// How often a call was made.
    #[must_use]
    pub fn count(&self, call: Call) -> u64 {
        self.log().calls.get(&call).copied().unwrap_or(0)
    }

    /// The batches and commits so far.
    #[must_use]
    pub fn events(&self) -> Vec<Recorded> {
        self.log().events.clone()
    }

    /// Forgets everything so far.
    pub fn clear(&self) {
        *self.log() = Log::default();
    }
}

impl Hook for Record {
    fn before(&self, call: Call) -> Result<()> {
        *self.log().calls.entry(call).or_default() += 1;
        Ok(())
    }

    fn applied(&self, batch: &[Change<'_>]) {
        let batch = batch.iter().map(Noted::from).collect();
        self.log().events.push(Recorded::Batch(batch));
    }

    fn committed(&self, upto: Option<Lsn>) {
        self.log().events.push(Recorded::Commit(upto));
    }

    fn performed(&self, _operation: &Operation<'_>) {
        self.log().events.push(Recorded::Performed);
    }

    fn synced(&self, ino: Ino) {
        self.log().events.push(Recorded::Synced(ino));
    }
}
