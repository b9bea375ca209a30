//! Content: whose it is, and that it fits.

use holdfast_types::{FileType, Ino};

use super::Context;
use super::finding::{Branch, Finding, Owner};
use super::inodes::{BLOCKS, Census, INLINE};
use super::nodes::tell;
use crate::BLOCK;
use crate::space;
use crate::tree::{self, Contents, Data, DataKey, Extent, Inspect, Pointer, XattrValue};

struct Content<'c> {
    context: &'c Context<'c>,
    census: &'c Census,
    /// The first extent, and where the last one ends.
    first: Option<DataKey>,
    last: Option<(Ino, u64)>,
    extents: u64,
}

/// Checks the data tree; returns how many extents there are.
pub(super) fn check(context: &Context<'_>, census: &Census) -> u64 {
    let tree = context.tree::<Contents>(Branch::Data);
    let parts = tree.check(context.superblock.generation, context.jobs, || Content {
        context,
        census,
        first: None,
        last: None,
        extents: 0,
    });
    let mut last = None;
    for part in &parts {
        if let (Some((ino, end)), Some(first)) = (last, part.first)
            && ino == first.ino
            && end > first.offset
        {
            let offset = first.offset;
            context.sink.put(Finding::Overlap { ino, offset });
        }
        last = part.last.or(last);
    }
    for known in census.iter() {
        if known.kind == FileType::Symlink && !known.has(INLINE) {
            context.sink.put(Finding::NoTarget { ino: known.ino });
        }
    }
    parts.iter().map(|part| part.extents).sum()
}

impl Inspect<Contents> for Content<'_> {
    fn finding(&mut self, finding: tree::Finding) {
        tell(self.context.sink, Branch::Data, finding);
    }

    fn node(&mut self, node: Pointer, _level: u8) {
        self.context.node(Branch::Data, node);
    }

    fn record(&mut self, key: DataKey, value: Data<'_>) {
        self.context.meter.step();
        if self.census.get(key.ino).is_none() {
            self.context.sink.put(Finding::DataOwner { ino: key.ino });
        }
        match value {
            Data::Inline(bytes) => self.inline(key.ino, bytes.len() as u64),
            Data::Extent(extent) => self.extent(key, &extent),
            Data::Xattr { value, .. } => {
                if let XattrValue::External { extent, len } = value {
                    self.value(key.ino, &extent, len);
                }
            }
        }
    }
}

impl Content<'_> {
    fn inline(&self, ino: Ino, found: u64) {
        let Some(known) = self.census.get(ino) else {
            return;
        };
        let sink = self.context.sink;
        if !matches!(known.kind, FileType::Regular | FileType::Symlink) {
            sink.put(Finding::DataKind { ino });
        }
        if known.mark(INLINE) & BLOCKS != 0 {
            sink.put(Finding::BothForms { ino });
        }
        if known.size != found {
            let expected = known.size;
            sink.put(Finding::Length {
                ino,
                expected,
                found,
            });
        }
    }

    fn extent(&mut self, key: DataKey, extent: &Extent) {
        let (ino, offset) = (key.ino, key.offset);
        let end = offset.saturating_add(u64::from(extent.blocks));
        self.claim(extent, Owner::File(ino));
        self.extents += 1;
        let sink = self.context.sink;
        if let Some((last, end)) = self.last
            && last == ino
            && end > offset
        {
            sink.put(Finding::Overlap { ino, offset });
        }
        self.first.get_or_insert(key);
        self.last = Some((ino, end));
        let Some(known) = self.census.get(ino) else {
            return;
        };
        if known.kind != FileType::Regular {
            sink.put(Finding::DataKind { ino });
        }
        if known.mark(BLOCKS) & INLINE != 0 {
            sink.put(Finding::BothForms { ino });
        }
        let file_end = known.size.div_ceil(BLOCK as u64);
        if !extent.unwritten && end > file_end {
            let offset = offset.max(file_end);
            sink.put(Finding::BehindEnd { ino, offset });
        }
    }

    fn value(&self, ino: Ino, extent: &Extent, len: u32) {
        self.claim(extent, Owner::Value(ino));
        if u64::from(len) > u64::from(extent.blocks) * BLOCK as u64 {
            let blocks = extent.blocks;
            self.context
                .sink
                .put(Finding::ValueLength { ino, len, blocks });
        }
    }

    fn claim(&self, extent: &Extent, owner: Owner) {
        let extent = space::Extent::new(extent.block, u64::from(extent.blocks));
        self.context.claims.claim(extent, owner, self.context.sink);
    }
}
