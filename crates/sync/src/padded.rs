use std::ops::{Deref, DerefMut};

/// A value alone on its cache lines.
///
/// The alignment is 128 bytes, two lines: processors fetch adjacent lines in pairs, so a value on
/// the next line would still be disturbed.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

impl<T> Deref for Padded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Padded<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_never_share_a_pair_of_lines() {
        let pair = [Padded(0_u8), Padded(1_u8)];
        let distance = (&raw const pair[1]).addr() - (&raw const pair[0]).addr();
        assert_eq!(distance, 128);
        assert_eq!((&raw const pair[0]).addr() % 128, 0);
        assert_eq!(*pair[1], 1);
    }
}
