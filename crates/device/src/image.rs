use std::collections::BTreeMap;
use std::sync::Arc;

/// The unit of sharing in bytes.
const PAGE: usize = 4096;
/// Pages of one region: the pointers that the first write after a copy has to copy.
const PAGES: usize = 64;
const REGION: u64 = (PAGE * PAGES) as u64;

type Page = [u8; PAGE];
type Region = [Option<Arc<Page>>; PAGES];

/// The content of a device in memory: sparse, and cheap to copy.
///
/// A copy shares all pages with its origin, and each side copies a page before it writes to it. So
/// a crash test can keep one image for each point in time and pays for the differences only.
#[derive(Clone, Debug)]
pub struct Image {
    size: u64,
    /// By offset divided by the size of a region; missing ones are zero.
    regions: BTreeMap<u64, Arc<Region>>,
}

/// The part of a range in one page: the page, the bytes in it, and the bytes of the range.
struct Piece {
    region: u64,
    page: usize,
    within: std::ops::Range<usize>,
    of_range: std::ops::Range<usize>,
}

fn pieces(offset: u64, len: usize) -> impl Iterator<Item = Piece> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let start = (at % PAGE as u64) as usize;
        let step = (PAGE - start).min(len - done);
        let piece = Piece {
            region: at / REGION,
            page: (at % REGION) as usize / PAGE,
            within: start..start + step,
            of_range: done..done + step,
        };
        done += step;
        (step > 0).then_some(piece)
    })
}

impl Image {
    /// An image of zeros.
    #[must_use]
    pub const fn new(size: u64) -> Self {
        Self {
            size,
            regions: BTreeMap::new(),
        }
    }

    /// Its size in bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of memory of its pages, including those shared with copies.
    #[must_use]
    pub fn resident(&self) -> u64 {
        let pages = |region: &Arc<Region>| region.iter().flatten().count();
        (self.regions.values().map(pages).sum::<usize>() * PAGE) as u64
    }

    fn page(&self, piece: &Piece) -> Option<&Page> {
        self.regions.get(&piece.region)?[piece.page].as_deref()
    }

    fn page_is_shared(&self, piece: &Piece) -> bool {
        let region = self.regions.get(&piece.region);
        region.is_some_and(|region| {
            let page = region[piece.page].as_ref();
            Arc::strong_count(region) > 1 || page.is_some_and(|page| Arc::strong_count(page) > 1)
        })
    }

    fn fits(&self, offset: u64, len: usize) {
        assert!(
            offset
                .checked_add(len as u64)
                .is_some_and(|end| end <= self.size),
            "{len} bytes at {offset} of an image of {} bytes",
            self.size
        );
    }

    /// Fills `buf` from `offset`.
    ///
    /// # Panics
    /// Past the end.
    pub fn read(&self, offset: u64, buf: &mut [u8]) {
        self.fits(offset, buf.len());
        for piece in pieces(offset, buf.len()) {
            let into = &mut buf[piece.of_range.clone()];
            match self.page(&piece) {
                Some(page) => into.copy_from_slice(&page[piece.within]),
                None => into.fill(0),
            }
        }
    }

    /// Writes `bytes` at `offset`.
    ///
    /// # Panics
    /// Past the end.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.fits(offset, bytes.len());
        for piece in pieces(offset, bytes.len()) {
            let from = &bytes[piece.of_range.clone()];
            // A page that is replaced as a whole need not be copied first.
            if let Ok(whole) = Page::try_from(from)
                && self.page_is_shared(&piece)
            {
                *self.slot(piece.region, piece.page) = Some(Arc::new(whole));
                continue;
            }
            self.page_mut(piece.region, piece.page)[piece.within].copy_from_slice(from);
        }
    }

    /// Makes a range equal to that of another image, and shares its whole pages.
    ///
    /// # Panics
    /// Past the end of either.
    pub fn copy_from(&mut self, other: &Self, offset: u64, len: usize) {
        self.fits(offset, len);
        other.fits(offset, len);
        for piece in pieces(offset, len) {
            let page = other.regions.get(&piece.region);
            let page = page.and_then(|region| region[piece.page].as_ref());
            if piece.within.len() == PAGE {
                if page.is_some() || self.page(&piece).is_some() {
                    *self.slot(piece.region, piece.page) = page.cloned();
                }
            } else {
                let page = page.map_or(&[0; PAGE], |page| &**page);
                let into = self.page_mut(piece.region, piece.page);
                into[piece.within.clone()].copy_from_slice(&page[piece.within]);
            }
        }
    }

    fn slot(&mut self, region: u64, page: usize) -> &mut Option<Arc<Page>> {
        let region = self
            .regions
            .entry(region)
            .or_insert_with(|| Arc::new([const { None }; PAGES]));
        &mut Arc::make_mut(region)[page]
    }

    fn page_mut(&mut self, region: u64, page: usize) -> &mut Page {
        let page = self.slot(region, page);
        Arc::make_mut(page.get_or_insert_with(|| Arc::new([0; PAGE])))
    }

    /// Makes a range zero, and frees the memory of whole pages.
    ///
    /// # Panics
    /// Past the end.
    pub fn clear(&mut self, offset: u64, len: u64) {
        let end = offset.checked_add(len).filter(|&end| end <= self.size);
        let end = end.expect("cleared range lies within the image");
        if offset == end {
            return;
        }
        let touched = offset / REGION..=(end - 1) / REGION;
        let touched: Vec<u64> = self.regions.range(touched).map(|(&at, _)| at).collect();
        for region in touched {
            let whole = region * REGION;
            let (from, until) = (offset.max(whole), end.min(whole.saturating_add(REGION)));
            if until - from == REGION {
                self.regions.remove(&region);
            } else {
                self.clear_in_region(from, (until - from) as usize);
            }
        }
    }

    fn clear_in_region(&mut self, offset: u64, len: usize) {
        for piece in pieces(offset, len) {
            if self.page(&piece).is_none() {
                continue;
            }
            if piece.within.len() == PAGE {
                if let Some(region) = self.regions.get_mut(&piece.region) {
                    Arc::make_mut(region)[piece.page] = None;
                }
            } else {
                self.page_mut(piece.region, piece.page)[piece.within].fill(0);
            }
        }
    }

    /// Grows or shrinks; new bytes are zero.
    pub fn resize(&mut self, size: u64) {
        if size < self.size {
            self.clear(size, self.size - size);
        }
        self.size = size;
    }

    /// The whole content.
    ///
    /// # Panics
    /// If it does not fit into memory.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(self.size).expect("an image fits into memory")];
        self.read(0, &mut bytes);
        bytes
    }
}

/// By content: a missing page equals one of zeros.
impl PartialEq for Image {
    fn eq(&self, other: &Self) -> bool {
        const EMPTY: Region = [const { None }; PAGES];
        let same_page = |a: Option<&Arc<Page>>, b: Option<&Arc<Page>>| match (a, b) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a == b,
            (Some(some), None) | (None, Some(some)) => some.iter().all(|&byte| byte == 0),
            (None, None) => true,
        };
        let same_region = |at: &u64| match (self.regions.get(at), other.regions.get(at)) {
            (Some(a), Some(b)) if Arc::ptr_eq(a, b) => true,
            (a, b) => {
                let (a, b) = (a.map_or(&EMPTY, |it| &**it), b.map_or(&EMPTY, |it| &**it));
                a.iter()
                    .zip(b)
                    .all(|(a, b)| same_page(a.as_ref(), b.as_ref()))
            }
        };
        self.size == other.size
            && self.regions.keys().all(same_region)
            && other.regions.keys().all(same_region)
    }
}

impl Eq for Image {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_copy_shares_until_one_side_writes() {
        let mut image = Image::new(1 << 20);
        image.write(1000, &[7; 10_000]);
        let copy = image.clone();
        image.write(2000, &[9; 3]);
        let mut seen = [0; 5];
        copy.read(1998, &mut seen);
        assert_eq!(seen, [7; 5]);
        image.read(1998, &mut seen);
        assert_eq!(seen, [7, 7, 9, 9, 9]);
        assert_ne!(image, copy);
        image.write(2000, &[7; 3]);
        assert_eq!(image, copy);
    }

    #[test]
    fn an_image_of_petabytes_takes_memory_for_what_is_written() {
        let mut image = Image::new(1 << 60);
        image.write((1 << 60) - 1, &[1]);
        assert_eq!(image.resident(), 4096);
        image.clear((1 << 60) - (1 << 20), 1 << 20);
        assert_eq!(image.resident(), 0);
        assert_eq!(image, Image::new(1 << 60));
    }

    proptest! {
        #[test]
        fn an_image_is_what_a_vector_of_bytes_says(
            steps in proptest::collection::vec(
                (0..6_u8, 0..2_000_000_u64, 0..600_000_u64, any::<u8>()), 1..40),
        ) {
            let mut model = vec![0_u8; 1_000_000];
            let mut image = Image::new(1_000_000);
            let mut kept = (image.clone(), model.clone());
            for (what, at, len, fill) in steps {
                let size = model.len() as u64;
                let at = at.min(size);
                let len = len.min(size - at);
                let range = at as usize..(at + len) as usize;
                match what {
                    0 | 1 => {
                        model[range].fill(fill);
                        image.write(at, &vec![fill; len as usize]);
                    }
                    2 => {
                        model[range].fill(0);
                        image.clear(at, len);
                    }
                    3 => kept = (image.clone(), model.clone()),
                    4 if range.end <= kept.1.len() => {
                        model[range.clone()].copy_from_slice(&kept.1[range]);
                        image.copy_from(&kept.0, at, len as usize);
                    }
                    _ => {
                        let size = at + u64::from(fill);
                        model.resize(size as usize, 0);
                        image.resize(size);
                    }
                }
                prop_assert!(image.to_vec() == model);
            }
            prop_assert!(kept.0.to_vec() == kept.1);
        }
    }
}
