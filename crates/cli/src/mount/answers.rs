//! The daemon's side of commands about its mount: see [`crate::control`].

use super::opened::Ending;
use super::read_only::ReadOnly;
use crate::control::{Answer, Request};
use crate::engine::daemon::Jobs;
use holdfast::engine::{Bulkstat, FileSystem};
use holdfast::row::{self, ROW};
use holdfast::types::{Errno, Ino, Result};
use holdfast::{Visit, Volume};
use holdfast_fuse::serve::{Asking, CONTROL_BYTES, Control, InfoDetail, InfoSource};
use holdfast_volume::VolumeStore;
use std::sync::{Arc, OnceLock, Weak};

/// Bytes of a block of a volume.
const BLOCK_LEN: u64 = 4096;
/// Rows of one answer.
const ROWS: usize = (CONTROL_BYTES - 4) / ROW;
/// Records of one answer: each takes less than 600 bytes.
const RECORDS: usize = 24;
/// Most parts of a split: each takes up to 21 bytes of an answer.
const PARTS_MAX: usize = 512;

/// Answers for a file system, and for the volume below it if there is one.
pub(super) struct Answers {
    fs: FileSystem,
    store: Option<Arc<VolumeStore>>,
    read_only: Arc<ReadOnly>,
    /// Makes the report on the mount.
    info: InfoSource,
    /// Jobs on whole trees.
    pub(super) jobs: Jobs,
    /// Closes what is served. Weak, because the session that holds `Answers` ends before it.
    ending: OnceLock<Weak<Ending>>,
}

impl Answers {
    pub(super) fn new(
        fs: FileSystem,
        volume: Option<&Volume>,
        read_only: Arc<ReadOnly>,
        info: InfoSource,
    ) -> Self {
        Self {
            read_only,
            info,
            jobs: Jobs::new(fs.clone()),
            fs,
            store: volume.map(Volume::store),
            ending: OnceLock::new(),
        }
    }

    /// Sets what is closed when the kernel unmounts and waits for the daemon.
    pub(super) fn end_by(&self, ending: &Arc<Ending>) {
        // Set once in a daemon's life.
        let _ = self.ending.set(Arc::downgrade(ending));
    }

    fn inodes(&self, after: u64, upto: u64) -> Result<Vec<u8>> {
        let mut scan = Bulkstat::between(Ino(after), Ino(upto)).with_batch(ROWS);
        let mut rows = Vec::with_capacity(ROWS * ROW);
        self.fs.bulkstat_attributes(&mut scan, |attr| {
            row::put(attr, &mut rows);
            Ok(if rows.len() < ROWS * ROW {
                Visit::Continue
            } else {
                Visit::Stop
            })
        })?;
        Ok(rows)
    }

    /// Makes the mount writable, unless its device is open for reading only.
    fn become_writable(&self) -> Answer {
        if self.read_only.is_fixed() {
            let why =
                "the source is open for reading only: unmount it, and mount it again without ro";
            return Answer::Failed(why.to_owned());
        }
        match self.read_only.set(false) {
            Ok(()) => Answer::Writable,
            Err(error) => Answer::Failed(format!("stays read-only: {error}")),
        }
    }

    fn answer(&self, request: Request, asking: &Asking) -> Result<Answer> {
        if !asking.may_administer && request != Request::Job {
            return Err(Errno::EPERM);
        }
        Ok(match request {
            Request::Job => {
                self.read_only.follow();
                match self.jobs.announce(asking.caller.clone()) {
                    Ok(name) => Answer::Job(name),
                    Err(error) => Answer::Failed(format!("its daemon takes no work now: {error}")),
                }
            }
            Request::Resize { bytes } => {
                self.read_only.follow();
                if self.fs.options().read_only {
                    return Err(Errno::EROFS);
                }
                let store = self.store.as_ref().ok_or(Errno::EOPNOTSUPP)?;
                match store.grow(bytes) {
                    Ok(size) => Answer::Resized(size),
                    Err(error) => Answer::Failed(error.to_string()),
                }
            }
            Request::Split { parts } => {
                let scans = self.fs.bulkstats(parts.clamp(1, PARTS_MAX))?;
                let begins = scans.iter().skip(1).map(|scan| scan.rest().0.0);
                Answer::Cuts(begins.collect())
            }
            Request::Writable => self.become_writable(),
            Request::ReadOnly => {
                // Only writing is ever refused.
                let _ = self.read_only.set(true);
                Answer::ReadOnly
            }
            Request::Reclaim { from } => match self.fs.memory_in_use() {
                Some(memory) => {
                    let records = memory.shrinkers().trace().read(from, RECORDS);
                    Answer::Reclaim(records.into())
                }
                None => {
                    Answer::Failed("has everything in memory alone: nothing is freed".to_owned())
                }
            },
            Request::Inodes { .. } | Request::Info { .. } => return Err(Errno::EINVAL),
        })
    }
}

impl Control for Answers {
    fn became_writable(&self) -> bool {
        self.read_only.set(false).is_ok() && !self.read_only.is_fixed()
    }

    fn unmounting(&self) {
        self.jobs.end();
        if let Some(ending) = self.ending.get().and_then(Weak::upgrade) {
            ending.end();
        }
    }

    fn trim(&self, start: u64, len: u64, least: u64) -> Result<u64> {
        let store = self.store.as_ref().ok_or(Errno::EOPNOTSUPP)?;
        self.read_only.follow();
        if self.fs.options().read_only {
            return Err(Errno::EROFS);
        }
        let bytes = store.info().superblock.blocks * BLOCK_LEN;
        if len < BLOCK_LEN || start >= bytes {
            return Err(Errno::EINVAL);
        }
        Ok(store.trim(start..start.saturating_add(len), least)?)
    }

    fn call(&self, request: &[u8], asking: &Asking) -> Result<Vec<u8>> {
        let request = serde_json::from_slice(request).map_err(|_| Errno::EINVAL)?;
        if let Request::Inodes { after, upto } = request
            && asking.may_administer
        {
            return self.inodes(after, upto);
        }
        if let Request::Info { inodes } = request {
            let detail = match inodes {
                true => InfoDetail::Inodes,
                false => InfoDetail::Brief,
            };
            return Ok((self.info)(detail).into_bytes());
        }
        let answer = self.answer(request, asking)?;
        serde_json::to_vec(&answer).map_err(|_| Errno::EIO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast::Caller;

    fn asking(may_administer: bool) -> Asking {
        Asking {
            caller: Caller::user(7, 7),
            may_administer,
        }
    }

    #[test]
    fn inodes_come_in_pieces_that_fit_and_leave_none_out() {
        let fs = holdfast::FileSystem::memory();
        for number in 0..500 {
            fs.write(format!("/{number}"), "x").unwrap();
        }
        let read_only = ReadOnly::new(fs.core().clone(), false, None);
        let info: InfoSource = Arc::new(|_| "{}".to_owned());
        let answers = Answers::new(fs.core().clone(), None, Arc::new(read_only), info);
        let (mut after, mut count) = (0, 0);
        loop {
            let request = Request::Inodes {
                after,
                upto: u64::MAX,
            };
            let rows = answers
                .call(&serde_json::to_vec(&request).unwrap(), &asking(true))
                .unwrap();
            assert!(rows.len() <= CONTROL_BYTES - 4);
            let Some(last) = rows.chunks_exact(ROW).next_back() else {
                break;
            };
            count += rows.len() / ROW;
            after = row::get(last).unwrap().ino.0;
        }
        assert_eq!(count, 501);
        let resize = serde_json::to_vec(&Request::Resize { bytes: 1 << 30 }).unwrap();
        assert_eq!(answers.call(&resize, &asking(true)), Err(Errno::EOPNOTSUPP));
        assert_eq!(answers.call(b"nonsense", &asking(true)), Err(Errno::EINVAL));
        for request in [
            Request::Resize { bytes: 1 },
            Request::Split { parts: 2 },
            Request::Inodes { after: 0, upto: 9 },
            Request::Reclaim { from: None },
        ] {
            let request = serde_json::to_vec(&request).unwrap();
            assert_eq!(answers.call(&request, &asking(false)), Err(Errno::EPERM));
        }
        let job = serde_json::to_vec(&Request::Job).unwrap();
        assert!(answers.call(&job, &asking(false)).is_ok());
        let info = serde_json::to_vec(&Request::Info { inodes: false }).unwrap();
        assert_eq!(
            answers.call(&info, &asking(false)).as_deref(),
            Ok(&b"{}"[..])
        );
        answers.jobs.end();
        assert_eq!(answers.trim(0, u64::MAX, 0), Err(Errno::EOPNOTSUPP));
    }
}
