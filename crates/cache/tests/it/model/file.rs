use super::ops::PAGE;
use holdfast_cache::{Contended, MAX_SIZE, Pages, PagesLock};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A file in its simplest form: bytes that are not zero, pages by state, and the size.
#[derive(Clone, Default)]
pub(crate) struct File {
    pub(crate) size: u64,
    bytes: BTreeMap<u64, u8>,
    framed: BTreeSet<u64>,
    unwritten: BTreeSet<u64>,
}

/// `len` bytes at `offset`; a range that reaches the largest size ends with its page.
fn byte_range(offset: u64, len: u64) -> Range<u64> {
    let end = (offset + len).min(MAX_SIZE);
    offset.min(MAX_SIZE)..if end == MAX_SIZE { MAX_SIZE + 1 } else { end }
}

fn touched(bytes: &Range<u64>) -> Range<u64> {
    bytes.start / PAGE..bytes.end.div_ceil(PAGE)
}

fn whole(bytes: &Range<u64>) -> Range<u64> {
    bytes.start.div_ceil(PAGE)..bytes.end / PAGE
}

impl File {
    /// The bytes of `range`.
    pub(crate) fn content(&self, range: Range<u64>) -> Vec<u8> {
        let mut content = vec![0; (range.end - range.start) as usize];
        for (at, byte) in self.bytes.range(range.clone()) {
            content[(at - range.start) as usize] = *byte;
        }
        content
    }

    fn is_held(&self, page: u64) -> bool {
        self.framed.contains(&page) || self.unwritten.contains(&page)
    }

    /// How many of `len` bytes can be written with `free` pages of space.
    pub(crate) fn writable(&self, offset: u64, len: u64, mut free: u64) -> u64 {
        let end = (offset + len).min(MAX_SIZE);
        let mut at = offset;
        while at < end {
            if !self.is_held(at / PAGE) {
                if free == 0 {
                    break;
                }
                free -= 1;
            }
            at = ((at / PAGE + 1) * PAGE).min(end);
        }
        at - offset
    }

    /// Pages that an allocation of the range needs.
    pub(crate) fn missing(&self, offset: u64, len: u64) -> u64 {
        touched(&byte_range(offset, len))
            .filter(|&page| !self.is_held(page))
            .count() as u64
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        let range = offset..offset + data.len() as u64;
        for page in touched(&range) {
            self.unwritten.remove(&page);
            self.framed.insert(page);
        }
        self.set(offset, data);
        self.size = self.size.max(range.end);
    }

    fn set(&mut self, offset: u64, data: &[u8]) {
        self.drop_bytes(offset..offset + data.len() as u64);
        self.bytes.extend(
            (offset..)
                .zip(data.iter().copied())
                .filter(|&(_, byte)| byte != 0),
        );
    }

    fn drop_bytes(&mut self, range: Range<u64>) {
        self.bytes.retain(|offset, _| !range.contains(offset));
    }

    fn drop_pages(&mut self, pages: &Range<u64>) {
        self.framed.retain(|page| !pages.contains(page));
        self.unwritten.retain(|page| !pages.contains(page));
    }

    pub(crate) fn truncate(&mut self, size: u64) {
        self.size = size.min(MAX_SIZE);
        self.drop_bytes(size..u64::MAX);
        self.drop_pages(&(size.div_ceil(PAGE)..u64::MAX));
    }

    pub(crate) fn punch(&mut self, offset: u64, len: u64) {
        let range = byte_range(offset, len);
        self.drop_pages(&whole(&range));
        self.drop_bytes(range);
    }

    pub(crate) fn allocate(&mut self, offset: u64, len: u64, extend: bool) {
        for page in touched(&byte_range(offset, len)) {
            if !self.framed.contains(&page) {
                self.unwritten.insert(page);
            }
        }
        if extend {
            self.size = self.size.max((offset + len).min(MAX_SIZE));
        }
    }

    pub(crate) fn zero(&mut self, offset: u64, len: u64) {
        self.allocate(offset, len, false);
        let range = byte_range(offset, len);
        for page in whole(&range) {
            self.framed.remove(&page);
            self.unwritten.insert(page);
        }
        self.drop_bytes(range);
    }

    /// Moves everything from `from` on to the place that `to` gives, if that is in range.
    fn move_up_or_down(&mut self, from: u64, to: impl Fn(u64) -> u64) {
        let page_to = |page: u64| {
            if page < from / PAGE {
                page
            } else {
                to(page * PAGE) / PAGE
            }
        };
        let fits = |page: &u64| *page <= MAX_SIZE / PAGE;
        self.framed = self
            .framed
            .iter()
            .map(|&page| page_to(page))
            .filter(fits)
            .collect();
        self.unwritten = self
            .unwritten
            .iter()
            .map(|&page| page_to(page))
            .filter(fits)
            .collect();
        let moved = self.bytes.split_off(&from);
        self.bytes
            .extend(moved.into_iter().map(|(at, byte)| (to(at), byte)));
    }

    pub(crate) fn collapse(&mut self, offset: u64, len: u64) {
        self.punch(offset, len);
        self.move_up_or_down(offset + len, |at| at - len);
        self.size -= len;
    }

    pub(crate) fn insert(&mut self, offset: u64, len: u64) {
        self.move_up_or_down(offset, |at| at + len);
        self.size += len;
    }

    /// Copies `len` bytes of `source`. Which pages get a frame is only partly determined, because a
    /// frame's zeros may be copied as data or as a hole. So `framed` gives that; what is determined
    /// is checked.
    pub(crate) fn copy(
        &mut self,
        to: u64,
        source: &Self,
        from: u64,
        len: u64,
        framed: impl Fn(u64) -> bool,
    ) {
        if len == 0 {
            return;
        }
        let range = byte_range(to, len);
        self.set(to, &source.content(from..from + len));
        for page in touched(&range) {
            let start = (page * PAGE).max(to) - to + from;
            let end = ((page + 1) * PAGE).min(to + len) - to + from;
            let covered = whole(&range).contains(&page);
            let hole = !touched(&(start..end)).any(|page| source.framed.contains(&page));
            let zeros = self
                .bytes
                .range(page * PAGE..(page + 1) * PAGE)
                .next()
                .is_none();
            assert!(!(covered && hole && framed(page)), "a hole became a frame");
            assert!(zeros || framed(page), "data without a frame");
            if framed(page) {
                self.unwritten.remove(&page);
                self.framed.insert(page);
            } else {
                self.framed.remove(&page);
                if covered {
                    self.unwritten.remove(&page);
                }
            }
        }
        self.size = self.size.max(to + len);
    }

    /// Compares the page states, by counts and by a walk over data and holes.
    pub(crate) fn check(&self, pages: &PagesLock<'_>) {
        assert_eq!(pages.frames() + pages.unloaded(), self.framed.len() as u64);
        assert_eq!(
            pages.pages(),
            (self.framed.len() + self.unwritten.len()) as u64
        );
        assert_eq!(
            pages.is_empty(),
            self.framed.is_empty() && self.unwritten.is_empty()
        );
        let mut expected = self
            .framed
            .iter()
            .map(|page| page * PAGE)
            .filter(|at| *at < self.size);
        let mut at = 0;
        while let Some(data) = pages.seek_data(at, self.size) {
            let hole = pages.seek_hole(data, self.size).expect("the end is a hole");
            assert!(data < hole && hole <= self.size);
            for page in (data..hole).step_by(PAGE as usize) {
                assert_eq!(Some(page), expected.next());
            }
            assert_eq!(
                pages.seek_data(hole.saturating_sub(1), self.size),
                Some(hole - 1)
            );
            at = hole;
        }
        assert_eq!(expected.next(), None);
        assert_eq!(pages.seek_hole(self.size, self.size), None);
        if at < self.size {
            assert_eq!(pages.seek_hole(at, self.size), Some(at));
        }
    }

    /// Seeks without the lock have the results of those under it.
    pub(crate) fn check_seeks(&self, pages: &Pages) {
        let near = |page: &u64| [page.saturating_sub(1), *page, page + 1].map(|page| page * PAGE);
        let places = self.framed.iter().chain(&self.unwritten).flat_map(near);
        for at in places.chain([0, self.size / 2, self.size]) {
            let (data, hole) = {
                let pages = pages.lock();
                (
                    pages.seek_data(at, self.size),
                    pages.seek_hole(at, self.size),
                )
            };
            let whole = || pages.lock().unloaded() == 0;
            let expected = |found| if whole() { Ok(found) } else { Err(Contended) };
            let size = || self.size;
            assert_eq!(pages.seek_data(at, size, whole), expected(data));
            assert_eq!(pages.seek_hole(at, size, whole), expected(hole));
        }
    }
}
