//! `made:`: the core over a store that computes its inodes and names from their numbers. Nothing
//! stands behind it, so what is measured is the core's part alone of bringing inodes into memory
//! and of letting them go.

mod layout;
pub(crate) mod names;
mod store;

pub(crate) use layout::Layout;

use super::MemoryTree;
use anyhow::{Context, Result};
use holdfast_core::{FileSystem, Options};
use std::sync::Arc;
use store::MadeStore;

/// A tree of this layout, none of it in memory yet. It cannot be changed.
///
/// # Errors
/// If there is no file system over such a store.
pub(crate) fn made(layout: Layout) -> Result<MemoryTree> {
    let options = Options {
        read_only: true,
        ..Options::default()
    };
    let fs = FileSystem::new(Arc::new(MadeStore::new(layout)), options);
    Ok(MemoryTree::of(fs.context("cannot use what was made")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::{Session, Tree};
    use holdfast_types::Errno;

    const NESTED: Layout = Layout {
        threads: 2,
        files: 25,
        per_dir: Some(10),
    };

    #[test]
    fn every_file_is_listed_and_found_by_its_path_and_none_can_be_made() {
        let tree = made(NESTED).expect("a tree");
        let mut session = tree.session();
        assert_eq!(session.walk(c"/"), Ok(2));
        assert_eq!(session.walk(c"/t1"), Ok(3));
        let met =
            [c"/t1/d0000000", c"/t1/d0000001", c"/t1/d0000002"].map(|path| session.walk(path));
        assert_eq!(met, [Ok(10), Ok(10), Ok(5)]);
        session
            .stat(c"/t0/d0000001/file-0000000000000000013")
            .expect("there");
        let elsewhere = session.stat(c"/t0/d0000001/file-0000000000000000003");
        assert_eq!(elsewhere, Err(Errno::ENOENT));
        assert_eq!(session.create(c"/t0/new"), Err(Errno::EROFS));
    }

    #[test]
    fn what_was_loaded_is_dropped_in_parts_and_what_is_left_goes_with_the_unmount() {
        let tree = made(NESTED).expect("a tree");
        let mut sessions = [tree.session(), tree.session()];
        for path in [c"/t0/d0000000", c"/t0/d0000001", c"/t0/d0000002"] {
            sessions[0].walk(path).expect("listed");
        }
        // The files, their directories and what those are in.
        let dropped = [0, 1].map(|part| sessions[part].drop_caches(part, 2).expect("dropped"));
        assert_eq!(dropped.iter().sum::<u64>(), 25 + 3 + 1);
        sessions[1].walk(c"/t1/d0000002").expect("listed");
        // Five files, two directories, the root; and what else was read ahead of 59 inodes.
        sessions
            .iter_mut()
            .for_each(|session| session.leave().expect("left"));
        let left = sessions[0].unmount(0, 2).expect("unmounted");
        assert!((8..=59).contains(&left), "{left}");
        assert_eq!(sessions[1].unmount(1, 2), Ok(0));
    }
}
