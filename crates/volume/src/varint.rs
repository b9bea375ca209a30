//! Numbers of variable length: seven bits a byte, the lowest first; the top bit marks that more
//! follow.
//!
//! *Invariants.* Every number has one encoding: a longer one than needed is refused, and so is
//! one beyond 64 bits. Reading never looks past the end of what it was given.

/// The most bytes of one number.
pub(crate) const VARINT_MAX: usize = 10;

/// Appends `value`.
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the difference of two numbers that wrap: small in either direction is short.
#[inline]
pub(crate) fn put_delta(out: &mut Vec<u8>, value: u64, base: u64) {
    let difference = value.wrapping_sub(base) as i64;
    put(out, ((difference << 1) ^ (difference >> 63)) as u64);
}

/// Appends a length and the bytes.
#[inline]
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Takes bytes from the front of a slice. `None` everywhere means: not there, or not canonical.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads `bytes` from their beginning.
    #[must_use]
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// How many bytes are left.
    #[must_use]
    #[inline]
    pub fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// The next byte.
    #[inline]
    pub fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    /// The next `count` bytes.
    #[inline]
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    /// The next `N` bytes.
    #[inline]
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (&taken, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(taken)
    }

    /// Two bytes as a number.
    #[inline]
    pub fn short(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes as a number.
    #[inline]
    pub(crate) fn word(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes as a number.
    #[inline]
    pub(crate) fn long(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number of up to 64 bits.
    #[inline]
    pub fn number(&mut self) -> Option<u64> {
        match *self.bytes {
            [first, ref rest @ ..] if first < 0x80 => {
                self.bytes = rest;
                Some(u64::from(first))
            }
            [low, high, ref rest @ ..] if high != 0 && high < 0x80 => {
                self.bytes = rest;
                Some(u64::from(low & 0x7f) | u64::from(high) << 7)
            }
            _ => self.long_number(),
        }
    }

    fn long_number(&mut self) -> Option<u64> {
        let mut value = 0;
        for (index, &byte) in self.bytes.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                let padded = byte == 0 && index > 0;
                let beyond = index == 9 && byte > 1;
                self.bytes = self.bytes.get(index + 1..)?;
                return (!padded && !beyond).then_some(value);
            }
        }
        None
    }

    /// A number that must fit a narrower type.
    #[inline]
    pub fn narrow<T: TryFrom<u64>>(&mut self) -> Option<T> {
        T::try_from(self.number()?).ok()
    }

    /// A length and as many bytes.
    #[inline]
    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.narrow()?;
        self.take(len)
    }

    /// A number stored as its difference from `base`.
    #[inline]
    pub fn delta(&mut self, base: u64) -> Option<u64> {
        let coded = self.number()?;
        let difference = (coded >> 1) as i64 ^ -((coded & 1) as i64);
        Some(base.wrapping_add(difference as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_survive_the_round_trip(value: u64, shift in 0..64_u32, base: u64) {
            let value = value >> shift;
            let mut out = Vec::new();
            put(&mut out, value);
            put_delta(&mut out, value, base);
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.number(), Some(value));
            prop_assert_eq!(reader.delta(base), Some(value));
            prop_assert_eq!(reader.remaining(), 0);
        }

        #[test]
        fn what_is_read_is_the_only_encoding(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            let mut reader = Reader::new(&bytes);
            if let Some(value) = reader.number() {
                let mut out = Vec::new();
                put(&mut out, value);
                prop_assert_eq!(&bytes[..bytes.len() - reader.remaining()], &out[..]);
            }
        }
    }

    #[test]
    fn small_steps_back_are_short() {
        let mut out = Vec::new();
        put_delta(&mut out, 5, 60);
        assert_eq!(out.len(), 1);
    }
}
