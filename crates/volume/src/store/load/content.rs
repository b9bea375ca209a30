//! The content of files.

use holdfast_types::Ino;

use super::SnapshotReader;
use crate::error::Result;
use crate::store::file::{Content, Mapping, Run};
use crate::tree::{Data, DataKey, DataKind};

impl SnapshotReader<'_> {
    /// A file's content as the layers below the active memtable know it.
    pub(in crate::store) fn content_below(&self, ino: Ino) -> Result<Content> {
        let len = self.inode(ino)?.map_or(0, |inode| inode.size);
        if let Some(frozen) = &self.layers.frozen {
            let known = frozen.with(ino, |object| {
                let fresh = object.fresh.then(|| Content::inline(Vec::new()));
                object.content().cloned().or(fresh)
            });
            if let Some(Some(content)) = known {
                return Ok(content);
            }
        }
        self.content_in_trees(ino, len)
    }

    /// A file's content as the trees have it.
    fn content_in_trees(&self, ino: Ino, len: u64) -> Result<Content> {
        if let Some(content) = self.inline_in_trees(ino, len)? {
            return Ok(content);
        }
        let mut mapping = Mapping::default();
        self.each_place(ino, |offset, run| {
            mapping.map(offset, run);
        })?;
        if mapping.is_empty() && len == 0 {
            return Ok(Content::inline(Vec::new()));
        }
        Ok(Content::mapped(len, mapping))
    }

    /// A file's extents as the layers below the active memtable know them.
    pub(in crate::store) fn places_below(&self, ino: Ino) -> Result<Vec<Run>> {
        if !self.is_file(ino)? {
            return Ok(Vec::new());
        }
        let frozen = self.layers.frozen.as_ref().and_then(|frozen| {
            frozen.with(ino, |object| match object.content() {
                Some(content) => Some(content.mapping().map_or_else(Vec::new, runs)),
                None => object.fresh.then(Vec::new),
            })
        });
        if let Some(places) = frozen.flatten() {
            return Ok(places);
        }
        let mut places = Vec::new();
        if self.layers.roots.data.is_some() {
            self.each_place(ino, |_, run| places.push(run))?;
        }
        Ok(places)
    }

    fn each_place(&self, ino: Ino, mut each: impl FnMut(u64, Run)) -> Result<()> {
        self.each_data(ino, DataKind::Extent, |offset, value| {
            if let Data::Extent(extent) = value {
                each(offset, Run::of(&extent));
            }
        })
    }

    /// A file's content, if the trees have it inline.
    pub(super) fn inline_in_trees(&self, ino: Ino, len: u64) -> Result<Option<Content>> {
        let key = DataKey::first(ino, DataKind::Inline);
        let inline = self.data().get(&key, |value| match value {
            Data::Inline(bytes) => Some(bytes.to_vec()),
            _ => None,
        })?;
        Ok(inline.flatten().map(|bytes| {
            let mut content = Content::inline(bytes);
            content.set_len(len);
            content
        }))
    }
}

fn runs(mapping: &Mapping) -> Vec<Run> {
    mapping.iter().map(|(_, run)| run).collect()
}
