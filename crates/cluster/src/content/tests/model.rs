//! A file as POSIX defines it.

use super::super::page::{LEN, PAGE, pieces};
use std::collections::BTreeMap;

/// Pages by number; what is absent is a hole.
#[derive(Clone, Default)]
pub(super) struct Model {
    pub(super) size: u64,
    pages: BTreeMap<u64, Vec<u8>>,
}

impl Model {
    pub(super) fn write(&mut self, offset: u64, data: &[u8]) {
        let mut rest = data;
        for (page, start, count) in pieces(offset, data.len() as u64) {
            let (now, later) = rest.split_at(count);
            self.page(page)[start..start + count].copy_from_slice(now);
            rest = later;
        }
        self.size = self.size.max(offset + data.len() as u64);
    }

    fn page(&mut self, page: u64) -> &mut Vec<u8> {
        self.pages.entry(page).or_insert_with(|| vec![0; LEN])
    }

    pub(super) fn read(&self, offset: u64, len: usize) -> Vec<u8> {
        let parts = pieces(offset, len as u64).flat_map(|(page, start, count)| {
            let bytes = self.pages.get(&page);
            bytes.map_or_else(|| vec![0; count], |it| it[start..start + count].to_vec())
        });
        parts.collect()
    }

    pub(super) fn resize(&mut self, size: u64) {
        if size > self.size {
            // Space behind the end stays.
            self.size = size;
            return;
        }
        drop(self.pages.split_off(&size.div_ceil(PAGE)));
        if let Some(last) = self.pages.get_mut(&(size / PAGE)) {
            last[(size % PAGE) as usize..].fill(0);
        }
        self.size = size;
    }

    pub(super) fn punch(&mut self, offset: u64, len: u64) {
        for (page, start, count) in pieces(offset, len) {
            if count == LEN {
                self.pages.remove(&page);
            } else if let Some(bytes) = self.pages.get_mut(&page) {
                bytes[start..start + count].fill(0);
            }
        }
    }

    pub(super) fn zero(&mut self, offset: u64, len: u64) {
        for (page, start, count) in pieces(offset, len) {
            self.page(page)[start..start + count].fill(0);
        }
    }

    pub(super) fn allocate(&mut self, offset: u64, len: u64) {
        for (page, _, _) in pieces(offset, len) {
            self.page(page);
        }
    }

    pub(super) fn collapse(&mut self, page: u64, count: u64) {
        let mut above = self.pages.split_off(&page).split_off(&(page + count));
        let moved = std::mem::take(&mut above).into_iter();
        self.pages
            .extend(moved.map(|(at, bytes)| (at - count, bytes)));
        self.size -= count * PAGE;
    }

    pub(super) fn insert(&mut self, page: u64, count: u64) {
        let moved = self.pages.split_off(&page).into_iter();
        self.pages
            .extend(moved.map(|(at, bytes)| (at + count, bytes)));
        self.size += count * PAGE;
    }

    pub(super) fn count(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Runs of pages with space, in bytes.
    pub(super) fn runs(&self) -> Vec<(u64, u64)> {
        let mut runs = Vec::<(u64, u64)>::new();
        for page in self.pages.keys() {
            match runs.last_mut() {
                Some(last) if last.1 == page * PAGE => last.1 += PAGE,
                _ => runs.push((page * PAGE, (page + 1) * PAGE)),
            }
        }
        runs
    }
}
