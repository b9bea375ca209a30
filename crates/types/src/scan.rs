//! Looking for a byte in names and paths, eight at a time.
//!
//! Names are short, and a path is looked through several times at each call: what is made for long
//! texts takes longer to begin than a name has bytes.

/// Bytes that are looked at together.
const WORD: usize = size_of::<u64>();
const EACH: u64 = u64::from_le_bytes([1; WORD]);
const LOW: u64 = EACH * 0x7f;

/// The highest bit of each byte of the word that is `byte`; the first byte is the lowest.
#[inline]
fn matches(word: [u8; WORD], byte: u8) -> u64 {
    let differs = u64::from_le_bytes(word) ^ (EACH * u64::from(byte));
    // No carry leaves its byte, so that each is told exactly.
    !(((differs & LOW) + LOW) | differs | LOW)
}

/// The first place of a byte.
#[inline]
#[must_use]
pub fn find_byte(bytes: &[u8], byte: u8) -> Option<usize> {
    let Some(last) = bytes.last_chunk() else {
        return bytes.iter().position(|&it| it == byte);
    };
    let (words, _) = bytes.as_chunks::<WORD>();
    for (at, word) in words.iter().enumerate() {
        let found = matches(*word, byte);
        if found != 0 {
            return Some(at * WORD + found.trailing_zeros() as usize / 8);
        }
    }
    // It overlaps the one before, where there is none.
    let found = matches(*last, byte);
    (found != 0).then(|| bytes.len() - WORD + found.trailing_zeros() as usize / 8)
}

/// The last place of a byte, and whether a zero is anywhere: one look at each word.
#[inline]
#[must_use]
pub fn rfind_byte_and_zeros(bytes: &[u8], byte: u8) -> (Option<usize>, bool) {
    let Some(first) = bytes.first_chunk() else {
        return (bytes.iter().rposition(|&it| it == byte), bytes.contains(&0));
    };
    let (before, words) = bytes.as_rchunks::<WORD>();
    let mut zeros = borrows(*first);
    let mut place = None;
    for (at, word) in words.iter().enumerate().rev() {
        zeros |= borrows(*word);
        if place.is_none() {
            let found = matches(*word, byte);
            if found != 0 {
                place = Some(before.len() + at * WORD + top(found));
            }
        }
    }
    if place.is_none() {
        // It overlaps the one behind, where there is none.
        let found = matches(*first, byte);
        place = (found != 0).then(|| top(found));
    }
    (place, zeros != 0)
}

/// Not zero if a byte of the word is.
#[inline]
fn borrows(word: [u8; WORD]) -> u64 {
    let word = u64::from_le_bytes(word);
    // A zero borrows; bytes above it may seem to as well, but none does without one.
    word.wrapping_sub(EACH) & !word & !(EACH * 0x7f)
}

/// The place of the last byte that was found.
#[inline]
fn top(found: u64) -> usize {
    found.ilog2() as usize / 8
}

/// Is one of two bytes there?
#[inline]
#[must_use]
pub(crate) fn has_either(bytes: &[u8], one: u8, other: u8) -> bool {
    let Some(last) = bytes.last_chunk() else {
        return bytes.iter().any(|&it| it == one || it == other);
    };
    let either = |word: &[u8; WORD]| matches(*word, one) | matches(*word, other);
    let (words, _) = bytes.as_chunks::<WORD>();
    words
        .iter()
        .fold(either(last), |found, word| found | either(word))
        != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with a look at each byte.
    fn check(bytes: &[u8]) {
        for byte in [b'/', 0, 0x80] {
            let forward = bytes.iter().position(|&it| it == byte);
            assert_eq!(find_byte(bytes, byte), forward, "{bytes:?} {byte}");
            let backward = bytes.iter().rposition(|&it| it == byte);
            let either = bytes.iter().any(|&it| it == byte || it == b'/');
            assert_eq!(has_either(bytes, byte, b'/'), either, "{bytes:?} {byte}");
            let both = (backward, bytes.contains(&0));
            assert_eq!(rfind_byte_and_zeros(bytes, byte), both, "{bytes:?} {byte}");
        }
    }

    #[test]
    fn places_are_those_that_a_look_at_each_byte_finds() {
        // Neighbours of what is looked for, by one bit or by one.
        for others in [&[1, 0x81, 0x7f][..], b"/.0\xaf", &[0xff, 0, b'/' ^ 1]] {
            for len in 0..34 {
                let mut bytes: Vec<u8> = others.iter().copied().cycle().take(len).collect();
                check(&bytes);
                for one in 0..len {
                    for other in 0..=one {
                        let was = (bytes[one], bytes[other]);
                        (bytes[one], bytes[other]) = (b'/', 0);
                        check(&bytes);
                        bytes[other] = b'/';
                        check(&bytes);
                        bytes[other] = was.1;
                        bytes[one] = was.0;
                    }
                }
            }
        }
    }
}
