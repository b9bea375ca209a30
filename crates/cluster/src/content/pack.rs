//! Packs: objects with parts of several files.
//!
//! A pack is the bytes of its parts, one after the other, and a footer. The footer has 28 bytes for
//! each part: the file's number, the first byte in the file, the number of bytes, each of 8 bytes,
//! and the CRC-32C of the bytes. Then come the number of parts, the CRC-32C of the footer up to
//! here, each of 4 bytes, and the 8 bytes `hfpack01`. Numbers are little-endian. Reading a file
//! needs no footer; it is for checks, and for the recovery of bytes without a database.

use super::page::PAGE;
use holdfast_types::Ino;

/// The end of a pack.
const MAGIC: &[u8; 8] = b"hfpack01";
/// Bytes of a part in the footer.
const PART: usize = 28;
/// The largest number of bytes of parts in one pack.
pub(crate) const MOST: u64 = 16 << 20;

/// Pages of a file that go into a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The index of the file among those that are flushed.
    pub(crate) file: usize,
    pub(crate) ino: Ino,
    pub(crate) first: u64,
    pub(crate) pages: u64,
}

/// A pack that is to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pack {
    pub(crate) parts: Vec<Part>,
    pub(crate) pages: u64,
}

impl Pack {
    /// The number of bytes of the object.
    pub(crate) fn len(&self) -> u64 {
        self.pages * PAGE + (self.parts.len() * PART) as u64 + 16
    }

    /// The object. `page` adds the bytes of a page of a part.
    pub(crate) fn bytes(&self, page: impl Fn(&Part, u64, &mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.len()).unwrap_or(0));
        let mut footer = Vec::new();
        for part in &self.parts {
            let start = bytes.len();
            (part.first..part.first + part.pages).for_each(|at| page(part, at, &mut bytes));
            let numbers = [part.ino.0, part.first * PAGE, part.pages * PAGE];
            footer.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            footer.extend(crc32c::crc32c(&bytes[start..]).to_le_bytes());
        }
        footer.extend((self.parts.len() as u32).to_le_bytes());
        let sum = crc32c::crc32c(&footer);
        bytes.extend(footer);
        bytes.extend(sum.to_le_bytes());
        bytes.extend(MAGIC);
        bytes
    }
}

/// What is wrong with the bytes of a pack, by its footer; `None`: nothing.
pub(crate) fn damage(bytes: &[u8]) -> Option<String> {
    let torn = || Some("has no footer".to_owned());
    let Some((before, MAGIC)) = bytes.split_last_chunk() else {
        return torn();
    };
    let Some((before, sum)) = before.split_last_chunk() else {
        return torn();
    };
    let Some((_, count)) = before.split_last_chunk() else {
        return torn();
    };
    let length = (u32::from_le_bytes(*count) as usize)
        .saturating_mul(PART)
        .saturating_add(count.len());
    let Some(begin) = before.len().checked_sub(length) else {
        return torn();
    };
    let (mut content, footer) = before.split_at(begin);
    if crc32c::crc32c(footer) != u32::from_le_bytes(*sum) {
        return Some("has a damaged footer".into());
    }
    let (parts, _) = footer.as_chunks::<PART>();
    for part in parts {
        let number = |at: usize| {
            let bytes = part[at..].first_chunk().copied().unwrap_or_default();
            u64::from_le_bytes(bytes)
        };
        let len = usize::try_from(number(16)).unwrap_or(usize::MAX);
        let Some((bytes, after)) = content.split_at_checked(len) else {
            return torn();
        };
        if part[24..] != crc32c::crc32c(bytes).to_le_bytes() {
            let (ino, offset) = (number(0), number(8));
            return Some(format!(
                "is damaged where file {ino} has byte {offset} and on"
            ));
        }
        content = after;
    }
    None
}

/// Distributes runs of pages over packs of at most `most` bytes, in order.
pub(crate) fn distribute(runs: impl Iterator<Item = Part>, most: u64) -> Vec<Pack> {
    let most = (most.min(MOST) / PAGE).max(1);
    let mut packs = Vec::new();
    let mut pack = Pack::default();
    for mut run in runs {
        while run.pages > 0 {
            let pages = run.pages.min(most - pack.pages);
            pack.parts.push(Part { pages, ..run });
            pack.pages += pages;
            run.first += pages;
            run.pages -= pages;
            if pack.pages == most {
                packs.push(std::mem::take(&mut pack));
            }
        }
    }
    if pack.pages > 0 {
        packs.push(pack);
    }
    packs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(file: usize, first: u64, pages: u64) -> Part {
        Part {
            file,
            ino: Ino(100 + file as u64),
            first,
            pages,
        }
    }

    #[test]
    fn runs_are_cut_where_a_pack_is_full() {
        let packs = distribute([part(0, 5, 3), part(1, 0, 6)].into_iter(), 4 * PAGE);
        let parts: Vec<_> = packs.iter().map(|pack| pack.parts.clone()).collect();
        let expected = [
            vec![part(0, 5, 3), part(1, 0, 1)],
            vec![part(1, 1, 4)],
            vec![part(1, 5, 1)],
        ];
        assert_eq!(parts, expected);
    }

    #[test]
    fn the_footer_tells_what_is_in_a_pack() {
        let pack = distribute([part(0, 5, 2), part(1, 9, 1)].into_iter(), MOST).remove(0);
        let bytes = pack.bytes(|_, page, out| out.extend([page as u8; PAGE as usize]));
        assert_eq!(bytes.len() as u64, pack.len());
        let (rest, magic) = bytes.split_last_chunk::<8>().unwrap();
        assert_eq!(magic, MAGIC);
        let (rest, sum) = rest.split_last_chunk::<4>().unwrap();
        let footer = &rest[3 * PAGE as usize..];
        assert_eq!(crc32c::crc32c(footer).to_le_bytes(), *sum);
        let number = |at: usize| u64::from_le_bytes(footer[at..at + 8].try_into().unwrap());
        assert_eq!(
            [number(0), number(8), number(16)],
            [100, 5 * PAGE, 2 * PAGE]
        );
        assert_eq!([number(28), number(36), number(44)], [101, 9 * PAGE, PAGE]);
        let crc = crc32c::crc32c(&[9; PAGE as usize]).to_le_bytes();
        assert_eq!(footer[52..], [&crc[..], &2_u32.to_le_bytes()].concat());
    }
    #[test]
    fn damage_of_a_pack_is_found_and_named() {
        let pack = distribute([part(0, 5, 2), part(1, 9, 1)].into_iter(), MOST).remove(0);
        let whole = pack.bytes(|_, page, out| out.extend([page as u8; PAGE as usize]));
        assert_eq!(damage(&whole), None);
        let flipped = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            damage(&bytes).unwrap()
        };
        assert!(flipped(0).contains("file 100 has byte 20480"));
        assert!(flipped(2 * PAGE as usize).contains("file 101 has byte 36864"));
        for at in 3 * PAGE as usize..whole.len() {
            assert!(flipped(at).contains("footer"), "{at}");
        }
        for length in [0, 7, 15, 16, 4096, whole.len() - 1] {
            assert!(damage(&whole[..length]).is_some(), "{length}");
        }
    }
}
