//! Directories that a walk visits next, read together: see [`Walks`](crate::readahead::Walks).

use holdfast_sync::epoch;
use std::sync::atomic::Ordering;

use super::names::NamesAsked;
use super::shared_store::SharedStore;
use crate::core::Core;
use crate::directory::Entry;
use crate::inode::{DirectoryBody, Inode, Numbered as _};
use crate::inodes::free::put_node;
use crate::node::Node;
use crate::readahead::{Millis, WalkAdvice, WalkOrder};
use crate::reclaim::usage::prefetch_room;
use crate::shared::by_name::look_up_together;
use crate::shared::is_in_memory;
use crate::shared::names::{has_names, take_in_whole};
use crate::types::{FileType, Ino};

/// The most names of a directory that is read with another one: a larger one is read in windows of
/// its own.
const NAMES: usize = 1024;

/// The position of a directory in its parent.
struct Place {
    cookie: u64,
    name: Box<[u8]>,
}

/// The listing of a directory begins. If others are likely to be listed next, they are read
/// with it.
pub(crate) fn walk_on(core: &Core, dir: &Inode, body: &DirectoryBody) {
    let Some(shared) = core.shared() else { return };
    let coherence = shared.coherence;
    if !core.policy.statahead() || coherence.holds_never() || body.names.is_dead() {
        return;
    }
    let parent = Ino(body.parent.load(Ordering::Relaxed));
    if dir.ino() == Ino::ROOT || parent == dir.ino() {
        return;
    }
    if has_names(shared, dir, body) {
        coherence.walks.met(parent, dir.ino(), Millis::now());
        return;
    }
    // If the parent was not listed, its other directories are unknown.
    let Some(parent) = core.index.get(parent.0).map(Node::new) else {
        return;
    };
    walk_from(core, shared, parent.inode(), dir);
    put_node(core, parent);
}

fn walk_from(core: &Core, shared: SharedStore<'_>, parent: &Inode, dir: &Inode) {
    let Ok(siblings) = parent.directory() else {
        return;
    };
    let Some(place) = place_in(shared, parent, siblings, dir) else {
        return;
    };
    let walks = &shared.coherence.walks;
    let at = (place.cookie, &*place.name);
    let Some(advice) = walks.decide(parent.ino(), dir.ino(), at, Millis::now()) else {
        return;
    };
    let next = next_directories(siblings, &place, advice);
    let came = read_with(core, shared, parent, dir, next, advice.inodes);
    walks.came(parent.ino(), came, Millis::now());
}

/// The position of a directory in its parent, if the names of the parent are fresh.
fn place_in(
    shared: SharedStore<'_>,
    parent: &Inode,
    siblings: &DirectoryBody,
    dir: &Inode,
) -> Option<Place> {
    if !has_names(shared, parent, siblings) {
        return None;
    }
    let place = |(name, entry): (&[u8], Entry)| {
        (entry.ino == dir.ino()).then(|| Place {
            cookie: entry.cookie,
            name: name.into(),
        })
    };
    let (_, cookie) = dir.meta().home;
    let guard = epoch::pin();
    let names = |after| siblings.names.after(after, &guard);
    let known = names(cookie.saturating_sub(1)).next().and_then(place);
    // After a listing a kernel asks by number, so the name is unknown.
    known.or_else(|| names(0).find_map(place))
}

/// The directories that follow in this order.
fn next_directories(
    siblings: &DirectoryBody,
    place: &Place,
    advice: WalkAdvice,
) -> Vec<(Box<[u8]>, Ino)> {
    let guard = epoch::pin();
    let after = match advice.order {
        WalkOrder::Listing => place.cookie,
        WalkOrder::Name => 0,
    };
    let all = siblings.names.after(after, &guard);
    let all = all
        .filter(|(_, entry)| entry.kind == FileType::Directory)
        .map(|(name, entry)| (name, entry.ino));
    let next: Vec<(&[u8], Ino)> = match advice.order {
        WalkOrder::Listing => all.take(advice.len).collect(),
        WalkOrder::Name => {
            let mut behind: Vec<_> = all.filter(|(name, _)| *name > &*place.name).collect();
            if behind.len() > advice.len {
                behind.select_nth_unstable(advice.len);
                behind.truncate(advice.len);
            }
            behind
        }
    };
    next.into_iter()
        .map(|(name, ino)| (name.into(), ino))
        .collect()
}

/// Reads a directory with others of its parent. Returns those of the others that are in memory
/// afterwards.
fn read_with(
    core: &Core,
    shared: SharedStore<'_>,
    parent: &Inode,
    dir: &Inode,
    next: Vec<(Box<[u8]>, Ino)>,
    inodes: bool,
) -> Vec<Ino> {
    let room = prefetch_room(core);
    if next.is_empty() || room == 0 {
        return Vec::new();
    }
    let most = match inodes {
        true => NAMES.min(room / next.len()),
        false => NAMES,
    };
    let mut unknown = next.clone();
    unknown.retain(|(_, ino)| !is_in_memory(core, *ino));
    look_up_together(core, parent, &unknown);
    let others = next.iter().filter_map(|(_, ino)| {
        let node = Node::new(core.index.get(ino.0)?);
        let is_wanted = node
            .inode()
            .directory()
            .is_ok_and(|body| !body.names.is_dead() && !has_names(shared, node.inode(), body));
        if is_wanted {
            return Some(node);
        }
        put_node(core, node);
        None
    });
    let others: Vec<Node> = others.collect();
    let all: Vec<&Inode> = std::iter::once(dir)
        .chain(others.iter().map(Node::inode))
        .collect();
    let came = read_together(core, shared, &all, most, inodes);
    others.into_iter().for_each(|node| put_node(core, node));
    came.into_iter().filter(|ino| *ino != dir.ino()).collect()
}

/// Reads these directories in one call of the store. Returns those that are in memory
/// afterwards.
fn read_together(
    core: &Core,
    shared: SharedStore<'_>,
    dirs: &[&Inode],
    most: usize,
    inodes: bool,
) -> Vec<Ino> {
    let asked: Vec<(Ino, NamesAsked)> = dirs
        .iter()
        .map(|dir| (dir.ino(), NamesAsked::now(shared, dir.ino())))
        .collect();
    let evictions = core.evictions.snapshot();
    let inos: Vec<Ino> = asked.iter().map(|(ino, _)| *ino).collect();
    let answer = shared.read_directories(&inos, most, inodes);
    let mut came = Vec::with_capacity(answer.len());
    for ((dir, answer), (ino, asked)) in dirs.iter().zip(answer).zip(asked) {
        // A caller that asks for a failed directory gets the error from its own request.
        let (Some(answer), Ok(body)) = (answer, dir.directory()) else {
            continue;
        };
        let (dir, asked) = ((*dir, body), (asked, true));
        if answer.record.ino == ino
            && take_in_whole(core, shared, dir, asked, &evictions, answer).is_ok()
        {
            came.push(ino);
        }
    }
    came
}
