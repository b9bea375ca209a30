//! Reading from the layers.

use holdfast_types::Ino;

use super::SnapshotReader;
use super::device::Blocks;
use crate::error::Result;
use crate::store::file::{Content, MissingRange};
use crate::store::memtable::{FreezeBarrier, Known, Layers, NameHasher, Snapshot};
use crate::tree::NodeCache;

/// The layers behind their barrier, and what a search in them needs.
#[derive(Debug)]
pub(in crate::store) struct StoreReader {
    pub(in crate::store) freeze_barrier: FreezeBarrier,
    pub(in crate::store) cache: NodeCache<Blocks>,
    pub(in crate::store) hasher: NameHasher,
}

impl StoreReader {
    pub(in crate::store) fn blocks(&self) -> &Blocks {
        self.cache.source()
    }

    /// Runs `look` over a snapshot of the layers, outside the barrier. If tree blocks may have been
    /// reused meanwhile, `look` starts over.
    pub(in crate::store) fn read<R>(
        &self,
        mut look: impl FnMut(&SnapshotReader<'_>) -> Result<R>,
    ) -> Result<R> {
        hop!();
        loop {
            let layers = self.freeze_barrier.snapshot();
            let found = look(&self.snapshot_reader(&layers));
            if layers.is_current() {
                return found;
            }
        }
    }

    pub(in crate::store) fn snapshot_reader<'l>(
        &'l self,
        layers: &'l Layers,
    ) -> SnapshotReader<'l> {
        SnapshotReader {
            layers,
            cache: &self.cache,
            hasher: &self.hasher,
        }
    }

    /// Reads bytes of a file. Bytes that change meanwhile are undefined: their blocks may belong to
    /// another file by then.
    ///
    /// # Errors
    /// Those of the device, and of what is damaged.
    pub(in crate::store) fn read_data(&self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<()> {
        loop {
            let (layers, known) = self.begin_read(ino, offset, buf);
            let missing = match known {
                Known::Found(missing) => Ok(missing),
                Known::Nothing => Ok(Vec::new()),
                Known::Below => {
                    let bytes = offset..offset.saturating_add(buf.len() as u64);
                    let begin = |content: &Content| Ok(content.begin_read(offset, buf));
                    let snapshot_reader = self.snapshot_reader(&layers);
                    snapshot_reader.with_bytes(ino, &bytes, begin)
                }
            };
            let fill = |it: &MissingRange| it.fill(buf, self.blocks());
            let read = missing.and_then(|missing| missing.iter().try_for_each(fill));
            if layers.is_current() {
                return read;
            }
        }
    }

    /// Reads what the memtables have, in one passage of the barrier. A commit that takes pages out
    /// of them publishes these as [in flight](crate::store::load::in_flight) before it reopens the
    /// barrier.
    fn begin_read(
        &self,
        ino: Ino,
        offset: u64,
        buf: &mut [u8],
    ) -> (Snapshot<'_>, Known<Vec<MissingRange>>) {
        let passed = self.freeze_barrier.pass();
        let known = passed.find(ino, |object| {
            let content = object.content()?;
            Some(content.begin_read(offset, buf))
        });
        if matches!(known, Known::Nothing) {
            buf.fill(0);
        }
        (self.freeze_barrier.snapshot(), known)
    }
}
