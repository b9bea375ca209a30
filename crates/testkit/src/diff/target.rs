//! What a file system under test must offer.

use crate::diff::op::{Bytes, Op};
use crate::diff::outcome::Outcome;
use crate::diff::view::{Detail, Snapshot, View};
use holdfast_types::Result;

/// An operation with the looks at the caller's open files around it.
#[derive(Debug)]
pub struct Step {
    /// Attributes of the open files before the operation, slot by slot.
    pub before: Vec<Result<View>>,
    /// What the operation answered.
    pub outcome: Outcome,
    /// Attributes of the open files after it.
    pub after: Vec<Result<View>>,
}

/// A file system under test: it runs operations and lets itself be looked at.
pub trait Target {
    /// Runs `op` as the caller with this number. The attributes of the caller's open files in
    /// `slots` are read before and after it (`EBADF` for an empty slot).
    fn run(&mut self, caller: usize, op: &Op, slots: &[usize]) -> Step;

    /// Looks at what `path` names (or leads to), as the superuser, changing no time except
    /// that of a symbolic link when its target is read.
    ///
    /// # Errors
    /// Those of the path walk.
    fn look(&mut self, path: &Bytes, follow: bool, detail: Detail) -> Result<View>;

    /// The whole tree from the root on, which has the empty path.
    ///
    /// # Errors
    /// Whatever stopped the walk: none is expected.
    fn snapshot(&mut self) -> Result<Snapshot> {
        let mut tree = Snapshot::new();
        let mut pending = vec![Bytes(b".".to_vec())];
        while let Some(path) = pending.pop() {
            let view = self.look(&path, false, Detail::ALL)?;
            if let crate::diff::view::Content::Names(names) = &view.content {
                for name in names.keys() {
                    let mut child = path.0.clone();
                    child.push(b'/');
                    child.extend_from_slice(&name.0);
                    pending.push(Bytes(child));
                }
            }
            tree.insert(path, view);
        }
        Ok(tree)
    }
}

/// Number of slots for open files each caller has.
pub(crate) const SLOTS: usize = 6;
