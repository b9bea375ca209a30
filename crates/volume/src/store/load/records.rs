//! The data tree's records of one inode.

use holdfast_types::Ino;

use super::device::Blocks;
use crate::error::Result;
use crate::tree::{Contents, Cursor, Data, DataKey, DataKind, Tree};

/// Reads records of the data tree; cheap for ascending inodes.
pub(in crate::store) struct DataRecords<'f> {
    tree: Tree<'f, Contents, Blocks>,
    cursor: Option<Cursor<'f, Contents, Blocks>>,
}

impl<'f> DataRecords<'f> {
    pub(in crate::store) fn of(tree: Tree<'f, Contents, Blocks>) -> Self {
        Self { tree, cursor: None }
    }

    /// Calls `each` with an inode's records from kind `from` on, ascending.
    pub(in crate::store) fn each(
        &mut self,
        ino: Ino,
        from: DataKind,
        mut each: impl FnMut(DataKey, Data<'_>),
    ) -> Result<()> {
        if self.tree.root().is_none() {
            return Ok(());
        }
        let first = DataKey::first(ino, from);
        let cursor = match &mut self.cursor {
            Some(cursor) => cursor,
            none => none.insert(self.tree.range(Some(&first))?),
        };
        if let Some(value) = cursor.find(&first)? {
            each(first, value);
        }
        let behind = DataKey::first(Ino(ino.0.saturating_add(1)), DataKind::Inline);
        while let Some((key, value)) = cursor.next_below(&behind)? {
            each(key, value);
        }
        Ok(())
    }
}
