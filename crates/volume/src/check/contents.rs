//! Content: its owner, its length, its place.

use holdfast_types::{FileType, Ino};

use super::context::{Context, Records};
use super::finding::{Branch, Finding, Owner};
use super::inodes::{BLOCKS, Census, INLINE, Known};
use crate::block::BLOCK;
use crate::store::NameHasher;
use crate::tree::{Contents, Data, DataKey, Extent, XattrValue};

struct Content<'c> {
    context: &'c Context<'c>,
    census: &'c Census,
    /// The first extent, and the end of the last one.
    first: Option<DataKey>,
    last: Option<(Ino, u64)>,
    extents: u64,
    hasher: NameHasher,
    alike: Alike,
    /// A part of the tree could not be read.
    torn: bool,
    first_name: Option<(DataKey, Box<[u8]>)>,
}

/// Names of extended attributes of one inode with equal hashes.
#[derive(Default)]
struct Alike {
    ino: Option<Ino>,
    hash: u32,
    names: Vec<Box<[u8]>>,
}

/// The most names kept with equal hashes: more collide only by design.
const ALIKE_MAX: usize = 64;

/// Checks the data tree; returns the number of extents.
pub(super) fn check(context: &Context<'_>, census: &Census) -> u64 {
    let parts = context.check::<Contents, _>(Branch::Data, || Content {
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
    // Unreadable records take space as well.
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

/// Compares a file's recorded space with its blocks.
fn space(context: &Context<'_>, known: &Known) {
    let (ino, size) = (known.ino, known.size);
    let found = match known.has(INLINE) {
        // Reported as `BothForms`.
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

impl Records<Contents> for Content<'_> {
    fn damaged(&mut self) {
        self.torn = true;
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
        self.reference(extent, Owner::File(ino));
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

    /// Checks an attribute's name and key.
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
        self.reference(extent, Owner::Value(ino));
        if u64::from(len) > u64::from(extent.blocks) * BLOCK as u64 {
            let blocks = extent.blocks;
            self.context
                .sink
                .put(Finding::ValueLength { ino, len, blocks });
        }
    }

    fn reference(&self, extent: &Extent, owner: Owner) {
        let extent = extent.span();
        self.context
            .references
            .reference(extent, owner, self.context.sink);
    }
}
