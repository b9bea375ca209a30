//! Places for what is written, and nothing else: what is set aside for a file is kept in the engine's
//! index, or on a list as ext4 kept it up to Linux 6.3: one lock, the newest piece at the head,
//! each with a lock of its own, searched piece by piece for every write that has no place, and once
//! more to make room for a new piece. (ext4 cut its list at some 512 pieces, which hid the slope.)

use super::Pieces;
use crate::targets::{Io, OpenHow, Session, Tree};
use anyhow::Result;
use holdfast_types::Errno;
use holdfast_volume::space::{
    Extent, FileRequest, GROUP_BLOCKS_MAX, Layout, Mapped, Preallocations, Request, SLOT_BLOCKS,
    Space, Window,
};
use std::collections::{BTreeMap, HashMap, LinkedList};
use std::ffi::{CStr, CString};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Blocks of the space that places are taken from: 1 TiB, which is on no device.
const BLOCKS: u64 = 1 << 28;
const BLOCK: u64 = 4096;

/// Space without a device, and files that are places in it.
pub(crate) struct PiecesTree {
    space: Arc<Space>,
    design: Pieces,
    files: Mutex<HashMap<CString, Arc<Placed>>>,
}

impl PiecesTree {
    /// Nothing is placed yet.
    ///
    /// # Errors
    /// Never: the layout is one.
    pub(crate) fn new(design: Pieces) -> Result<Self> {
        let layout = Layout {
            volume: [0; 16],
            start: 0,
            end: BLOCKS,
            group_blocks: GROUP_BLOCKS_MAX,
            bundle: 1,
        };
        Ok(Self {
            space: Space::format(layout)?,
            design,
            files: Mutex::default(),
        })
    }
}

impl Tree for PiecesTree {
    type Session<'t> = PiecesSession<'t>;

    fn session(&self) -> PiecesSession<'_> {
        PiecesSession { tree: self }
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}

/// A file: where its blocks are, and what is set aside for it.
pub(crate) struct Placed {
    /// Runs of blocks, by their first one in the file.
    runs: Mutex<BTreeMap<u64, Extent>>,
    ahead: Ahead,
}

enum Ahead {
    List(Mutex<LinkedList<Mutex<Piece>>>),
    Index(Arc<Preallocations>),
}

/// A piece on the list.
struct Piece {
    logical: u64,
    extent: Extent,
    free: u64,
}

impl Piece {
    fn end(&self) -> u64 {
        self.logical + self.extent.length
    }
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Placed {
    fn new(tree: &PiecesTree) -> Self {
        Self {
            runs: Mutex::default(),
            ahead: match tree.design {
                Pieces::List => Ahead::List(Mutex::default()),
                Pieces::Index => Ahead::Index(Preallocations::new(&tree.space)),
            },
        }
    }

    /// Gives a block a place, if it has none.
    fn place(&self, space: &Space, logical: u64) -> Result<(), Errno> {
        let mut runs = held(&self.runs);
        let mapped = |(&logical, &extent): (&u64, &Extent)| Mapped { logical, extent };
        let before = runs.range(..=logical).next_back().map(mapped);
        if before.is_some_and(|left| left.logical + left.extent.length > logical) {
            return Ok(());
        }
        let end = runs.last_key_value().map(mapped);
        let request = FileRequest {
            size: end.map_or(0, |last| last.logical + last.extent.length),
            before,
            after: runs.range(logical..).next().map(mapped),
            ..FileRequest::new(logical, 1)
        };
        let placed = match &self.ahead {
            Ahead::Index(index) => index.place(&request, None),
            Ahead::List(list) => place_by_list(&mut held(list), space, &request),
        };
        let placed = placed.map_err(|_| Errno::ENOSPC)?;
        let (mut first, mut run) = (logical, placed);
        if let Some(left) = before
            && left.logical + left.extent.length == logical
            && left.extent.end() == run.start
        {
            first = left.logical;
            run = Extent::new(left.extent.start, left.extent.length + run.length);
        }
        let end = first + run.length;
        if runs.get(&end).is_some_and(|right| right.start == run.end())
            && let Some(right) = runs.remove(&end)
        {
            run.length += right.length;
        }
        runs.insert(first, run);
        Ok(())
    }
}

type Listed = LinkedList<Mutex<Piece>>;

/// One block, out of a piece on the list or of a new one.
fn place_by_list(
    list: &mut Listed,
    space: &Space,
    request: &FileRequest,
) -> Result<Extent, holdfast_volume::space::Error> {
    let logical = request.logical;
    for piece in list.iter() {
        let mut piece = held(piece);
        if piece.free > 0 && piece.logical <= logical && logical < piece.end() {
            piece.free -= 1;
            let start = piece.extent.start + (logical - piece.logical);
            return Ok(Extent::new(start, 1));
        }
    }
    let groups = GROUP_BLOCKS_MAX - SLOT_BLOCKS;
    let mut window = Window::of(request, groups).unwrap_or(Window {
        start: logical,
        end: logical + 1,
    });
    for piece in list.iter() {
        let piece = held(piece);
        if piece.end() <= logical {
            window.start = window.start.max(piece.end());
        } else if piece.logical > logical {
            window.end = window.end.min(piece.logical);
        }
    }
    let length = window.length();
    let extent = space.allocate(&Request {
        goal: window.goal(request),
        ..Request::data(length)
    })?;
    let first = window.place(request, extent.length);
    list.push_front(Mutex::new(Piece {
        logical: first,
        extent,
        free: extent.length - 1,
    }));
    Ok(Extent::new(extent.start + (logical - first), 1))
}

/// Calls that place.
pub(crate) struct PiecesSession<'t> {
    tree: &'t PiecesTree,
}

impl Io for PiecesSession<'_> {
    type File = Arc<Placed>;

    fn open_file(&mut self, path: &CStr, _how: OpenHow) -> Result<Arc<Placed>, Errno> {
        let mut files = held(&self.tree.files);
        let file = files.entry(path.to_owned());
        Ok(Arc::clone(
            file.or_insert_with(|| Arc::new(Placed::new(self.tree))),
        ))
    }

    fn read_at(&mut self, _: &Arc<Placed>, _: u64, _: &mut [u8]) -> Result<usize, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn write_at(&mut self, file: &Arc<Placed>, offset: u64, data: &[u8]) -> Result<usize, Errno> {
        file.place(&self.tree.space, offset / BLOCK)?;
        Ok(data.len())
    }

    fn append(&mut self, _: &Arc<Placed>, _: &[u8]) -> Result<usize, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn set_size(&mut self, _: &Arc<Placed>, _: u64) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn extents(&mut self, file: &Arc<Placed>) -> Result<Option<u64>, Errno> {
        Ok(Some(held(&file.runs).len() as u64))
    }
}

impl Session for PiecesSession<'_> {
    fn make_dir(&mut self, _: &CStr) -> Result<(), Errno> {
        Ok(())
    }

    fn create(&mut self, _: &CStr) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn stat(&mut self, _: &CStr) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn open(&mut self, _: &CStr) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn walk(&mut self, _: &CStr) -> Result<u64, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn unlink(&mut self, path: &CStr) -> Result<(), Errno> {
        held(&self.tree.files).remove(path);
        Ok(())
    }

    fn remove_dir(&mut self, _: &CStr) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Where a file's blocks lie after writes here and there.
    fn places(design: Pieces, writes: &[u64]) -> BTreeMap<u64, Extent> {
        let tree = PiecesTree::new(design).expect("made");
        let mut session = tree.session();
        let file = session.open_file(c"/f", OpenHow::Make).expect("made");
        for block in writes {
            session
                .write_at(&file, block * BLOCK, b"x")
                .expect("placed");
        }
        held(&file.runs).clone()
    }

    #[test]
    fn by_list_and_by_index_every_block_has_a_place_of_its_own() {
        // From behind, so that the size and with it the windows are those of a large file.
        let scattered: Vec<u64> = (0..600).map(|at| (599 - at) * 37 % 600 * 256).collect();
        let dense: Vec<u64> = (0..4096).map(|at| (at * 1025) % 4096).collect();
        for (writes, most) in [(scattered, 600), (dense, 40)] {
            for design in [Pieces::List, Pieces::Index] {
                let runs = places(design, &writes);
                assert!(runs.len() <= most, "{design:?}: {} runs", runs.len());
                let blocks = |(&logical, extent): (&u64, &Extent)| {
                    let start = extent.start;
                    (0..extent.length).map(move |skip| (logical + skip, start + skip))
                };
                let (logical, placed): (BTreeSet<u64>, BTreeSet<u64>) =
                    runs.iter().flat_map(blocks).unzip();
                assert_eq!(logical, writes.iter().copied().collect(), "{design:?}");
                assert_eq!(placed.len(), writes.len(), "{design:?}");
            }
        }
    }
}
