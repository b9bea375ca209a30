//! Maps of sparse members: in GNU headers, and in the three versions with PAX records.

use std::io::{self, Read};
use std::ops::Range;

use tar::GnuSparseHeader;

use super::pax::{Records, number};

/// Runs of data in a file, in their order, without overlaps.
pub(super) type Runs = Vec<Range<u64>>;

/// The message for a damaged map.
pub(super) const DAMAGED: &str = "the map of this sparse file is damaged";
/// Most runs of one file; a larger map is an attack on memory, or damage.
const RUNS_MAX: usize = 1 << 20;
/// Most digits of a number in a map within the data.
const DIGITS_MAX: usize = 20;
const BLOCK: u64 = 512;

/// Adds a run. It must start at or after the end of the last one, and end within the file.
pub(super) fn add(runs: &mut Runs, at: u64, len: u64, size: u64) -> Result<(), String> {
    let end = at.checked_add(len).filter(|end| *end <= size);
    let before = runs.last().map_or(0, |last| last.end);
    match end {
        Some(end) if at >= before && runs.len() < RUNS_MAX => {
            if len > 0 {
                runs.push(at..end);
            }
            Ok(())
        }
        _ => Err(DAMAGED.to_owned()),
    }
}

/// Adds a run of a map in a GNU header; an empty field ends such a map.
pub(super) fn add_piece(runs: &mut Runs, piece: &GnuSparseHeader, size: u64) -> Result<(), String> {
    if piece.is_empty() {
        return Ok(());
    }
    let run = piece.offset().ok().zip(piece.length().ok());
    let (at, len) = run.ok_or(DAMAGED)?;
    add(runs, at, len, size)
}

/// The map in PAX records of versions 0.0 and 0.1.
pub(super) fn from_records(records: &Records, size: u64) -> Result<Option<Runs>, String> {
    let mut texts: Vec<&[u8]> = Vec::new();
    if let Some(map) = records.get("GNU.sparse.map") {
        texts.extend(map.split(|byte| *byte == b','));
    } else {
        let is_part = |key: &[u8]| matches!(key, b"GNU.sparse.offset" | b"GNU.sparse.numbytes");
        let parts = records.iter().filter(|(key, _)| is_part(key));
        texts.extend(parts.map(|(_, value)| value));
        if texts.is_empty() {
            return Ok(None);
        }
    }
    let (pairs, rest) = texts.as_chunks::<2>();
    let mut runs = Runs::new();
    for [at, len] in pairs {
        let (at, len) = number(at).zip(number(len)).ok_or(DAMAGED)?;
        add(&mut runs, at, len, size)?;
    }
    match rest {
        [] => Ok(Some(runs)),
        _ => Err(DAMAGED.to_owned()),
    }
}

/// The map of version 1.0, which precedes the data in whole blocks.
///
/// # Errors
/// Those of reading. A damaged map is the inner error.
pub(super) fn from_data(data: &mut impl Read, size: u64) -> io::Result<Result<Runs, String>> {
    let mut text = Vec::new();
    let mut runs = Runs::new();
    let Some(count) = next_number(data, &mut text)? else {
        return Ok(Err(DAMAGED.to_owned()));
    };
    for _ in 0..count {
        let at = next_number(data, &mut text)?;
        let len = next_number(data, &mut text)?;
        let run = at.zip(len).ok_or_else(|| DAMAGED.to_owned());
        if let Err(damaged) = run.and_then(|(at, len)| add(&mut runs, at, len, size)) {
            return Ok(Err(damaged));
        }
    }
    Ok(Ok(runs))
}

/// Removes the number in the first line of `text`, which is filled from `data` by whole blocks.
/// `None` if the line is no number, or the data ends.
fn next_number(data: &mut impl Read, text: &mut Vec<u8>) -> io::Result<Option<u64>> {
    loop {
        if let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let found = number(&text[..end]);
            text.drain(..=end);
            return Ok(found);
        }
        let is_long = text.len() > DIGITS_MAX;
        if is_long || data.by_ref().take(BLOCK).read_to_end(text)? < BLOCK as usize {
            return Ok(None);
        }
    }
}

/// The text of a map of version 1.0, padded to whole blocks.
pub(super) fn to_data(runs: &[Range<u64>]) -> Vec<u8> {
    let mut text = format!("{}\n", runs.len());
    for run in runs {
        text.push_str(&format!("{}\n{}\n", run.start, run.end - run.start));
    }
    let mut bytes = text.into_bytes();
    bytes.resize(bytes.len().next_multiple_of(BLOCK as usize), 0);
    bytes
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_map_comes_back_from_its_text() {
        let runs: Runs = (0..200).map(|at| at * 8192..at * 8192 + 4096).collect();
        let text = to_data(&runs);
        let mut data = &text[..];
        let found = from_data(&mut data, 200 * 8192).unwrap();
        assert_eq!(found, Ok(runs));
        assert!(data.is_empty());
    }

    #[test]
    fn runs_that_overlap_go_back_or_beyond_the_end_are_damage() {
        for map in [
            "0,5,4,1",
            "5,1,0,1",
            "0,11",
            "0",
            "a,b",
            "18446744073709551615,2",
        ] {
            let record = format!("GNU.sparse.map={map}\n");
            let length = record.len() + 3;
            let mut wrong = Vec::new();
            let records = format!("{length} {record}");
            let records = Records::parse(records.as_bytes(), &mut wrong);
            assert!(wrong.is_empty());
            assert!(from_records(&records, 10).is_err(), "{map}");
        }
        for data in [&[b'9'; 512][..], b"1\n"] {
            assert!(from_data(&mut &data[..], 10).unwrap().is_err());
        }
    }
}
