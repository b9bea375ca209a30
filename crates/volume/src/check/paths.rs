//! Links and parents: the link counts of inodes, and the path of every directory to the root.

use holdfast_types::{FileType, Ino};

use super::context::Context;
use super::finding::Finding;
use super::inodes::{AT_PARENT, Census, Known, ON_THE_WAY, ORPHAN, REACHED};

/// Checks the counts of names.
pub(super) fn check(context: &Context<'_>, census: &Census) {
    if census.len() == 0 {
        return;
    }
    let root = census.get(Ino::ROOT);
    if root.is_none_or(|root| root.kind != FileType::Directory) {
        context.sink.put(Finding::NoRoot);
    }
    for known in census.iter() {
        links(context, known);
        if known.kind == FileType::Directory && known.nlink > 0 && !reaches(census, known) {
            let ino = known.ino;
            context.sink.put(Finding::Unreachable { ino });
        }
    }
}

fn links(context: &Context<'_>, known: &Known) {
    let (ino, names, sink) = (known.ino, known.names(), context.sink);
    let is_root = ino == Ino::ROOT;
    let is_directory = known.kind == FileType::Directory;
    if known.nlink == 0 && names == 0 {
        if !known.has(ORPHAN) {
            sink.put(Finding::Orphan { ino });
        }
        return;
    }
    if is_directory {
        if names > 1 || (is_root && names > 0) {
            sink.put(Finding::DirectoryNames { ino, names });
        }
        let found = known.directories().saturating_add(2);
        if known.nlink != found {
            let expected = known.nlink;
            sink.put(Finding::Links {
                ino,
                expected,
                found,
            });
        }
    }
    if names == 0 {
        if !is_root {
            sink.put(Finding::Nameless { ino });
        }
    } else if !is_directory && known.nlink != names {
        let (expected, found) = (known.nlink, names);
        sink.put(Finding::Links {
            ino,
            expected,
            found,
        });
    }
    let at_parent = if is_root {
        known.parent == ino
    } else {
        // An inode with several names may have lost the one in its recorded parent.
        names == 0 || !is_directory || known.has(AT_PARENT)
    };
    if !at_parent {
        let parent = known.parent;
        sink.put(Finding::Parent { ino, parent });
    }
}

/// Does the path up from a directory reach the root? Marks all directories on it.
fn reaches(census: &Census, from: &Known) -> bool {
    let mut way: Vec<&Known> = Vec::new();
    let mut at = from;
    let reached = loop {
        if at.has(REACHED) || at.ino == Ino::ROOT {
            break true;
        }
        if at.mark(ON_THE_WAY) & ON_THE_WAY != 0 || !at.has(AT_PARENT) {
            // A circle, or a path that ends. It is reported at the directory where it ends.
            break false;
        }
        way.push(at);
        match census.get(at.parent) {
            Some(parent) => at = parent,
            None => break false,
        }
    };
    at.unmark(ON_THE_WAY);
    for known in way {
        known.unmark(ON_THE_WAY);
        if reached {
            known.mark(REACHED);
        }
    }
    reached
}
