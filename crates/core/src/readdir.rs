//! Listing directories.
//!
//! A listing copies a run of names from memory, or from the store if the directory is partial, and
//! then passes it on. Cookies are positions: a listing can stop and continue anywhere, and neither
//! loses nor repeats a name that stays. It ends with the last name that existed when it began (at
//! cookie 0, or with the first call). Otherwise a program that adds names while it lists would
//! never finish.

use crate::listing::Listing;
use holdfast_sync::epoch;
use std::sync::atomic::Ordering;

use crate::FileSystem;
use crate::attributes::atime::note_access;
use crate::by_number::find_node;
use crate::core::Core;
use crate::directory::{FIRST_COOKIE, Residency};
use crate::events::notify_event;
use crate::inode::{DirectoryBody, Inode, Numbered as _};
use crate::inodes::find::live_inode;
use crate::io::unmapped::load_block_count;
use crate::load::load_together;
use crate::namespace::load::{learn_run, load_names};
use crate::node::Node;
use crate::open_file::OpenFile;
use crate::readahead::{Millis, is_hidden};
use crate::reclaim::metadata::{added_so_far, shrink_inodes_since};
use crate::reclaim::usage::prefetch_room;
use crate::shared::by_name::look_up_together;
use crate::shared::child::child_of_shared;
use crate::shared::is_in_memory;
use crate::shared::names::names_with;
use crate::shared::shared_store::SharedStore;
use crate::shared::walk::walk_on;
use crate::store::{DirEntry, NameRun};
use crate::types::{Attr, Errno, FileType, Ino, OpenFlags, Result};
use crate::watch::EventMask;

/// Names looked up at once in a store that others change, at most.
const READAHEAD_MAX: usize = 4096;
/// Names copied at once.
const RUN: usize = 128;
const DOT: u64 = 1;
const DOT_DOT: u64 = 2;

impl<'a> From<&'a OpenFile> for Listing<'a> {
    fn from(dir: &'a OpenFile) -> Self {
        Self::new(dir.node(), dir.flags(), &dir.listing_end)
    }
}

/// Fills a run with those of `.` and `..` that are behind `after`.
fn fill_dots(run: &mut NameRun, ino: Ino, body: &DirectoryBody, after: u64) {
    run.clear();
    if after < DOT {
        run.push(b".", DOT, ino, FileType::Directory);
    }
    if after < DOT_DOT {
        let parent = Ino(body.parent.load(Ordering::Relaxed));
        run.push(b"..", DOT_DOT, parent, FileType::Directory);
    }
}

/// Adds the names behind `after` out of the catalog.
fn fill(run: &mut NameRun, body: &DirectoryBody, after: u64, end: u64) {
    let guard = epoch::pin();
    let names = body.names.after(after, &guard).take(RUN);
    for (name, entry) in names.take_while(|(_, entry)| entry.cookie <= end) {
        run.push(name, entry.cookie, entry.ino, entry.kind);
    }
}

impl FileSystem {
    /// Passes the names behind the cookie `after` (0: from the start, `.` and `..` first) to
    /// `sink`, until it returns `false` for a name it did not take.
    ///
    /// # Errors
    /// `ENOTDIR`; `ENOENT` for a removed directory; `EBADF` for a handle to the name only; the
    /// store's.
    pub fn read_dir<'a>(
        &self,
        dir: impl Into<Listing<'a>>,
        after: u64,
        sink: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        self.list(dir.into(), after, false, &mut |run| {
            run.iter().all(&mut *sink)
        })
    }

    /// As [`FileSystem::read_dir`], with the attributes of each name's inode, or with the error of
    /// reading them: an unreadable inode does not end the listing. A name that is removed meanwhile
    /// is left out. No inode is referenced, so that a listing writes nothing shared;
    /// [`FileSystem::node`] returns an inode by its number.
    ///
    /// # Errors
    /// As [`FileSystem::read_dir`].
    pub fn read_dir_plus<'a>(
        &self,
        dir: impl Into<Listing<'a>>,
        after: u64,
        sink: &mut dyn FnMut(DirEntry<'_>, Result<&Attr>) -> bool,
    ) -> Result<()> {
        let all = |_: &DirEntry<'_>| true;
        self.read_dir_plus_of(dir, after, &all, &mut |entry, attr| match attr {
            Some(attr) => sink(entry, attr),
            None => true,
        })
    }

    /// As [`FileSystem::read_dir_plus`], with attributes only for names that `wants` selects. The
    /// inodes of the others need not be loaded, and `sink` gets the name alone. `wants` may be
    /// called more than once for a name, and for a name that the directory does not have.
    ///
    /// # Errors
    /// As [`FileSystem::read_dir`].
    pub fn read_dir_plus_of<'a>(
        &self,
        dir: impl Into<Listing<'a>>,
        after: u64,
        wants: &dyn Fn(&DirEntry<'_>) -> bool,
        sink: &mut dyn FnMut(DirEntry<'_>, Option<Result<&Attr>>) -> bool,
    ) -> Result<()> {
        let core = &self.core;
        let added = added_so_far(core);
        // An error of the whole file system, such as a revocation, ends the listing.
        let mut over = Ok(());
        let listing: Listing<'a> = dir.into();
        let dir = listing.dir;
        // Are the attributes of files wanted? It decides whether all inodes come with the names.
        let inodes = wants(&DirEntry {
            name: b".",
            ino: dir.ino(),
            kind: FileType::Regular,
            cookie: DOT,
        });
        let listed = self.list(listing, after, inodes, &mut |run| {
            let mut is_brought = false;
            run.iter().enumerate().all(|(at, mut entry)| {
                if !wants(&entry) {
                    return sink(entry, None);
                }
                if !is_brought && !is_in_memory(core, entry.ino) {
                    // Loaded from this name on: a reply may be full before, and the next one begins
                    // with these names.
                    is_brought = true;
                    let wanted = run.iter().skip(at).filter(|entry| wants(entry));
                    match core.shared() {
                        Some(shared) => {
                            look_up_listed(core, shared, dir.inode(), entry.cookie, wants)
                        }
                        None => load_together(core, wanted.map(|entry| entry.ino)),
                    }
                }
                match self.attributes_of_entry(dir, &mut entry) {
                    Ok(attr) => sink(entry, Some(Ok(&attr))),
                    Err(Errno::ESTALE) => true,
                    Err(error) => {
                        over = core.alive();
                        over.is_ok() && sink(entry, Some(Err(error)))
                    }
                }
            })
        });
        shrink_inodes_since(core, added);
        listed.and(over)
    }

    /// The attributes of a name's inode, loaded if need be. Where others change the store the name
    /// may lead to another inode by now; the entry is then updated.
    ///
    /// # Errors
    /// `ESTALE`: the name was removed. The store's.
    fn attributes_of_entry(&self, dir: &Node, entry: &mut DirEntry<'_>) -> Result<Attr> {
        let core = &self.core;
        let Some(shared) = core.shared() else {
            return self.attributes_of(entry.ino);
        };
        if matches!(entry.name, b"." | b"..") {
            return self.attributes(&find_node(core, entry.ino)?);
        }
        if is_in_memory(core, entry.ino) {
            return self.attributes_of(entry.ino);
        }
        let (dir, body) = (dir.inode(), dir.inode().directory()?);
        let node = match child_of_shared(core, shared, dir, body, entry.name) {
            Err(Errno::ENOENT) => return Err(Errno::ESTALE),
            found => found?,
        };
        (entry.ino, entry.kind) = (node.ino(), node.kind());
        load_block_count(core, node.inode())?;
        Ok(node.inode().stat())
    }

    /// The attributes of the inode of this number, loaded if need be.
    fn attributes_of(&self, ino: Ino) -> Result<Attr> {
        let core = &self.core;
        core.alive()?;
        {
            let guard = epoch::pin();
            let live = live_inode(&self.core, ino, &guard);
            if let Some(inode) = live.filter(|inode| inode.has_known_space()) {
                return Ok(inode.stat());
            }
        }
        self.attributes(&find_node(&self.core, ino)?)
    }

    /// Passes runs of names to `sink`, until it returns `false`. `inodes`: will the inodes be used?
    fn list(
        &self,
        listing: Listing<'_>,
        mut after: u64,
        inodes: bool,
        sink: &mut dyn FnMut(&NameRun) -> bool,
    ) -> Result<()> {
        let Listing {
            dir: node,
            flags,
            end: stored,
        } = listing;
        if flags.contains(OpenFlags::PATH) {
            return Err(Errno::EBADF);
        }
        let core = &self.core;
        core.alive()?;
        let body = node.inode().directory()?;
        if after == 0 {
            walk_on(core, node.inode(), body);
        }
        match core.coherence.is_some() {
            true => names_with(core, node.inode(), body, inodes)?,
            false => load_names(core, node.inode(), body)?,
        }
        if body.names.is_dead() {
            return Err(Errno::ENOENT);
        }
        let mut end = stored.load(Ordering::Relaxed);
        // A front end may list the beginning from its own cache, and start in the middle.
        if after == 0 || end == Listing::NO_END {
            end = body.names.last_cookie();
            stored.store(end, Ordering::Relaxed);
        }
        let mut run = NameRun::default();
        while fill_listing(core, &mut run, node.inode(), body, after, end)? {
            if after < FIRST_COOKIE {
                listing_begins(core, node.inode(), &run);
            }
            let Some(last) = run.last_cookie().filter(|_| sink(&run)) else {
                break;
            };
            after = last;
        }
        if !flags.contains(OpenFlags::NOATIME) {
            note_access(core, node.inode());
        }
        notify_event(core, node.inode(), EventMask::ACCESS);
        Ok(())
    }
}

/// Looks up the wanted names from this cookie on, at most as many as were listed so far. Each
/// call of the store is a round trip, but the listing may end early.
fn look_up_listed(
    core: &Core,
    shared: SharedStore<'_>,
    dir: &Inode,
    cookie: u64,
    wants: &dyn Fn(&DirEntry<'_>) -> bool,
) {
    let Ok(body) = dir.directory() else { return };
    if shared.coherence.holds_never() {
        // The answers would not be valid long enough to be used.
        return;
    }
    let most = usize::try_from(cookie.saturating_sub(FIRST_COOKIE)).unwrap_or(usize::MAX);
    let most = most
        .clamp(RUN, READAHEAD_MAX)
        .min(prefetch_room(core).max(RUN));
    let guard = epoch::pin();
    let names = body.names.after(cookie.saturating_sub(1), &guard);
    let listed = names.map(|(name, entry)| DirEntry {
        name,
        ino: entry.ino,
        kind: entry.kind,
        cookie: entry.cookie,
    });
    let wanted = listed.filter(|entry| wants(entry)).take(most);
    let wanted: Vec<(Box<[u8]>, Ino)> = wanted
        .filter(|entry| !is_in_memory(core, entry.ino))
        .map(|entry| (entry.name.into(), entry.ino))
        .collect();
    drop(guard);
    look_up_together(core, dir, &wanted);
}

/// A listing begins with this run: the next lookup of one of its first names predicts a scan.
fn listing_begins(core: &Core, dir: &Inode, run: &NameRun) {
    if !core.policy.statahead() {
        return;
    }
    let mut names = run.iter().filter(|entry| entry.cookie >= FIRST_COOKIE);
    if let Some(first) = names.next() {
        let visible = match is_hidden(first.name) {
            true => names.find(|entry| !is_hidden(entry.name)),
            false => None,
        };
        let first = [first, visible.unwrap_or(first)];
        // Inodes in memory need no read-ahead, and concurrent listings would contend for its
        // state.
        if !first.iter().all(|entry| is_in_memory(core, entry.ino)) {
            let first = first.map(|entry| entry.cookie);
            (core.readahead.scans).listed(dir.ino(), first, Millis::now());
        }
    }
}

/// Fills a run with the names behind `after`, from memory or the store; false at the end of the
/// directory.
fn fill_listing(
    core: &Core,
    run: &mut NameRun,
    dir: &Inode,
    body: &DirectoryBody,
    after: u64,
    end: u64,
) -> Result<bool> {
    loop {
        fill_dots(run, dir.ino(), body, after);
        let seen = body.names.see();
        match seen.place() {
            Residency::Unloaded => {
                load_names(core, dir, body)?;
                continue;
            }
            Residency::Partial => fill_from_store(core, run, dir, body, after, end)?,
            Residency::Whole | Residency::Dated => {
                fill(run, body, after, end);
                // Otherwise names may be missing that left the catalog but exist.
                if !body.names.is_still(seen) {
                    continue;
                }
            }
        }
        return Ok(!run.is_empty());
    }
}

fn fill_from_store(
    core: &Core,
    run: &mut NameRun,
    dir: &Inode,
    body: &DirectoryBody,
    after: u64,
    end: u64,
) -> Result<()> {
    let dots = run.len();
    if after < FIRST_COOKIE && core.policy.statahead() {
        // A program that stats what it lists begins with one of these names, so they are
        // recorded.
        let mut first = NameRun::default();
        learn_run(core, dir, body, DOT_DOT, RUN, &mut first)?;
        let some = first.iter().take_while(|entry| entry.cookie <= end);
        some.for_each(|entry| run.push(entry.name, entry.cookie, entry.ino, entry.kind));
        return Ok(());
    }
    let after = after.max(DOT_DOT);
    core.store.read_names(dir.ino(), after, RUN, run)?;
    let ascend = run.iter().map(|entry| entry.cookie).is_sorted();
    if !ascend || run.iter().skip(dots).any(|entry| entry.cookie <= after) {
        return Err(Errno::EUCLEAN);
    }
    let until_end = run.iter().take_while(|entry| entry.cookie <= end).count();
    run.truncate(until_end);
    Ok(())
}
