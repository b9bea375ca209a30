//! Numbers of variable length: seven bits a byte, the lowest first, the top bit says "more".

/// What a decoder says of bytes that are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// The most bytes one number takes.
pub(super) const VARINT_MAX: usize = 10;

#[inline]
pub(super) fn put(buf: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        buf.push(value as u8 | 0x80);
        value >>= 7;
    }
    buf.push(value as u8);
}

/// The distance from `from` to `value`, either way and around the end: small ones stay short.
#[inline]
pub(super) fn put_delta(buf: &mut Vec<u8>, value: u64, from: u64) {
    let distance = value.wrapping_sub(from).cast_signed();
    put(buf, ((distance << 1) ^ (distance >> 63)).cast_unsigned());
}

/// A length and the bytes.
#[inline]
pub(super) fn put_bytes(buf: &mut Vec<u8>, bytes: &[u8]) {
    put(buf, bytes.len() as u64);
    buf.extend_from_slice(bytes);
}

/// Takes fields off the front of bytes that anybody may have written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// How many bytes are left.
    pub(super) const fn left(&self) -> usize {
        self.rest.len()
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.rest.split_first().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*first)
    }

    #[inline]
    pub(super) fn varint(&mut self) -> Result<u64, Malformed> {
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let mut value = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(Malformed);
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    #[inline]
    pub(super) fn delta(&mut self, from: u64) -> Result<u64, Malformed> {
        let folded = self.varint()?;
        let distance = (folded >> 1).cast_signed() ^ -(folded & 1).cast_signed();
        Ok(from.wrapping_add(distance.cast_unsigned()))
    }

    /// A number that must fit a narrower type.
    #[inline]
    pub(super) fn narrow<T: TryFrom<u64>>(&mut self) -> Result<T, Malformed> {
        T::try_from(self.varint()?).map_err(|_| Malformed)
    }

    #[inline]
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.narrow::<usize>()?;
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_and_distances_come_back(value: u64, from: u64, bytes: Vec<u8>) {
            let mut buf = Vec::new();
            put(&mut buf, value);
            put_delta(&mut buf, value, from);
            put_bytes(&mut buf, &bytes);
            prop_assert!(buf.len() <= 3 * VARINT_MAX + bytes.len());
            let mut reader = Reader::new(&buf);
            prop_assert_eq!(reader.varint(), Ok(value));
            prop_assert_eq!(reader.delta(from), Ok(value));
            prop_assert_eq!(reader.bytes(), Ok(&bytes[..]));
            prop_assert_eq!(reader.left(), 0);
        }
    }

    #[test]
    fn numbers_beyond_64_bits_and_lengths_beyond_the_end_are_refused() {
        assert_eq!(Reader::new(&[0xff; 10]).varint(), Err(Malformed));
        let mut two = [0xff; 10];
        two[9] = 2;
        assert_eq!(Reader::new(&two).varint(), Err(Malformed));
        assert_eq!(Reader::new(&[0x80]).varint(), Err(Malformed));
        assert_eq!(Reader::new(&[3, 1, 2]).bytes(), Err(Malformed));
        assert_eq!(Reader::new(&[0x80, 2]).narrow::<u8>(), Err(Malformed));
    }
}
