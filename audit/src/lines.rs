//! Which cache lines two recordings have in common, and which instructions accessed them.

use std::collections::{HashMap, HashSet};
use std::io;

use crate::step::{Access, Decoder, LINE_BYTES, Tape};

/// Calls kept of a sighting.
const CALLS: usize = 12;
/// Sightings kept of one side at one line, of writes and of reads.
const SIGHTINGS: usize = 8;

/// What one side did to a line: a bit for each byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Use {
    touched: u64,
    written: u64,
}

/// A line written by one side and touched by the other.
pub(crate) struct Conflict {
    /// The address of its first byte.
    pub(crate) address: u64,
    /// Does one side touch a byte that the other writes? Else they are neighbours only.
    pub(crate) same_bytes: bool,
    /// The accesses of each side.
    pub(crate) sides: [Vec<Sighting>; 2],
}

/// An access to a line of a conflict.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sighting {
    /// The instruction, and the addresses it would return to, innermost first.
    pub(crate) calls: Vec<u64>,
    pub(crate) write: bool,
    pub(crate) allocating: bool,
    /// The first and last byte, counted from the start of the line.
    pub(crate) bytes: (u8, u8),
}

/// What a comparison found.
pub(crate) struct Comparison {
    pub(crate) conflicts: Vec<Conflict>,
    /// System calls of each side.
    pub(crate) system_calls: [u64; 2],
}

/// Compares what two threads did.
///
/// # Errors
/// When an instruction cannot be decoded.
pub(crate) fn compare(decoder: &mut Decoder, tapes: [&Tape; 2]) -> io::Result<Comparison> {
    let mut uses = [HashMap::new(), HashMap::new()];
    let mut system_calls = [0; 2];
    for side in 0..2 {
        system_calls[side] = decoder.walk(tapes[side], |_, access, _| {
            note(&mut uses[side], access);
        })?;
    }
    let mut conflicts: Vec<Conflict> = clashes(&uses)
        .map(|(line, same_bytes)| Conflict {
            address: line * LINE_BYTES,
            same_bytes,
            sides: [Vec::new(), Vec::new()],
        })
        .collect();
    conflicts.sort_by_key(|conflict| conflict.address);
    if !conflicts.is_empty() {
        for (side, tape) in tapes.into_iter().enumerate() {
            revalidate(decoder, tape, side, &mut conflicts)?;
        }
    }
    Ok(Comparison {
        conflicts,
        system_calls,
    })
}

fn note(uses: &mut HashMap<u64, Use>, access: Access) {
    for line in access.lines() {
        let (first, last) = within(access, line);
        let bytes = (u64::MAX >> (63 - (last - first))) << first;
        let seen = uses.entry(line).or_default();
        seen.touched |= bytes;
        if access.write {
            seen.written |= bytes;
        }
    }
}

/// The bytes of a line that an access covers: the first and the last.
fn within(access: Access, line: u64) -> (u8, u8) {
    let start = line * LINE_BYTES;
    let first = access.address.saturating_sub(start);
    let last = (access.address + access.size - 1 - start).min(LINE_BYTES - 1);
    (first as u8, last as u8)
}

/// The lines that conflict, and whether in the same bytes.
fn clashes(uses: &[HashMap<u64, Use>; 2]) -> impl Iterator<Item = (u64, bool)> {
    uses[0].iter().filter_map(|(&line, a)| {
        let b = uses[1].get(&line)?;
        let conflict = a.written != 0 || b.written != 0;
        let same_bytes = a.written & b.touched != 0 || b.written & a.touched != 0;
        conflict.then_some((line, same_bytes))
    })
}

fn revalidate(
    decoder: &mut Decoder,
    tape: &Tape,
    side: usize,
    conflicts: &mut [Conflict],
) -> io::Result<()> {
    let mut seen = HashSet::new();
    decoder.walk(tape, |step, access, calls| {
        for line in access.lines() {
            let found =
                conflicts.binary_search_by_key(&(line * LINE_BYTES), |conflict| conflict.address);
            let Ok(index) = found else { continue };
            let sightings = &mut conflicts[index].sides[side];
            let alike = sightings.iter().filter(|seen| seen.write == access.write);
            if alike.count() == SIGHTINGS || !seen.insert((index, step.ip(), access.write)) {
                continue;
            }
            let outer = calls.iter().rev().take(CALLS).copied();
            sightings.push(Sighting {
                calls: std::iter::once(step.ip()).chain(outer).collect(),
                write: access.write,
                allocating: access.allocating,
                bytes: within(access, line),
            });
        }
    })?;
    Ok(())
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::step::Recorder;
    use std::hint::black_box;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    #[repr(align(64))]
    #[derive(Default)]
    struct Line([AtomicU64; 8]);

    /// The conflicts at `line` of two pieces of code, one after the other.
    fn conflicts(line: &Line, a: impl FnOnce(), b: impl FnOnce()) -> Vec<Conflict> {
        let recorder = Recorder::new().expect("this processor can be asked to trap");
        let mut tapes = [Tape::new(1 << 16), Tape::new(1 << 16)];
        recorder.record(&mut tapes[0], a);
        recorder.record(&mut tapes[1], b);
        let mut decoder = Decoder::new().expect("own memory can be read");
        let found = compare(&mut decoder, [&tapes[0], &tapes[1]]).expect("all is decoded");
        let place = std::ptr::from_ref(line) as u64;
        let here = |conflict: &Conflict| conflict.address == place;
        found.conflicts.into_iter().filter(here).collect()
    }

    #[test]
    fn two_readers_do_not_conflict() {
        let line = Line::default();
        let read = || {
            black_box(&line).0[0].load(Relaxed);
        };
        assert!(conflicts(&line, read, read).is_empty());
    }

    #[test]
    fn a_reader_and_a_writer_of_one_word_conflict_in_the_same_bytes() {
        let line = Line::default();
        let read = || {
            black_box(&line).0[3].load(Relaxed);
        };
        let write = || black_box(&line).0[3].store(1, Relaxed);
        for found in [conflicts(&line, read, write), conflicts(&line, write, read)] {
            assert_eq!(found.len(), 1);
            assert!(found[0].same_bytes);
            assert!(found[0].sides.iter().all(|side| side.len() == 1));
            assert_eq!(found[0].sides[0][0].bytes, (24, 31));
        }
    }

    #[test]
    fn writers_of_neighbours_conflict_in_different_bytes() {
        let line = Line::default();
        let found = conflicts(
            &line,
            || black_box(&line).0[0].store(1, Relaxed),
            || black_box(&line).0[7].store(1, Relaxed),
        );
        assert_eq!(found.len(), 1);
        assert!(!found[0].same_bytes);
    }

    #[test]
    fn an_access_of_a_whole_line_covers_all_its_bytes() {
        let mut uses = HashMap::new();
        let access = Access {
            address: 64 * 5 + 60,
            size: 68,
            write: true,
            allocating: false,
        };
        note(&mut uses, access);
        assert_eq!(uses[&5].written, 0xf << 60);
        assert_eq!(uses[&6].written, u64::MAX);
        assert_eq!(uses.len(), 2);
    }
}
