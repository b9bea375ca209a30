//! Where the data of a sparse member lies: GNU's own headers, and the three forms that PAX records took.

use std::io::{self, Read};
use std::ops::Range;

use super::damaged;
use super::pax::{Records, number};

/// Runs of data in a file, in their order, without overlaps.
pub(super) type Runs = Vec<Range<u64>>;

/// Most runs of one file: a map of more is damage, or meant to use memory up.
const RUNS_MAX: usize = 1 << 20;
/// Longest number in a map within the data.
const DIGITS_MAX: usize = 20;
const BLOCK: u64 = 512;

/// Adds a run.
///
/// # Errors
/// `InvalidData` if it begins before the last one ends, or ends beyond the file.
pub(super) fn add(runs: &mut Runs, at: u64, len: u64, size: u64) -> io::Result<()> {
    let end = at.checked_add(len).filter(|end| *end <= size);
    let before = runs.last().map_or(0, |last| last.end);
    match end {
        Some(end) if at >= before && runs.len() < RUNS_MAX => {
            if len > 0 {
                runs.push(at..end);
            }
            Ok(())
        }
        _ => Err(damaged("the map of a sparse file is damaged")),
    }
}

/// The map in PAX records of versions 0.0 and 0.1.
///
/// # Errors
/// `InvalidData`.
pub(super) fn from_records(records: &Records, size: u64) -> io::Result<Option<Runs>> {
    let bad = || damaged("the map of a sparse file is damaged");
    let mut numbers: Vec<u64> = Vec::new();
    if let Some(map) = records.get("GNU.sparse.map") {
        for text in map.split(|byte| *byte == b',') {
            numbers.push(number(text).ok_or_else(bad)?);
        }
    } else {
        for (key, value) in records.iter() {
            if matches!(key, b"GNU.sparse.offset" | b"GNU.sparse.numbytes") {
                numbers.push(number(value).ok_or_else(bad)?);
            }
        }
        if numbers.is_empty() {
            return Ok(None);
        }
    }
    let (pairs, rest) = numbers.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(bad());
    }
    let mut runs = Runs::new();
    for [at, len] in pairs {
        add(&mut runs, *at, *len, size)?;
    }
    Ok(Some(runs))
}

/// The map before the data, of version 1.0. Gives how many bytes it took: whole blocks.
///
/// # Errors
/// `InvalidData`; those of reading.
pub(super) fn from_data(data: &mut dyn Read, size: u64) -> io::Result<(Runs, u64)> {
    let mut reader = Decimals {
        data,
        block: [0; BLOCK as usize],
        at: BLOCK as usize,
        taken: 0,
    };
    let count = reader.next()?;
    let mut runs = Runs::new();
    for _ in 0..count {
        let (at, len) = (reader.next()?, reader.next()?);
        add(&mut runs, at, len, size)?;
    }
    Ok((runs, reader.taken))
}

/// Numbers of a line each, in blocks.
struct Decimals<'d> {
    data: &'d mut dyn Read,
    block: [u8; BLOCK as usize],
    at: usize,
    taken: u64,
}

impl Decimals<'_> {
    fn next(&mut self) -> io::Result<u64> {
        let mut digits = Vec::new();
        loop {
            if self.at == self.block.len() {
                self.data.read_exact(&mut self.block)?;
                (self.at, self.taken) = (0, self.taken + BLOCK);
            }
            let byte = self.block[self.at];
            self.at += 1;
            match byte {
                b'\n' => break,
                _ if digits.len() == DIGITS_MAX => break,
                byte => digits.push(byte),
            }
        }
        number(&digits).ok_or_else(|| damaged("the map of a sparse file is damaged"))
    }
}

/// The text of a map of version 1.0, filled up to whole blocks.
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
        let (found, taken) = from_data(&mut data, 200 * 8192).unwrap();
        assert_eq!((found, taken as usize), (runs, text.len()));
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
            let records = Records::parse(format!("{length} {record}").as_bytes()).unwrap();
            assert!(from_records(&records, 10).is_err(), "{map}");
        }
        assert!(from_data(&mut &[b'9'; 512][..], 10).is_err());
        assert!(from_data(&mut &b"1\n"[..], 10).is_err());
    }
}
