//! What a flush sends: which edit of the content makes the database have what was written.

use super::file::{Base, EMPTY, File};
use super::files::Files;
use super::layer::{Kind, Layer, Says};
use super::map;
use super::page::{Bytes, LEN, PAGE, len_of};
use super::read::copy_base;
use super::view::{Below, View};
use super::waiting::Waiting;
use crate::meta::{Content, Edit, Extent, Flush, Pages, Size};
use holdfast_core::store::InodeRecord;
use holdfast_types::{Errno, Result, SetTime};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Pages of the largest body.
const BODY_PAGES: u64 = 64;
/// Pages that are completed with older bytes at once.
const FILL: usize = 64;

/// Changes of a file on their way, and what they were made over.
pub(super) struct Flight {
    pub(super) file: Arc<File>,
    pub(super) waiting: Arc<Waiting>,
    /// The record as callers saw it when the flight began.
    pub(super) record: InodeRecord,
    pub(super) base: Base,
}

/// What is to be sent. Pages that go into packs are not among the edit yet.
pub(super) struct Plan {
    edit: Edit,
    /// Runs of pages that go into packs: the first page, and how many.
    pub(super) runs: Vec<(u64, u64)>,
    /// The bytes of pages that were not written whole.
    filled: BTreeMap<u64, Box<Bytes>>,
    /// Does a map depend on older content?
    depends: bool,
}

impl Plan {
    fn of(edit: Edit) -> Self {
        Self {
            edit,
            runs: Vec::new(),
            filled: BTreeMap::new(),
            depends: false,
        }
    }

    /// Adds the bytes of a page that goes into a pack.
    pub(super) fn page(&self, layer: &Layer, page: u64, out: &mut Vec<u8>) {
        let filled = self.filled.get(&page).map(|bytes| &**bytes);
        let bytes = filled.or_else(|| layer.page(page).map(super::page::Page::bytes));
        out.extend_from_slice(bytes.unwrap_or(&[0; LEN]));
    }

    /// Pages are in a pack now.
    pub(super) fn place(&mut self, extent: Extent, object: (u64, u64)) {
        let (extents, all) = match &mut self.edit {
            Edit::Map { add, objects, .. } => (add, objects),
            Edit::Replace {
                content: Content::Extents(extents),
                objects,
            } => (extents, objects),
            _ => return,
        };
        extents.push(extent);
        if !all.contains(&object) {
            all.push(object);
        }
    }
}

impl Plan {
    /// The edit, with all pages in their places, and whether it depends on older bytes.
    pub(super) fn into_edit(mut self) -> (Edit, bool) {
        if let Edit::Replace {
            content: Content::Extents(extents),
            ..
        } = &mut self.edit
        {
            extents.sort_unstable_by_key(|extent| extent.offset);
        }
        let depends = self.depends || matches!(self.edit, Edit::Replace { .. });
        (self.edit, depends)
    }
}

impl Flight {
    /// The request. `depends`: only if the content below is the one that is known.
    pub(super) fn request(&self, edit: Edit, depends: bool) -> Flush {
        let (record, waiting) = (&self.record, &self.waiting);
        let size = match (waiting.exact, waiting.reach) {
            (true, _) => Some(Size::Exactly(record.size)),
            (false, 0) => None,
            (false, reach) => Some(Size::AtLeast(reach)),
        };
        let mut change = waiting.change.clone();
        if record.mtime != record.ctime {
            change.mtime = Some(SetTime::At(record.mtime));
        }
        Flush {
            ino: record.ino,
            generation: if depends { self.base.generation } else { 0 },
            edit,
            size,
            changed: Some(record.ctime),
            change,
        }
    }

    /// The content after an edit was made of the content that the flight knows.
    pub(super) fn content_after(&self, edit: &Edit) -> Option<Content> {
        let known = || self.base.content.as_deref();
        match edit {
            Edit::Replace { content, .. } => Some(content.clone()),
            Edit::Map {
                cut, clear, add, ..
            } => {
                let old: &[Extent] = match (cut, known()) {
                    (Some(0), _) => &[],
                    (_, Some(Content::Extents(extents))) => extents,
                    _ => return None,
                };
                Some(Content::Extents(map::mapped(old, *cut, clear, add)))
            }
            Edit::None => match (self.waiting.layer.cut(), known()?) {
                (None, content) => Some(content.clone()),
                (Some(cut), content) => Some(map::truncated(content, cut)),
            },
        }
    }

    fn view(&self) -> Option<View<'_>> {
        let layers = [Some(&self.waiting.layer), None];
        Some(View {
            layers,
            base: self.base.below(layers)?,
        })
    }

    /// The content below, where it is known or does not matter.
    fn below(&self) -> Option<&Content> {
        match self.view()?.base {
            Below::Content(content) => Some(content),
            Below::Dense(_) => None,
        }
    }
}

impl Files {
    /// Loads the content that a flight is made over.
    pub(super) fn renew(&self, flight: &mut Flight) -> Result<()> {
        let (generation, content) = self.meta.content(flight.record.ino)?;
        flight.base.generation = generation;
        flight.base.content = Some(Arc::new(map::checked(content)?));
        Ok(())
    }

    /// Makes a plan. Loads what it needs of the content below.
    ///
    /// # Errors
    /// `ENOENT`: the content below has changed, and an object has gone. Those of loading.
    pub(super) fn plan(&self, flight: &mut Flight) -> Result<Plan> {
        let layer = &flight.waiting.layer;
        let is_cut = flight.waiting.exact && layer.cut() == Some(flight.record.size);
        if layer.is_empty() || layer.is_bare() && is_cut {
            return Ok(Plan::of(Edit::None));
        }
        if flight.view().is_none() {
            self.renew(flight)?;
        }
        let end = flight.view().map_or(0, |view| view.end());
        let is_body = end <= (self.body_limit / PAGE).min(BODY_PAGES);
        let layer = &flight.waiting.layer;
        let partial = layer.pages().any(|(_, page)| !page.is_whole());
        let space = layer.runs().any(|(_, _, kind)| kind == Kind::Space);
        if flight.below().is_none() && (is_body || partial || space) {
            self.renew(flight)?;
        }
        match is_body {
            true => self.plan_body(flight, end),
            false => self.plan_extents(flight),
        }
    }

    /// The whole file as a body of this many pages.
    fn plan_body(&self, flight: &Flight, end: u64) -> Result<Plan> {
        let (layer, below) = (&flight.waiting.layer, flight.below().ok_or(Errno::EIO)?);
        let view = flight.view().ok_or(Errno::EIO)?;
        let mut bytes = vec![0; (end * PAGE) as usize];
        let open = (0..end).filter(|page| layer.needs_below(*page));
        let open: Vec<_> = open.map(|page| page * PAGE..(page + 1) * PAGE).collect();
        self.read_base(below, &open, 0, &mut bytes)?;
        layer.lay_over(0, &mut bytes);
        let pages = view.runs(0, end).flat_map(|(from, to)| from..to);
        let pages = pages.fold(0_u64, |mask, page| mask | 1 << page);
        // The file ends in the last page, unless space behind the end was allocated.
        let old = flight.base.record.as_ref().map_or(0, |record| record.size);
        let size = match flight.waiting.exact {
            true => flight.record.size,
            false => flight.record.size.max(old),
        };
        let old_end = match below {
            Content::Body { bytes, .. } => bytes.len() as u64,
            Content::Extents(extents) => extents.last().map_or(0, map::end),
        };
        let keeps = size.max(old_end.min(layer.cut().unwrap_or(u64::MAX)));
        if keeps > (end * PAGE).saturating_sub(PAGE) {
            bytes.truncate(usize::try_from(keeps).unwrap_or(usize::MAX));
        }
        Ok(Plan::of(Edit::Replace {
            content: Content::Body {
                bytes: bytes.into(),
                pages: Pages(pages),
            },
            objects: Vec::new(),
        }))
    }

    /// A file with extents.
    fn plan_extents(&self, flight: &Flight) -> Result<Plan> {
        let layer = &flight.waiting.layer;
        let known = flight.base.content.as_deref();
        let was_body = known.filter(|it| matches!(it, Content::Body { .. }));
        let mut stored: BTreeSet<u64> = layer.pages().map(|(page, _)| page).collect();
        let (mut clear, mut add) = (Vec::new(), Vec::new());
        let zeros = |from: u64, to: u64| Extent {
            offset: from * PAGE,
            len: len_of(from, to - from),
            object: 0,
            object_offset: 0,
        };
        let below = View {
            layers: [None, None],
            base: Below::Content(flight.below().unwrap_or(&EMPTY)),
        };
        for (from, to, kind) in layer.runs() {
            match kind {
                Kind::Hole => clear.push((from * PAGE, (to - from) * PAGE)),
                Kind::Zeros => add.push(zeros(from, to)),
                Kind::Space => {
                    let gone = layer.cut().map_or(u64::MAX, |cut| cut.div_ceil(PAGE));
                    let mut at = from;
                    while at < to {
                        let (space, end) = below.space_at(at);
                        let end = if at < gone { end.min(gone).min(to) } else { to };
                        if !space || at >= gone {
                            add.push(zeros(at, end));
                        }
                        at = end;
                    }
                }
            }
        }
        if let Some(body) = was_body {
            let gone = layer.cut().map_or(u64::MAX, |cut| cut.div_ceil(PAGE));
            let old = (0..BODY_PAGES.min(gone)).filter(|page| map::space_at(body, *page).0);
            let stays =
                |page: &u64| matches!(layer.says(*page).0, Says::Below | Says::Run(Kind::Space));
            stored.extend(old.filter(stays));
        }
        let edit = match was_body {
            Some(_) => Edit::Replace {
                content: Content::Extents(add),
                objects: Vec::new(),
            },
            None => Edit::Map {
                cut: layer.cut(),
                clear,
                add,
                objects: Vec::new(),
            },
        };
        let filled = self.filled(flight, &stored)?;
        let keeps = |(_, _, kind)| kind == Kind::Space;
        Ok(Plan {
            edit,
            depends: !filled.is_empty() || layer.runs().any(keeps),
            filled,
            runs: runs(&stored),
        })
    }

    /// The bytes of pages that were not written whole.
    fn filled(&self, flight: &Flight, stored: &BTreeSet<u64>) -> Result<BTreeMap<u64, Box<Bytes>>> {
        let layer = &flight.waiting.layer;
        let open: Vec<u64> = stored
            .iter()
            .copied()
            .filter(|page| layer.needs_below(*page))
            .collect();
        let mut filled = BTreeMap::new();
        if open.is_empty() {
            return Ok(filled);
        }
        let below = flight.below().ok_or(Errno::EIO)?;
        let range = |page: u64| page * PAGE..(page + 1) * PAGE;
        let ranges: Vec<_> = open.iter().map(|page| range(*page)).collect();
        for some in ranges.chunks(FILL) {
            let found = self.load_blocks(below, some)?;
            for range in some {
                let mut bytes = Box::new([0; LEN]);
                copy_base(
                    &found,
                    below,
                    std::slice::from_ref(range),
                    range.start,
                    &mut *bytes,
                )?;
                layer.lay_over(range.start, &mut *bytes);
                filled.insert(range.start / PAGE, bytes);
            }
        }
        Ok(filled)
    }
}

/// Pages as runs: the first page, and how many.
fn runs(pages: &BTreeSet<u64>) -> Vec<(u64, u64)> {
    let mut runs = Vec::<(u64, u64)>::new();
    for &page in pages {
        match runs.last_mut() {
            Some(last) if last.0 + last.1 == page => last.1 += 1,
            _ => runs.push((page, 1)),
        }
    }
    runs
}
