//! Writing on in a page that waits already.
//!
//! Of many small writes to a file most are about a page that waits to be written anyway, as the cache has it, and leave the
//! attributes as they are until the clock ticks. There is nothing to journal, to promise, or to hold back then: the
//! next commit takes the page with what is in it now.

use holdfast_core::store::{Change, PageOf, Stamp};

use super::Inner;
use crate::BLOCK;

/// What a write of that kind did.
pub(super) struct WrittenOn {
    pub(super) stamp: Stamp,
    /// May more pages be ready to be written than before?
    pub(super) readied: bool,
}

impl Inner {
    /// Takes note of a write of that kind; `None`: it is another, and has to be [applied](Self::apply).
    pub(super) fn write_on(&self, batch: &[Change<'_>], page: &PageOf<'_>) -> Option<WrittenOn> {
        let [
            Change::Attributes { inode },
            Change::Write { ino, offset, data },
        ] = batch
        else {
            return None;
        };
        let end = offset + data.len() as u64;
        let block = offset / BLOCK as u64;
        if inode.ino != *ino || data.is_empty() || (end - 1) / BLOCK as u64 != block {
            return None;
        }
        let page = page(block)?;
        if page.filled() <= data.len() {
            // It is new, or as good as that.
            return None;
        }
        let layers = self.gate.pass();
        self.running().ok()?;
        let mut shard = layers.active.shard(*ino);
        let object = shard.get_mut(*ino)?;
        if !matches!(&object.record, Some(Some(known)) if known == inode) {
            return None;
        }
        let content = object.content_mut()?;
        let readied = !content.write_on_in_part(page, end);
        if readied {
            let before = content.dirty();
            let done = content.write_on(page, end);
            layers.active.count_dirty(*ino, before, content.dirty());
            done.then_some(())?;
        }
        let stamp = self.journal.before_next_cut();
        Some(WrittenOn { stamp, readied })
    }
}

#[cfg(test)]
mod tests {
    use crate::BLOCK;
    use crate::store::{FormatOptions, OpenOptions, VolumeStore, format};
    use holdfast_core::{FileSystem, Options};
    use holdfast_device::{BlockDevice, MemoryDevice};
    use holdfast_types::{Caller, OpenFlags};
    use std::sync::Arc;

    const PAGES: u64 = 200;
    const SECTOR: u64 = 512;

    fn opened(device: &Arc<dyn BlockDevice>) -> (FileSystem, Arc<VolumeStore>) {
        let never = OpenOptions {
            commit_every: None,
            ..OpenOptions::default()
        };
        let store = Arc::new(VolumeStore::open(Arc::clone(device), &never).unwrap());
        let fs = FileSystem::new(Arc::clone(&store) as _, Options::default()).unwrap();
        (fs, store)
    }

    fn closed(fs: FileSystem, store: Arc<VolumeStore>) {
        fs.close().unwrap();
        store.close().unwrap();
    }

    #[test]
    fn pages_that_are_never_full_come_with_all_that_was_written_on() {
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 << 20));
        format(&device, &FormatOptions::default()).unwrap();
        let (fs, store) = opened(&device);
        let (who, root) = (Caller::root(), fs.root());
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let file = fs.create(&who, &root, b"file", 0o644, flags).unwrap();
        let sectors = PAGES * BLOCK as u64 / SECTOR;
        fs.write(&who, &file, sectors * SECTOR - 1, &[0]).unwrap();
        let is_written = |sector: &u64| !sector.is_multiple_of(8) && !sector.is_multiple_of(3);
        for sector in (0..sectors).map(|at| at * 811 % sectors).filter(is_written) {
            let bytes = [byte(sector, 0); SECTOR as usize];
            fs.write(&who, &file, sector * SECTOR, &bytes).unwrap();
        }
        drop((file, root));
        closed(fs, store);

        let (fs, store) = opened(&device);
        let (root, mut found) = (fs.root(), [0; SECTOR as usize]);
        let file = fs
            .open_at(&who, &root, b"/file", OpenFlags::empty(), 0)
            .unwrap();
        for sector in 0..sectors {
            fs.read(&file, sector * SECTOR, &mut found).unwrap();
            let expected = if is_written(&sector) {
                byte(sector, 0)
            } else {
                0
            };
            assert_eq!(found, [expected; SECTOR as usize], "sector {sector}");
        }
        drop((file, root));
        closed(fs, store);
    }

    /// The byte that a sector is filled with in a round.
    fn byte(sector: u64, round: u64) -> u8 {
        (1 + sector % 199 + round) as u8
    }

    #[test]
    fn pages_that_are_written_on_are_noted_once_and_come_with_the_next_commit() {
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 << 20));
        format(&device, &FormatOptions::default()).unwrap();
        let (fs, store) = opened(&device);
        let (who, root) = (Caller::root(), fs.root());
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let file = fs.create(&who, &root, b"file", 0o644, flags).unwrap();
        let sectors = PAGES * BLOCK as u64 / SECTOR;
        // Its length first.
        fs.write(&who, &file, sectors * SECTOR - 1, &[0]).unwrap();
        let write = |sector: u64, round| {
            let bytes = [byte(sector, round); SECTOR as usize];
            fs.write(&who, &file, sector * SECTOR, &bytes).unwrap();
        };
        let keys = || store.inner.gate.pass().active.growth().keys;
        let before = keys();
        // In no page are two neighbours written one after the other.
        let order = (0..sectors).map(|at| at * 811 % sectors);
        order.clone().for_each(|sector| write(sector, 0));
        // Four of each first write, and of one more each time that the clock ticks.
        let grown = keys() - before;
        assert!(grown >= 4 * PAGES, "{grown}");
        assert!(grown < 4 * sectors / 2, "{grown}");
        store.inner.make_durable(None).unwrap();
        // Pages that went to the device begin anew.
        order
            .filter(|sector| sector % 3 == 0)
            .for_each(|sector| write(sector, 1));
        drop((file, root));
        closed(fs, store);

        let (fs, store) = opened(&device);
        let (root, mut found) = (fs.root(), [0; SECTOR as usize]);
        let file = fs
            .open_at(&who, &root, b"/file", OpenFlags::empty(), 0)
            .unwrap();
        for sector in 0..sectors {
            fs.read(&file, sector * SECTOR, &mut found).unwrap();
            let expected = byte(sector, u64::from(sector % 3 == 0));
            assert_eq!(found, [expected; SECTOR as usize], "sector {sector}");
        }
        drop((file, root));
        closed(fs, store);
    }
}
