use super::*;
use crate::{Account, CacheStats, MAX_SIZE, PAGE_SIZE, Piece, SpacePool};
use holdfast_types::Errno;
use std::io::IoSliceMut;

const PAGE: u64 = PAGE_SIZE as u64;

/// An account for each test; when it ends, everything must have been given back.
struct Bank {
    pool: SpacePool,
    stats: CacheStats,
}

impl Bank {
    fn new() -> Self {
        Self::with_pages(None)
    }

    fn with_pages(limit: impl Into<Option<u64>>) -> Self {
        Self {
            pool: SpacePool::new(limit.into()),
            stats: CacheStats::new(),
        }
    }

    fn account(&self) -> Account<'_> {
        Account {
            space: &self.pool,
            stats: &self.stats,
        }
    }

    /// Ends a file. Garbage must not wait for another thread, for the sake of leak detectors.
    fn close(&self, mut pages: PagesLock<'_>) {
        assert_eq!(self.pool.used(), pages.pages());
        assert_eq!(
            (self.stats.pages(), self.stats.bytes()),
            (pages.frames(), pages.bytes())
        );
        pages.clear(self.account());
        assert_eq!(
            (self.pool.used(), self.stats.pages(), self.stats.bytes()),
            (0, 0, 0)
        );
        drop(pages);
        epoch::synchronize();
    }
}

fn content(pages: &PagesLock<'_>, offset: u64, len: usize) -> Vec<u8> {
    let mut buf = vec![0xEE; len];
    assert_eq!(pages.read(offset, &mut buf, MAX_SIZE), len);
    buf
}

#[test]
fn an_empty_file_has_no_heap_and_a_small_one_a_single_small_frame() {
    assert_eq!(size_of::<Pages>(), 16);
    let bank = Bank::new();
    let file = Pages::new();
    let mut pages = file.lock();
    assert_eq!(pages.bytes(), 0);
    for (len, bytes) in [(1, 64), (64, 64), (65, 128), (1000, 1024), (4096, 4096)] {
        assert_eq!(pages.write(0, &vec![b'x'; len], bank.account()), Ok(len));
        assert_eq!((pages.bytes(), pages.pages()), (bytes, 1));
    }
    pages.truncate(100, bank.account());
    assert_eq!(pages.bytes(), 128);
    assert_eq!(content(&pages, 98, 4), *b"xx\0\0");
    bank.close(pages);
}

#[test]
fn a_file_cut_back_to_its_first_page_costs_a_frame_again() {
    let bank = Bank::new();
    let file = Pages::new();
    let mut pages = file.lock();
    pages.write(0, &vec![7; 1 << 20], bank.account()).unwrap();
    assert_eq!(pages.pages(), 256);
    pages.truncate(10, bank.account());
    assert_eq!((pages.bytes(), pages.pages()), (64, 1));
    pages.write(100 * PAGE, b"far", bank.account()).unwrap();
    assert_eq!(content(&pages, 8, 4), [7, 7, 0, 0]);
    pages.punch(50 * PAGE, 1 << 20, bank.account());
    assert_eq!(pages.bytes(), 64);
    bank.close(pages);
}

#[test]
fn the_last_byte_a_file_can_have_is_writable() {
    let bank = Bank::new();
    let file = Pages::new();
    let mut pages = file.lock();
    assert_eq!(pages.write(MAX_SIZE - 1, b"ab", bank.account()), Ok(1));
    assert_eq!(
        pages.write(MAX_SIZE, b"b", bank.account()),
        Err(Errno::EFBIG)
    );
    assert_eq!(
        pages.write(u64::MAX, b"b", bank.account()),
        Err(Errno::EFBIG)
    );
    assert_eq!(pages.write(u64::MAX, b"", bank.account()), Ok(0));
    let mut buf = [0xEE; 4];
    assert_eq!(pages.read(MAX_SIZE - 2, &mut buf, MAX_SIZE), 2);
    assert_eq!(buf, [0, b'a', 0xEE, 0xEE]);
    assert_eq!(pages.read(MAX_SIZE, &mut buf, MAX_SIZE), 0);
    assert_eq!(pages.seek_data(0, MAX_SIZE), Some(MAX_SIZE / PAGE * PAGE));
    assert_eq!(pages.seek_hole(MAX_SIZE - 1, MAX_SIZE), Some(MAX_SIZE));
    assert_eq!(pages.seek_data(MAX_SIZE, MAX_SIZE), None);
    pages.truncate(MAX_SIZE, bank.account());
    assert_eq!(pages.pages(), 1);
    pages.truncate(MAX_SIZE - 1, bank.account());
    assert_eq!(content(&pages, MAX_SIZE - 1, 1), [0]);
    pages.punch(0, u64::MAX, bank.account());
    assert!(pages.is_empty());
    bank.close(pages);
}

#[test]
fn a_page_far_out_costs_little_more_than_itself() {
    let bank = Bank::new();
    let file = Pages::new();
    let mut pages = file.lock();
    for shift in 13..63 {
        pages.write(1 << shift, b"x", bank.account()).unwrap();
    }
    assert_eq!(pages.pages(), 50);
    assert!(pages.bytes() < 50 * (PAGE + 704), "{}", pages.bytes());
    assert_eq!(
        pages.seek_data((1 << 40) + 1, MAX_SIZE),
        Some((1 << 40) + 1)
    );
    assert_eq!(pages.seek_data((1 << 40) + PAGE, MAX_SIZE), Some(1 << 41));
    assert_eq!(pages.seek_hole(1 << 40, MAX_SIZE), Some((1 << 40) + PAGE));
    pages.truncate(1 << 20, bank.account());
    assert_eq!(pages.pages(), 7);
    bank.close(pages);
}

#[test]
fn allocating_any_length_costs_no_memory_to_speak_of() {
    let bank = Bank::new();
    let file = Pages::new();
    let mut pages = file.lock();
    pages.write(1 << 30, b"data", bank.account()).unwrap();
    pages.allocate(0, MAX_SIZE, bank.account()).unwrap();
    assert_eq!(pages.pages(), 1 << 51);
    assert!(pages.bytes() < 3 * PAGE);
    assert_eq!(pages.seek_data(0, MAX_SIZE), Some(1 << 30));
    assert_eq!(pages.seek_hole(0, MAX_SIZE), Some(0));
    pages.zero(1, MAX_SIZE - 1, bank.account()).unwrap();
    assert_eq!((pages.pages(), pages.frames()), (1 << 51, 0));
    pages.write(1 << 40, &[1; 8192], bank.account()).unwrap();
    assert_eq!((pages.pages(), pages.frames()), (1 << 51, 2));
    pages.collapse(0, 1 << 40, bank.account()).unwrap();
    assert_eq!(content(&pages, 0, 1), [1]);
    pages.insert(0, 1 << 40, bank.account()).unwrap();
    assert_eq!((pages.pages(), pages.frames()), ((1 << 51) - (1 << 28), 2));
    pages.truncate(0, bank.account());
    assert!(pages.is_empty());
    bank.close(pages);
}

#[test]
fn a_page_written_far_from_others_takes_what_was_written_until_it_is_written_on() {
    let bank = Bank::new();
    let file = Pages::new();
    let mut pages = file.lock();
    for page in (0..640).step_by(16) {
        pages
            .write(page * PAGE, &[1; 1024], bank.account())
            .unwrap();
    }
    let nodes = pages.bytes() - 40 * 1024;
    assert!(nodes < 40 * 1024, "{nodes}");
    let write = |pages: &mut PagesLock<'_>, at: u64| {
        let before = pages.bytes();
        pages.write(at, &[2; 1024], bank.account()).unwrap();
        pages.bytes() - before
    };
    assert_eq!(write(&mut pages, 32 * PAGE + 1024), 3072);
    assert_eq!(write(&mut pages, 32 * PAGE + 3072), 0);
    assert_eq!(write(&mut pages, 33 * PAGE), PAGE, "it has a neighbour");
    let mut expected = [1; 1024].to_vec();
    expected.extend([2; 1024]);
    expected.extend([0; 1024]);
    expected.extend([2; 2048]);
    assert!(content(&pages, 32 * PAGE, 5 * 1024) == expected);
    assert!(content(&pages, 48 * PAGE, 1025)[..] == [&[1; 1024][..], &[0]].concat());
    bank.close(pages);
}

#[test]
fn a_page_that_is_kept_does_not_change_with_the_file() {
    let bank = Bank::new();
    let file = Pages::new();
    let mut pages = file.lock();
    pages.write(PAGE, &[1; 2048], bank.account()).unwrap();
    assert!(pages.show(0).is_none(), "a hole");
    let kept = pages.show(1).and_then(Stored::share).expect("large enough");
    pages.write(PAGE + 100, &[2; 4000], bank.account()).unwrap();
    pages.truncate(PAGE + 50, bank.account());
    assert_eq!(kept.to_vec(), [1; 2048]);
    let cut = pages
        .show(1)
        .and_then(Stored::share)
        .expect("of the size it had");
    assert_eq!(cut.to_vec(), [1; 50]);
    pages.write(5 * PAGE, b"little", bank.account()).unwrap();
    assert!(pages.show(5).unwrap().share().is_none(), "better copied");
    bank.close(pages);
    assert_eq!((kept.to_vec().len(), cut.to_vec().len()), (2048, 50));
}

#[test]
fn unaligned_shifts_are_refused() {
    let bank = Bank::new();
    let file = Pages::new();
    let mut pages = file.lock();
    for (offset, len) in [(1, PAGE), (PAGE, 1), (0, PAGE + 512)] {
        assert_eq!(
            pages.collapse(offset, len, bank.account()),
            Err(Errno::EINVAL)
        );
        assert_eq!(
            pages.insert(offset, len, bank.account()),
            Err(Errno::EINVAL)
        );
    }
    assert_eq!(
        pages.insert(1 << 62, 1 << 62, bank.account()),
        Err(Errno::EFBIG)
    );
    assert_eq!(
        pages.collapse(u64::MAX - 4095, PAGE, bank.account()),
        Err(Errno::EFBIG)
    );
}

#[test]
fn pieces_are_data_within_a_page_and_all_zeros_up_to_the_next_frame() {
    let bank = Bank::new();
    let file = Pages::new();
    let mut pages = file.lock();
    pages
        .write(300 * PAGE + 10, &[5; 5000], bank.account())
        .unwrap();
    let pieces: Vec<_> = pages.pieces(299 * PAGE, 303 * PAGE).collect();
    let is_data = |piece: &Piece<'_>| matches!(piece, Piece::Data(_));
    let kinds: Vec<_> = pieces.iter().map(is_data).collect();
    let lens: Vec<_> = pieces.iter().map(Piece::len).collect();
    assert_eq!(kinds, [false, true, true, false]);
    assert_eq!(lens, [PAGE, PAGE, 914, 3 * PAGE - PAGE - 914]);
    assert_eq!(pages.pieces(5, 5).count(), 0);
    assert_eq!(
        pages
            .pieces(0, u64::MAX)
            .map(|piece| piece.len())
            .sum::<u64>(),
        MAX_SIZE
    );
    bank.close(pages);
}

#[test]
#[should_panic(expected = "without giving back 1 pages")]
fn dropping_content_that_is_still_accounted_panics() {
    let bank = Bank::new();
    let file = Pages::new();
    let mut pages = file.lock();
    pages.write(0, b"x", bank.account()).unwrap();
}

#[test]
fn abandoned_content_may_be_dropped() {
    let bank = Bank::new();
    let mut file = Pages::new();
    file.lock().write(0, b"x", bank.account()).unwrap();
    file.abandon();
    assert!(file.is_empty());
    epoch::synchronize();
}

#[test]
fn several_buffers_are_filled_in_turn() {
    let bank = Bank::new();
    let file = Pages::new();
    let data: Vec<u8> = (0..20 * PAGE).map(|at| (at / 7 % 251) as u8).collect();
    file.lock().write(0, &data, bank.account()).unwrap();
    let guard = epoch::pin();
    for (offset, lens, size) in [
        (10, &[5, 0, 4080, 1, 9000][..], 20 * PAGE),
        (4000, &[100_000, 10][..], 20 * PAGE),
        (0, &[10, 10][..], 15),
        (PAGE, &[10][..], 15),
        (MAX_SIZE - 1, &[10, 10][..], MAX_SIZE),
        (u64::MAX, &[10, 10][..], MAX_SIZE),
    ] {
        let mut bufs: Vec<_> = lens.iter().map(|&len| vec![0xEE; len]).collect();
        let mut slices: Vec<_> = bufs.iter_mut().map(|buf| IoSliceMut::new(buf)).collect();
        let read = file.read_vectored_under(&guard, offset, &mut slices, || size, || true);
        let sum: usize = lens.iter().sum();
        let expected = size.saturating_sub(offset).min(sum as u64) as usize;
        assert_eq!(read, Ok(expected));
        let all = bufs.concat();
        let (filled, rest) = all.split_at(expected);
        let there = data.get(offset.min(20 * PAGE) as usize..).unwrap();
        let known = there.len().min(expected);
        assert!(filled[..known] == there[..known]);
        assert!(filled[known..].iter().all(|byte| *byte == 0));
        assert!(rest.iter().all(|byte| *byte == 0xEE));
    }
    drop(guard);
    bank.close(file.lock());
}
