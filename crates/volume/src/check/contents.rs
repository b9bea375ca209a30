//! Content: whose it is, and that it fits.

use holdfast_types::{FileType, Ino};

use super::Context;
use super::finding::{Branch, Finding, Owner};
use super::inodes::{BLOCKS, Census, INLINE, Known};
use super::nodes::tell;
use crate::BLOCK;
use crate::space;
use crate::store::hash::NameHasher;
use crate::tree::{self, Contents, Data, DataKey, Extent, Inspect, Pointer, XattrValue};

struct Content<'c> {
    context: &'c Context<'c>,
    census: &'c Census,
    /// The first extent, and where the last one ends.
    first: Option<DataKey>,
    last: Option<(Ino, u64)>,
    extents: u64,
    hasher: NameHasher,
    alike: Alike,
    /// A part of the tree could not be read.
    torn: bool,
    first_name: Option<(DataKey, Box<[u8]>)>,
}

/// Names of extended attributes of one inode that have one hash.
#[derive(Default)]
struct Alike {
    ino: Option<Ino>,
    hash: u32,
    names: Vec<Box<[u8]>>,
}

/// Names that are kept of those that have one hash: more of them are a wonder.
const ALIKE_MAX: usize = 64;

/// Checks the data tree; returns how many extents there are.
pub(super) fn check(context: &Context<'_>, census: &Census) -> u64 {
    let tree = context.tree::<Contents>(Branch::Data);
    let parts = tree.check(context.superblock.generation, context.jobs, || Content {
        context,
        census,
        first: None,
        last: None,
        extents: 0,
        hasher: NameHasher::new(context.superblock.hash_seed),
        alike: Alike::default(),
        torn: false,
        first_name: None,
    });
    let (mut last, mut alike) = (None, &Alike::default());
    for part in &parts {
        if let Some((key, name)) = &part.first_name {
            let (ino, hash) = (key.ino, (key.offset >> 32) as u32);
            if (alike.ino, alike.hash) == (Some(ino), hash) && alike.names.contains(name) {
                let name = name.clone();
                context.sink.put(Finding::SameXattr { ino, name });
            }
            alike = &part.alike;
        }
        if let (Some((ino, end)), Some(first)) = (last, part.first)
            && ino == first.ino
            && end > first.offset
        {
            let offset = first.offset;
            context.sink.put(Finding::Overlap { ino, offset });
        }
        last = part.last.or(last);
    }
    // What cannot be read takes space as well.
    let torn = parts.iter().any(|part| part.torn);
    for known in census.iter() {
        let ino = known.ino;
        if known.kind == FileType::Symlink && !known.has(INLINE) {
            context.sink.put(Finding::NoTarget { ino });
        }
        if known.kind == FileType::Regular && !torn {
            space(context, known);
        }
    }
    parts.iter().map(|part| part.extents).sum()
}

/// Does a file say the space that it takes?
fn space(context: &Context<'_>, known: &Known) {
    let (ino, size) = (known.ino, known.size);
    let found = match known.has(INLINE) {
        // That is a finding of its own.
        true if known.has(BLOCKS) => return,
        true => size.div_ceil(BLOCK as u64),
        false => known.blocks(),
    };
    if let Some(expected) = known.space.pages(size)
        && expected != found
    {
        context.sink.put(Finding::Space {
            ino,
            expected,
            found,
        });
    }
}

impl Inspect<Contents> for Content<'_> {
    fn finding(&mut self, finding: tree::Finding) {
        self.torn = true;
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
            Data::Xattr { name, value } => {
                self.attribute(key, name);
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
        known.takes(extent.blocks.into());
        if known.mark(BLOCKS) & INLINE != 0 {
            sink.put(Finding::BothForms { ino });
        }
        let file_end = known.size.div_ceil(BLOCK as u64);
        if !extent.unwritten && end > file_end {
            let offset = offset.max(file_end);
            sink.put(Finding::BehindEnd { ino, offset });
        }
    }

    /// Looks at an attribute's name and place.
    fn attribute(&mut self, key: DataKey, name: &[u8]) {
        let (ino, sink) = (key.ino, self.context.sink);
        let hash = (key.offset >> 32) as u32;
        let known = self.census.get(ino);
        if self.alike.ino != Some(ino) && known.is_some_and(|known| !known.xattrs) {
            sink.put(Finding::XattrFlag { ino });
        }
        if self.hasher.hash(name) != hash {
            let name = name.into();
            sink.put(Finding::XattrPlace { ino, name });
        }
        let alike = &mut self.alike;
        if (alike.ino, alike.hash) != (Some(ino), hash) {
            alike.names.clear();
            (alike.ino, alike.hash) = (Some(ino), hash);
        }
        if alike.names.iter().any(|before| **before == *name) {
            let name = name.into();
            sink.put(Finding::SameXattr { ino, name });
        } else if alike.names.len() < ALIKE_MAX {
            alike.names.push(name.into());
        }
        self.first_name.get_or_insert_with(|| (key, name.into()));
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
