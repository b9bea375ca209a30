//! The tree under reads: it grows, shrinks and is shifted.

use super::{File, PAIR, beside, frame, model};

/// The result of `read_all`, for `model`.
fn list<const N: usize>(read: Option<[u8; N]>) -> Option<Vec<u8>> {
    read.map(|read| read.to_vec())
}

#[test]
fn a_read_of_two_pages_sees_no_later_write_without_the_earlier() {
    model(PAIR, b"a", &[b"aa", b"ab", b"bb"], |file| {
        file.change(2, |pages| pages.put(1, frame(b"a")));
        beside(
            file,
            |file| {
                file.change(2, |pages| pages.put(1, frame(b"b")));
                file.change(2, |pages| pages.put(0, frame(b"b")));
            },
            |file| list(file.read_all([0, 1])),
        )
    });
}

#[test]
fn a_read_of_two_pages_sees_a_write_of_both_whole_or_not() {
    model(PAIR, b"a", &[b"aa", b"bb"], |file| {
        file.change(2, |pages| pages.put(1, frame(b"a")));
        beside(
            file,
            |file| {
                file.change(2, |pages| {
                    pages.begin();
                    pages.put(0, frame(b"b"));
                    pages.put(1, frame(b"b"));
                });
            },
            |file| list(file.read_all([0, 1])),
        )
    });
}

#[test]
fn a_read_beside_a_growing_tree_misses_nothing_old() {
    model(PAIR, b"a", &[b"a\0\0", b"ab\0", b"abc"], |file| {
        beside(
            file,
            |file| {
                file.change(1, |pages| pages.put(1, frame(b"b")));
                file.change(1, |pages| pages.put(9, frame(b"c")));
            },
            |file| list(file.read_all([0, 1, 9])),
        )
    });
}

#[test]
fn a_read_beside_a_shrinking_tree_sees_one_state() {
    model(PAIR, b"a", &[b"abc", b"a\0\0"], |file| {
        file.change(1, |pages| {
            pages.put(1, frame(b"b"));
            pages.put(9, frame(b"c"));
        });
        beside(
            file,
            |file| {
                file.change(1, |pages| {
                    pages.remove(1..100);
                    pages.normalise();
                });
            },
            |file| list(file.read_all([0, 1, 9])),
        )
    });
}

#[test]
fn a_read_beside_a_collapse_sees_the_pages_in_one_order() {
    model(PAIR, b"a", &[b"abc\0", b"bc\0\0"], |file| {
        file.change(3, |pages| {
            pages.put(1, frame(b"b"));
            pages.put(2, frame(b"c"));
        });
        beside(
            file,
            |file| {
                file.change(2, |pages| {
                    pages.remove(0..1);
                    pages.shift(1, -1);
                });
            },
            |file| list(file.read_all([0, 1, 2, 3])),
        )
    });
}

#[test]
fn a_side_part_moves_beside_reads() {
    model(PAIR, b"a", &[b"a\0", b"ab"], |file| {
        file.change(1, |pages| {
            pages.with_side(|side| side.insert(3), |side| side.len() as u64);
        });
        let writer = |file: &File| {
            file.change(1, |pages| {
                pages.put(9, frame(b"b"));
                assert!(pages.side().is_some_and(|side| side.contains(&3)));
                pages.check_tree();
            });
        };
        beside(file, writer, |file| {
            let guard = super::epoch::pin();
            assert_eq!(file.pages.totals(&guard).note, 1);
            drop(guard);
            list(file.read_all([0, 9]))
        })
    });
}

/// Models `seek` beside a tree that grows, then beside one that shrinks.
fn model_seek(
    growing: &[&[u8]],
    shrinking: &[&[u8]],
    seek: impl Fn(&File) -> Option<Vec<u8>> + Copy + Send + Sync + 'static,
) {
    model(PAIR, b"a", growing, move |file| {
        beside(
            file,
            |file| {
                file.change(1, |pages| pages.put(1, frame(b"b")));
                file.change(1, |pages| pages.put(9, frame(b"c")));
            },
            seek,
        )
    });
    model(PAIR, b"a", shrinking, move |file| {
        file.change(1, |pages| {
            pages.put(1, frame(b"b"));
            pages.put(9, frame(b"c"));
        });
        beside(
            file,
            |file| {
                file.change(1, |pages| {
                    pages.remove(1..100);
                    pages.normalise();
                });
            },
            seek,
        )
    });
}

#[test]
fn a_seek_of_a_gap_finds_one_of_some_state() {
    model_seek(&[&[1], &[2]], &[&[1], &[2]], File::gap);
}

#[test]
fn a_seek_of_data_finds_some_of_some_state() {
    model_seek(&[&[0], &[1]], &[&[0], &[1]], File::data);
}
