//! What a worker of this workload is given, and the threads that it puts to it.

use super::layout::{self, APART, Layout, SHARED};
use super::phase::Step;
use super::reader::{Buffer, Reader};
use super::writer::{Handles, Writer};
use crate::mode::Slots;
use crate::pool::{Pool, Work};
use crate::targets::{DirectoryTree, Io, MemoryTree, OpenHow, Target, Tree};
use crate::team::worker::Boss;
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::ffi::CStr;
use std::sync::atomic::AtomicUsize;

/// Parts into which the time of a phase beside a writer, and of the one apart from it, are divided.
const TURNS: u32 = 5;

/// Bytes of one write while a file is made.
const PIECE: usize = 64 << 10;

/// One run's tree and file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Task {
    pub(super) target: Target,
    /// How long each thread reads.
    pub(super) amount: Amount,
    /// The largest read, in bytes.
    pub(super) largest: usize,
    /// Is there one more thread, to write?
    pub(super) writer: bool,
}

/// How long a phase is.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub(super) enum Amount {
    Seconds(f64),
    /// Of each thread.
    Reads(u64),
}

impl Amount {
    /// The same in parts, and in how many: reads stay together.
    pub(super) fn divided(self) -> (Self, u32) {
        match self {
            Self::Seconds(seconds) => (Self::Seconds(seconds / f64::from(TURNS)), TURNS),
            Self::Reads(_) => (self, 1),
        }
    }
}

/// A thread of the pool.
type Worker<'w> = Box<dyn FnMut(Step) -> Result<Work> + Send + 'w>;

impl Task {
    /// Makes a fresh tree and its file, lets a pool take phases from the boss, removes the tree.
    ///
    /// # Errors
    /// If the tree cannot be made or removed; orders that make no sense.
    pub(crate) fn staff(&self, slots: Slots, boss: &mut Boss) -> Result<()> {
        match &self.target {
            Target::Memory => self.on(MemoryTree::new(), slots, boss),
            Target::Directory(path) => self.on(DirectoryTree::new(path)?, slots, boss),
            Target::Volume(_) => bail!("{} is for another workload", self.target),
        }
    }

    fn on<T: Tree>(&self, tree: T, slots: Slots, boss: &mut Boss) -> Result<()>
    where
        for<'t> T::Session<'t>: Io,
    {
        let outcome = self.within(&tree, slots, boss);
        let closed = tree.close();
        outcome.and(closed)
    }

    fn within<T: Tree>(&self, tree: &T, slots: Slots, boss: &mut Boss) -> Result<()>
    where
        for<'t> T::Session<'t>: Io,
    {
        let layout = Layout::new(slots.threads, self.largest);
        let mut maker = tree.session();
        make(&mut maker, SHARED, layout).context("cannot make the file")?;
        let reading = AtomicUsize::new(0);
        let mut workers: Vec<Worker<'_>> = Vec::new();
        for index in 0..slots.threads {
            let mut session = tree.session();
            let file = session.open_file(SHARED, OpenHow::Read).context("open")?;
            let mut reader = Reader {
                index,
                session,
                file,
                amount: self.amount,
                buffer: Buffer::default(),
                reading: &reading,
            };
            workers.push(Box::new(move |step| reader.step(step)));
        }
        if self.writer {
            make(&mut maker, APART, layout).context("cannot make the other file")?;
            let mut writer = Writer {
                beside: handles(&mut maker, SHARED)?,
                apart: handles(&mut maker, APART)?,
                session: tree.session(),
                layout,
                readers: slots.threads,
                reading: &reading,
            };
            workers.push(Box::new(move |step| writer.step(step)));
        }
        std::thread::scope(|scope| boss.serve(&Pool::hire(scope, slots.first, workers)?))
    }
}

/// Makes a file of known bytes.
fn make<S: Io>(session: &mut S, path: &CStr, layout: Layout) -> Result<()> {
    let file = session.open_file(path, OpenHow::Make)?;
    let mut piece = vec![0; PIECE];
    let mut offset = 0;
    while offset < layout.len() {
        let left = usize::try_from(layout.len() - offset)?;
        let piece = &mut piece[..PIECE.min(left)];
        layout::fill(offset, piece);
        let put = session.write_at(&file, offset, piece)?;
        ensure!(put == piece.len(), "a short write");
        offset += put as u64;
    }
    Ok(())
}

fn handles<S: Io>(session: &mut S, path: &CStr) -> Result<Handles<S::File>> {
    Ok(Handles {
        write: session.open_file(path, OpenHow::Write).context("open")?,
        append: session.open_file(path, OpenHow::Append).context("open")?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::phase::Phase;
    use super::*;

    fn exercise<T: Tree>(tree: &T)
    where
        for<'t> T::Session<'t>: Io,
    {
        let mut session = tree.session();
        make(&mut session, SHARED, Layout::new(1, 4096)).expect("made");
        let reading = AtomicUsize::new(0);
        let mut reader = Reader {
            index: 0,
            file: session.open_file(SHARED, OpenHow::Read).expect("opened"),
            session: tree.session(),
            amount: Amount::Reads(100),
            buffer: Buffer::default(),
            reading: &reading,
        };
        let phase = Phase::Read2(4096);
        reader.step(Step::Prepare(phase)).expect("not overwritten");
        let file = session.open_file(SHARED, OpenHow::Write).expect("opened");
        session.write_at(&file, 17, b"!").expect("written");
        let error = reader.step(Step::Prepare(phase)).expect_err("noticed");
        assert!(error.to_string().contains("wrong bytes"), "{error}");
        session.set_size(&file, 4095).expect("cut");
        let error = reader.step(Step::Run(phase)).expect_err("noticed");
        assert!(error.to_string().contains("short read"), "{error}");
    }

    #[test]
    fn readers_notice_wrong_bytes_and_short_reads() {
        exercise(&MemoryTree::new());
        let folder = tempfile::tempdir().expect("temporary directory");
        exercise(&DirectoryTree::new(folder.path()).expect("made"));
    }
}
