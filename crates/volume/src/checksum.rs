//! The checksum of all metadata: CRC-32C in a field of eight bytes.
//!
//! The upper half is zero; it leaves room for a longer checksum.

use std::ops::Range;

/// The checksum of `bytes`, with the checksum's own `field` counted as zeros.
///
/// # Panics
/// If `field` is not a range of 8 bytes inside `bytes`.
#[must_use]
pub fn checksum(bytes: &[u8], field: Range<usize>) -> u64 {
    assert!(
        field.len() == 8 && field.end <= bytes.len(),
        "a field of 8 bytes"
    );
    let before = crc32c::crc32c(&bytes[..field.start]);
    let zeros = crc32c::crc32c_append(before, &[0; 8]);
    u64::from(crc32c::crc32c_append(zeros, &bytes[field.end..]))
}

/// One step of the generator SplitMix64 (Steele, Lea and Flood, 2014).
pub(crate) fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_itself_does_not_count_and_every_other_byte_does() {
        let mut bytes = vec![7_u8; 100];
        let sum = checksum(&bytes, 8..16);
        bytes[8..16].fill(0xff);
        assert_eq!(checksum(&bytes, 8..16), sum);
        for at in (0..8).chain(16..100) {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_ne!(checksum(&other, 8..16), sum, "byte {at}");
        }
    }

    #[test]
    fn it_is_castagnolis() {
        // RFC 3720, B.4: 32 bytes of zeros.
        assert_eq!(checksum(&[0; 32], 0..8), 0x8a91_36aa);
    }
}
