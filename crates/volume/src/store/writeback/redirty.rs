//! Writing on in a page that waits already.
//!
//! Of many small writes to a file most are about a page that waits to be written anyway, as the cache has it, and leave the
//! attributes as they are until the clock ticks. There is nothing to journal, to promise, or to hold back then: the
//! next commit takes the page with what is in it now.

use holdfast_core::store::{Change, PageOf, Stamp};

use crate::BLOCK;
use crate::store::Inner;

/// What a write of that kind did.
pub(in crate::store) struct WrittenOn {
    pub(in crate::store) stamp: Stamp,
    /// May more pages be ready to be written than before?
    pub(in crate::store) readied: bool,
}

impl Inner {
    /// Takes note of a write of that kind; `None`: it is another, and has to be [applied](Self::apply).
    pub(in crate::store) fn write_on(
        &self,
        batch: &[Change<'_>],
        page: &PageOf<'_>,
    ) -> Option<WrittenOn> {
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
        let mut object = shard.get_mut(*ino)?;
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
    use holdfast_core::{FileSystem, OpenFile, Options};
    use holdfast_device::{BlockDevice, MemoryDevice};
    use holdfast_types::{Caller, OpenFlags};
    use std::sync::Arc;

    const PAGES: u64 = 200;
    const SECTOR: u64 = 512;
    const SECTORS: u64 = PAGES * BLOCK as u64 / SECTOR;

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

    /// A file system on a new volume, and in it a file of [`SECTORS`], of which only the last byte was written.
    fn made(device: &Arc<dyn BlockDevice>) -> (FileSystem, Arc<VolumeStore>, OpenFile) {
        format(device, &FormatOptions::default()).unwrap();
        let (fs, store) = opened(device);
        let (who, flags) = (Caller::root(), OpenFlags::CREATE | OpenFlags::READ_WRITE);
        let file = fs.create(&who, &fs.root(), b"file", 0o644, flags).unwrap();
        fs.write(&who, &file, SECTORS * SECTOR - 1, &[0]).unwrap();
        (fs, store, file)
    }

    /// Once more opened, the file has these bytes: each sector so many of one.
    fn assert_file(device: &Arc<dyn BlockDevice>, expected: impl Fn(u64) -> u8) {
        let (fs, store) = opened(device);
        let (who, root, mut found) = (Caller::root(), fs.root(), [0; SECTOR as usize]);
        let file = fs
            .open_at(&who, &root, b"/file", OpenFlags::empty(), 0)
            .unwrap();
        for sector in 0..SECTORS {
            fs.read(&file, sector * SECTOR, &mut found).unwrap();
            let expected = [expected(sector); SECTOR as usize];
            assert_eq!(found, expected, "sector {sector}");
        }
        drop((file, root));
        closed(fs, store);
    }

    /// All sectors; in no page are two neighbours one after the other.
    fn order() -> impl Iterator<Item = u64> {
        (0..SECTORS).map(|at| at * 811 % SECTORS)
    }

    /// The byte that a sector is filled with in a round.
    fn byte(sector: u64, round: u64) -> u8 {
        (1 + sector % 199 + round) as u8
    }

    fn write(fs: &FileSystem, file: &OpenFile, sector: u64, round: u64) {
        let bytes = [byte(sector, round); SECTOR as usize];
        fs.write(&Caller::root(), file, sector * SECTOR, &bytes)
            .unwrap();
    }

    #[test]
    fn pages_that_are_never_full_come_with_all_that_was_written_on() {
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 << 20));
        let (fs, store, file) = made(&device);
        let is_written = |sector: &u64| !sector.is_multiple_of(8) && !sector.is_multiple_of(3);
        for sector in order().filter(is_written) {
            write(&fs, &file, sector, 0);
        }
        drop(file);
        closed(fs, store);
        assert_file(&device, |sector| match is_written(&sector) {
            true => byte(sector, 0),
            false => 0,
        });
    }

    #[test]
    fn pages_that_are_written_on_are_noted_once_and_come_with_the_next_commit() {
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 << 20));
        let (fs, store, file) = made(&device);
        let keys = || store.inner.gate.pass().active.growth().keys;
        let before = keys();
        order().for_each(|sector| write(&fs, &file, sector, 0));
        // Three of each first write, and of one more each time that the clock ticks.
        let grown = keys() - before;
        assert!(grown >= 3 * PAGES, "{grown}");
        assert!(grown < 3 * SECTORS / 2, "{grown}");
        store.inner.make_durable(None).unwrap();
        // Pages that went to the device begin anew.
        order()
            .filter(|sector| sector % 3 == 0)
            .for_each(|sector| write(&fs, &file, sector, 1));
        drop(file);
        closed(fs, store);
        assert_file(&device, |sector| byte(sector, u64::from(sector % 3 == 0)));
    }
}
