//! Sequences that failed once, in their shortest form: unlike seeds they survive a change of the
//! strategies.

use super::ops::{Op, PAGE};
use super::run;
use super::space::Room;

fn write(len: usize, offset: u64) -> Op {
    let data = vec![7; len];
    Op::Write { offset, data }
}

fn on_one_file(room: Room, ops: impl IntoIterator<Item = Op>) {
    let ops: Vec<_> = ops.into_iter().map(|op| (0, op)).collect();
    run(room, &ops);
}

#[test]
fn a_copy_within_begins_in_the_unframed_page_where_its_source_ends() {
    let copy = Op::CopyWithin {
        to: 18847,
        from: 8192,
        len: 9825,
    };
    on_one_file(
        Room::unlimited(),
        [write(1, 61 * PAGE), write(8193, 0), copy],
    );
}

#[test]
fn shifting_up_by_65_pages_and_down_by_64_keeps_every_page() {
    let (offset, len) = (PAGE, 65 * PAGE);
    let back = Op::Collapse {
        offset,
        len: 64 * PAGE,
    };
    on_one_file(
        Room::limited(8),
        [write(8192, 1), Op::Insert { offset, len }, back],
    );
}

#[test]
fn a_hole_copied_to_the_largest_offset_is_as_long_as_the_file_allows() {
    let source = Op::Allocate {
        offset: 61 * PAGE,
        len: 1,
        extend: true,
    };
    let copy = Op::CopyAcross {
        to: (1 << 63) - 8 * PAGE,
        from: 0,
        len: 60 * PAGE,
    };
    run(Room::unlimited(), &[(1, source), (0, copy)]);
}
