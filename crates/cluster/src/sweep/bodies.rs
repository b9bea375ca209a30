//! Bodies that waited in the database long enough move into packs.

use crate::content::pack::{MOST, Pack, Part, distribute};
use crate::content::page::PAGE;
use crate::meta::{Answer, Change, Content, Edit, Extent, Flush, Meta, Pages, Request, Staged};
use crate::numbers::Numbers;
use crate::objects::Objects;
use holdfast_types::{Errno, Result};
use std::collections::BTreeSet;

/// Bodies that are moved at once: at most 16 MiB, and usually up to 4.
const BODIES: usize = 64;

/// Moves all bodies that are due. A body that is changed meanwhile stays.
///
/// # Errors
/// Those of the database and of the objects.
pub(super) fn move_all(meta: &dyn Meta, objects: &dyn Objects, numbers: &Numbers) -> Result<()> {
    loop {
        let staged = meta.staged(BODIES)?;
        if staged.is_empty() || move_some(meta, objects, numbers, &staged)? == 0 {
            return Ok(());
        }
    }
}

/// Moves bodies; returns the number of those that were moved.
fn move_some(
    meta: &dyn Meta,
    objects: &dyn Objects,
    numbers: &Numbers,
    staged: &[Staged],
) -> Result<usize> {
    let mut maps: Vec<Moved> = staged.iter().map(|_| Moved::default()).collect();
    let mut unmapped = BTreeSet::new();
    for pack in distribute(runs(staged), MOST) {
        let object = numbers.object()?;
        let bytes = pack.bytes(|part, page, out| out.extend(bytes_of(&staged[part.file], page)));
        objects.put(object, bytes)?;
        unmapped.insert(object);
        place(&pack, object, &mut maps);
    }
    let mut moved = 0;
    let mut result = Ok(());
    for (body, map) in staged.iter().zip(maps) {
        let used: Vec<u64> = map.objects.iter().map(|(object, _)| *object).collect();
        let answer = meta.perform(Request::Flush(map.request(body)));
        match answer {
            Ok(Answer::Done { .. }) => moved += 1,
            // It was changed, or the file was freed.
            Ok(Answer::Refused) | Err(Errno::ESTALE) => continue,
            // It may be mapped.
            Err(error) => result = Err(error),
        }
        used.iter().for_each(|object| {
            unmapped.remove(object);
        });
        if result.is_err() {
            break;
        }
    }
    if result.is_ok() && !unmapped.is_empty() {
        let unmapped: Vec<u64> = unmapped.into_iter().collect();
        objects.delete(&unmapped)?;
    }
    result.map(|()| moved)
}

/// Where the bytes of a body are now.
#[derive(Default)]
struct Moved {
    extents: Vec<Extent>,
    /// Objects with their lengths.
    objects: Vec<(u64, u64)>,
}

impl Moved {
    fn request(self, body: &Staged) -> Flush {
        Flush {
            ino: body.ino,
            generation: body.generation,
            edit: Edit::Replace {
                content: Content::Extents(self.extents),
                objects: self.objects,
            },
            size: None,
            changed: None,
            change: Change::default(),
        }
    }
}

/// The runs of pages that bodies take.
fn runs(staged: &[Staged]) -> impl Iterator<Item = Part> {
    staged.iter().enumerate().flat_map(|(file, body)| {
        let Pages(pages) = match &body.content {
            Content::Body { pages, .. } => *pages,
            Content::Extents(_) => Pages(0),
        };
        let is_taken = move |page: &u64| pages >> page & 1 == 1;
        let starts =
            (0..64).filter(move |page| is_taken(page) && (*page == 0 || !is_taken(&(page - 1))));
        starts.map(move |first| Part {
            file,
            ino: body.ino,
            first,
            pages: u64::from((pages >> first).trailing_ones()),
        })
    })
}

/// A page of a body, with zeros behind its end.
fn bytes_of(body: &Staged, page: u64) -> Vec<u8> {
    let mut whole = vec![0; PAGE as usize];
    if let Content::Body { bytes, .. } = &body.content {
        let start = ((page * PAGE) as usize).min(bytes.len());
        let end = (start + whole.len()).min(bytes.len());
        whole[..end - start].copy_from_slice(&bytes[start..end]);
    }
    whole
}

/// The parts of a pack are in an object.
fn place(pack: &Pack, object: u64, maps: &mut [Moved]) {
    let mut object_offset = 0;
    for part in &pack.parts {
        let len = part.pages * PAGE;
        let map = &mut maps[part.file];
        map.extents.push(Extent {
            offset: part.first * PAGE,
            len,
            object,
            object_offset,
        });
        if map.objects.last().is_none_or(|(last, _)| *last != object) {
            map.objects.push((object, pack.len()));
        }
        object_offset += len;
    }
}
