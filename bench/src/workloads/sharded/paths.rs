//! Paths with a number at their end, incremented in place. A list of millions of paths would push
//! what is measured out of the processor's caches.

use crate::targets::names::DIGITS;
use std::ffi::CStr;
use std::ops::Range;

/// A path with a number at its end.
pub(crate) struct NumberedPath {
    /// The path, ending in the digits and a NUL.
    bytes: Vec<u8>,
}

impl NumberedPath {
    /// `prefix` with a number behind it; the prefix holds no NUL.
    pub(crate) fn new(prefix: &str, number: usize) -> Self {
        let bytes = format!("{prefix}{number:0DIGITS$}\0").into_bytes();
        debug_assert!(!prefix.contains('\0'), "{prefix:?}");
        Self { bytes }
    }

    /// The path as it is now.
    #[inline]
    pub(crate) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_with_nul(&self.bytes).expect("one NUL, at the end")
    }

    /// Goes on to the next number.
    #[inline]
    pub(crate) fn count_up(&mut self) {
        let digits = self.digits();
        for digit in self.bytes[digits].iter_mut().rev() {
            if *digit != b'9' {
                *digit += 1;
                return;
            }
            *digit = b'0';
        }
    }

    fn digits(&self) -> Range<usize> {
        let end = self.bytes.len() - 1;
        end - DIGITS..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_up_in_place_is_counting_up() {
        let mut path = NumberedPath::new("/d/file-", 98);
        for number in 98..1102 {
            let expected = format!("/d/file-{number:019}");
            assert_eq!(path.as_c_str().to_bytes(), expected.as_bytes());
            path.count_up();
        }
    }
}
