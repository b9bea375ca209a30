mod fits;

use super::pages::{PAGE, PageMap};
use holdfast_core::store::{
    Behind, Change, EntryRecord, Grant, Guarantees, InodeRecord, Intent, Lsn, NameRun, Rest, Space,
    SpaceReport, SpaceRun, WalkInodes, Writes,
};
use holdfast_core::{MemoryLimits, Store};
use holdfast_types::{Errno, FileType, Ino, Result};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// The naive store: plain maps behind one lock, everything kept as the core said it.
///
/// It is meant to be obviously correct: a tree written through one file system is loaded again by
/// another over the same store. It refuses (`EUCLEAN`) batches that contradict what it holds, and
/// batches that leave attributes which do not match names and bytes. A crash may follow any batch.
#[derive(Debug, Default)]
pub struct ModelStore {
    held: Mutex<Held>,
    limits: MemoryLimits,
    refusal: OnceLock<String>,
}

#[derive(Clone, Debug, Default)]
struct Held {
    inodes: BTreeMap<Ino, Inode>,
    /// By directory and cookie.
    entries: BTreeMap<(Ino, u64), EntryRecord>,
    /// By directory and name: the cookie.
    names: BTreeMap<(Ino, Box<[u8]>), u64>,
    /// By directory: above all that names of it ever had.
    next_cookies: BTreeMap<Ino, u64>,
    /// Names of each inode, and of a directory those of its directories and its own two besides.
    links: BTreeMap<Ino, u32>,
    /// By directory: where it was named last.
    parents: BTreeMap<Ino, Ino>,
    last_ino: u64,
    lsn: u64,
    pages_used: u64,
    inodes_used: u64,
}

#[derive(Clone, Debug)]
struct Inode {
    record: InodeRecord,
    target: Option<Box<[u8]>>,
    xattrs: BTreeMap<Box<[u8]>, Box<[u8]>>,
    pages: PageMap,
}

impl ModelStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store with room for so much.
    #[must_use]
    pub fn limited(limits: MemoryLimits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Pages that it has room for.
    fn pages_max(&self) -> Option<u64> {
        self.limits.bytes.map(|bytes| bytes / PAGE)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock()
    }

    /// A copy of what is held now, as a store of its own.
    #[must_use]
    pub fn copied(&self) -> Self {
        Self {
            held: Mutex::new(self.held().clone()),
            limits: self.limits,
            refusal: OnceLock::new(),
        }
    }

    /// The first change that contradicted what was held, if there was one.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.get().map(String::as_str)
    }
}

impl Held {
    /// A change and what stands in its way.
    fn describe(&self, change: &Change<'_>) -> String {
        match *change {
            Change::Enter {
                dir, name, cookie, ..
            }
            | Change::Leave { dir, name, cookie } => {
                let entry = self.entries.get(&(dir, cookie));
                format!(
                    "{} of {:?} in {dir:?} at {cookie}: the name is at {:?}, there is {:?}",
                    if matches!(change, Change::Enter { .. }) {
                        "entry"
                    } else {
                        "leaving"
                    },
                    name.escape_ascii().to_string(),
                    self.names.get(&(dir, name.into())),
                    entry.map(|entry| (entry.name.escape_ascii().to_string(), entry.ino)),
                )
            }
            _ => format!("{change:?}"),
        }
    }

    fn inode(&mut self, ino: Ino) -> Result<&mut Inode> {
        self.inodes.get_mut(&ino).ok_or(Errno::EUCLEAN)
    }

    fn pages(&mut self, ino: Ino) -> Result<&mut PageMap> {
        Ok(&mut self.inode(ino)?.pages)
    }

    fn perform(&mut self, change: &Change<'_>) -> Result<()> {
        match *change {
            Change::Create { ref inode, target } => self.create(inode, target)?,
            Change::Attributes { ref inode } => {
                let held = self.inode(inode.ino)?;
                if (held.record.kind, held.record.btime) != (inode.kind, inode.btime) {
                    return Err(Errno::EUCLEAN);
                }
                held.record = inode.clone();
            }
            Change::Enter {
                dir,
                name,
                cookie,
                ino,
                kind,
            } => {
                let name: Box<[u8]> = name.into();
                let entry = EntryRecord {
                    name: name.clone(),
                    cookie,
                    ino,
                    kind,
                };
                let next = self.next_cookies.entry(dir).or_default();
                *next = (*next).max(cookie.saturating_add(1));
                let fresh = self.names.insert((dir, name), cookie).is_none();
                let placed = self.entries.insert((dir, cookie), entry).is_none();
                if !fresh || !placed {
                    return Err(Errno::EUCLEAN);
                }
                self.count_name(dir, ino, kind, 1);
                if kind.is_dir() {
                    self.parents.insert(ino, dir);
                }
            }
            Change::Leave { dir, name, cookie } => {
                let found = self.names.remove(&(dir, name.into()));
                let removed = self.entries.remove(&(dir, cookie));
                let gone = removed.filter(|_| found == Some(cookie));
                let gone = gone.ok_or(Errno::EUCLEAN)?;
                self.count_name(dir, gone.ino, gone.kind, -1);
            }
            Change::Xattr { ino, name, value } => {
                let xattrs = &mut self.inode(ino)?.xattrs;
                match value {
                    Some(value) => xattrs.insert(name.into(), value.into()),
                    None => xattrs.remove(name),
                };
            }
            Change::Free { ino } => {
                let freed = self.inodes.remove(&ino).ok_or(Errno::EUCLEAN)?;
                self.next_cookies.remove(&ino);
                self.links.remove(&ino);
                self.parents.remove(&ino);
                if freed.record.nlink != 0 {
                    return Err(Errno::EUCLEAN);
                }
            }
            _ => self.change_bytes(change)?,
        }
        Ok(())
    }

    fn change_bytes(&mut self, change: &Change<'_>) -> Result<()> {
        match *change {
            Change::Write { ino, offset, data } => self.pages(ino)?.write(offset, data),
            Change::Truncate { ino, size } => self.pages(ino)?.truncate(size),
            Change::Zero {
                ino,
                offset,
                len,
                keep,
            } => self.pages(ino)?.zero(offset, len, keep),
            Change::Allocate { ino, offset, len } => self.pages(ino)?.allocate(offset, len),
            Change::Collapse { ino, offset, len } => self.pages(ino)?.collapse(offset, len),
            Change::Insert { ino, offset, len } => self.pages(ino)?.insert(offset, len),
            _ => {}
        }
        Ok(())
    }

    /// A name comes (1) or goes (-1).
    fn count_name(&mut self, dir: Ino, ino: Ino, kind: FileType, names: i32) {
        let mut count = |ino, links: i32| {
            let counted: &mut u32 = self.links.entry(ino).or_default();
            *counted = counted.wrapping_add_signed(links);
        };
        count(ino, names);
        if kind.is_dir() {
            count(ino, names);
            count(dir, names);
        }
    }

    fn create(&mut self, record: &InodeRecord, target: Option<&[u8]>) -> Result<()> {
        if self.inodes.contains_key(&record.ino) {
            return Err(Errno::EUCLEAN);
        }
        self.last_ino = self.last_ino.max(record.ino.0);
        let inode = Inode {
            record: record.clone(),
            target: target.map(Box::from),
            xattrs: BTreeMap::new(),
            pages: PageMap::default(),
        };
        self.inodes.insert(record.ino, inode);
        Ok(())
    }
}

impl Store for ModelStore {
    fn guarantees(&self) -> Guarantees {
        Guarantees {
            pinned: false,
            blocks: false,
            small: 0,
            frees: false,
        }
    }

    fn writes(self: Arc<Self>) -> Writes {
        Writes::Behind(self)
    }

    fn load_inodes(&self, inos: &[Ino], found: &mut Vec<InodeRecord>) -> Result<()> {
        let held = self.held();
        found.extend(
            inos.iter()
                .filter_map(|ino| Some(held.inodes.get(ino)?.record.clone())),
        );
        Ok(())
    }

    fn load_rests(&self, records: &[InodeRecord], found: &mut Vec<Rest>) -> Result<()> {
        let mut held = self.held();
        for record in records {
            let inode = held.inode(record.ino)?;
            let mut rest = Rest::default();
            if record.xattrs {
                let xattrs = inode.xattrs.iter();
                let xattrs = xattrs.map(|(name, value)| (name.clone(), value.clone()));
                rest.xattrs = xattrs.collect();
            }
            if record.kind == FileType::Symlink {
                rest.target = Some(inode.target.clone().ok_or(Errno::EUCLEAN)?);
            }
            found.push(rest);
        }
        Ok(())
    }

    fn look_up(
        &self,
        dir: Ino,
        names: &[&[u8]],
        found: &mut Vec<Option<(EntryRecord, Option<InodeRecord>)>>,
    ) -> Result<()> {
        let held = self.held();
        for name in names {
            let cookie = held.names.get(&(dir, Box::from(*name)));
            let entry = cookie.and_then(|cookie| held.entries.get(&(dir, *cookie)));
            found.push(entry.map(|entry| {
                let inode = held.inodes.get(&entry.ino);
                (entry.clone(), inode.map(|inode| inode.record.clone()))
            }));
        }
        Ok(())
    }

    fn read_names(&self, dir: Ino, after: u64, max: usize, run: &mut NameRun) -> Result<()> {
        let held = self.held();
        let Some(first) = after.checked_add(1) else {
            return Ok(());
        };
        let entries = held.entries.range((dir, first)..=(dir, u64::MAX));
        for (_, entry) in entries.take(max) {
            run.push(&entry.name, entry.cookie, entry.ino, entry.kind);
        }
        Ok(())
    }

    fn end_cookie(&self, dir: Ino) -> Result<u64> {
        Ok(self.held().next_cookies.get(&dir).copied().unwrap_or(0))
    }

    fn next_space(&self, ino: Ino, offset: u64) -> Result<Option<SpaceRun>> {
        let data = self.held().pages(ino)?.next_data(offset);
        Ok(data.map(|(start, len)| SpaceRun {
            start,
            len,
            written: true,
        }))
    }

    fn read_data(&self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.held().pages(ino)?.read(offset, buf);
        Ok(())
    }

    fn space(&self) -> Result<SpaceReport> {
        let held = self.held();
        Ok(SpaceReport {
            pages: self.pages_max(),
            pages_used: held.pages_used,
            pages_reserved: 0,
            inodes: self.limits.inodes,
            inodes_used: held.inodes_used,
        })
    }

    fn commit(&self, upto: Option<Lsn>) -> Result<()> {
        // Memory is as durable as it gets; a stamp that was never given is the core's mistake.
        match upto {
            Some(Lsn(lsn)) if lsn > self.held().lsn => Err(Errno::EINVAL),
            _ => Ok(()),
        }
    }

    fn walk(&self) -> Option<&dyn WalkInodes> {
        Some(self)
    }
}

impl WalkInodes for ModelStore {
    fn walk(&self, after: Ino, max: usize, run: &mut Vec<InodeRecord>) -> Result<()> {
        let held = self.held();
        let behind = held.inodes.range(Ino(after.0.saturating_add(1))..);
        run.extend(behind.take(max).map(|(_, inode)| inode.record.clone()));
        Ok(())
    }
}

impl Behind for ModelStore {
    fn reserve(&self, intent: &Intent) -> Result<Grant> {
        let mut held = self.held();
        let (pages, inodes) = (
            held.pages_used + intent.pages,
            held.inodes_used + intent.inodes,
        );
        let is_full = |used: u64, most: Option<u64>| most.is_some_and(|most| used > most);
        if is_full(pages, self.pages_max()) || is_full(inodes, self.limits.inodes) {
            return Err(Errno::ENOSPC);
        }
        (held.pages_used, held.inodes_used) = (pages, inodes);
        Ok(Grant {
            inodes: intent.inodes,
            ..Grant::NONE
        })
    }

    fn give_back(&self, held: Grant) {
        self.release(held.space());
    }

    fn release(&self, space: Space) {
        let mut held = self.held();
        held.pages_used = held.pages_used.saturating_sub(space.pages);
        held.inodes_used = held.inodes_used.saturating_sub(space.inodes);
    }

    fn apply(&self, reserved: &mut Grant, batch: &[Change<'_>]) -> Result<Lsn> {
        *reserved = Grant::NONE;
        let mut held = self.held();
        let refuse = |why| {
            self.refusal.get_or_init(|| why);
            Err(Errno::EUCLEAN)
        };
        if let Some(why) = held.resized(batch) {
            return refuse(why);
        }
        for change in batch {
            if let Err(error) = held.perform(change) {
                self.refusal.get_or_init(|| held.describe(change));
                return Err(error);
            }
        }
        if let Some(why) = held.misfit_behind(batch) {
            return refuse(why);
        }
        held.lsn += 1;
        Ok(Lsn(held.lsn))
    }

    fn last_ino(&self) -> Result<Ino> {
        Ok(Ino(self.held().last_ino))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_with_limits_is_full_at_them_and_takes_all_or_nothing() {
        let store = ModelStore::limited(MemoryLimits {
            bytes: Some(3 * PAGE),
            inodes: Some(1),
        });
        let reserve = |pages, inodes| {
            store.reserve(&Intent {
                pages,
                inodes,
                ..Intent::default()
            })
        };
        assert!(reserve(2, 1).is_ok());
        assert_eq!(reserve(1, 1), Err(Errno::ENOSPC));
        assert_eq!(reserve(2, 0), Err(Errno::ENOSPC));
        assert!(reserve(1, 0).is_ok());
        store.release(Space {
            pages: 3,
            inodes: 1,
            bytes: 0,
        });
        let left = store.space().unwrap();
        assert_eq!((left.pages_used, left.inodes_used), (0, 0));
    }
}
