//! Memory for one page: whole, or of a smaller class for a small file.

/// Bytes of a page.
pub const PAGE_SIZE: usize = 4096;

/// log2 of [`PAGE_SIZE`].
pub(crate) const PAGE_SHIFT: u32 = PAGE_SIZE.trailing_zeros();

/// The content of a page.
pub(crate) type Page = [u8; PAGE_SIZE];

/// `data` at `at`, the rest zero, `len` bytes in all; every byte is written once only.
fn padded(at: usize, data: &[u8], len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len);
    bytes.resize(at, 0);
    bytes.extend_from_slice(data);
    bytes.resize(len, 0);
    bytes
}

fn boxed<const N: usize>(bytes: Vec<u8>) -> Box<[u8; N]> {
    bytes
        .into_boxed_slice()
        .try_into()
        .expect("as many bytes as the frame has")
}

/// A new page with `data` at `at`, the rest zero.
pub(crate) fn new_page(at: usize, data: &[u8]) -> Box<Page> {
    boxed(padded(at, data, PAGE_SIZE))
}

macro_rules! classes {
    ($($class:ident $size:literal)*) => {
        /// The first page of a file that holds no other page, in the smallest class that fits.
        /// What lies behind the frame, up to the end of the page, is zero.
        ///
        /// An enum rather than a `Box<[u8]>`: the class sits in the tag, and a file's root stays
        /// at 16 bytes.
        pub(crate) enum SmallFrame {
            $(
                #[doc = concat!(stringify!($size), " bytes.")]
                $class(Box<[u8; $size]>),
            )*
        }

        impl SmallFrame {
            /// `bytes` must be as long as one of the classes.
            fn from_class(bytes: Vec<u8>) -> Self {
                match bytes.len() {
                    $($size => Self::$class(boxed(bytes)),)*
                    other => unreachable!("no class of {other} bytes"),
                }
            }

            /// The bytes there are; behind them the page is zero.
            pub(crate) fn bytes(&self) -> &[u8] {
                match self {
                    $(Self::$class(bytes) => &bytes[..],)*
                }
            }

            /// The bytes there are, to be changed.
            pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
                match self {
                    $(Self::$class(bytes) => &mut bytes[..],)*
                }
            }
        }
    };
}

classes! { C64 64 C128 128 C256 256 C512 512 C1024 1024 C2048 2048 C4096 4096 }

/// Smallest class, in bytes.
const CLASS_MIN: usize = 64;

fn class(len: usize) -> usize {
    len.next_power_of_two().max(CLASS_MIN)
}

impl SmallFrame {
    /// A frame with `data` at `at`, the rest zero; `at + data.len()` is at most a page.
    pub(crate) fn new(at: usize, data: &[u8]) -> Self {
        Self::from_class(padded(at, data, class(at + data.len())))
    }

    /// Takes over a page.
    pub(crate) fn from_page(page: Box<Page>) -> Self {
        Self::C4096(page)
    }

    /// Grows to a page.
    pub(crate) fn into_page(self) -> Box<Page> {
        match self {
            Self::C4096(page) => page,
            smaller => new_page(0, smaller.bytes()),
        }
    }

    /// Writes `data` at `at`, moving to a larger class if it does not fit.
    pub(crate) fn write(&mut self, at: usize, data: &[u8]) {
        let end = at + data.len();
        if let Some(place) = self.bytes_mut().get_mut(at..end) {
            place.copy_from_slice(data);
            return;
        }
        let mut bytes = Vec::with_capacity(class(end));
        bytes.extend_from_slice(self.bytes());
        bytes.truncate(at);
        bytes.resize(at, 0);
        bytes.extend_from_slice(data);
        bytes.resize(class(end), 0);
        *self = Self::from_class(bytes);
    }

    /// Zeroes everything from `len` on, moving to a smaller class if that suffices.
    pub(crate) fn truncate(&mut self, len: usize) {
        if len >= self.bytes().len() {
            return;
        }
        if class(len) < self.bytes().len() {
            *self = Self::new(0, &self.bytes()[..len]);
        } else {
            self.bytes_mut()[len..].fill(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_frame_is_as_large_as_its_class() {
        assert_eq!(SmallFrame::new(0, b"x").bytes().len(), 64);
        assert_eq!(SmallFrame::new(60, b"12345").bytes().len(), 128);
        assert_eq!(SmallFrame::new(4095, b"x").bytes().len(), 4096);
        let mut frame = SmallFrame::new(10, b"abc");
        frame.write(1000, b"z");
        assert_eq!(frame.bytes().len(), 1024);
        assert_eq!(&frame.bytes()[8..15], b"\0\0abc\0\0");
        assert_eq!(frame.bytes()[1000], b'z');
        frame.write(1023, b"yy");
        assert_eq!(
            (
                frame.bytes().len(),
                frame.bytes()[1000],
                frame.bytes()[1024]
            ),
            (2048, b'z', b'y')
        );
        frame.truncate(12);
        assert_eq!(
            (frame.bytes().len(), &frame.bytes()[8..15]),
            (64, &b"\0\0ab\0\0\0"[..])
        );
        let page = frame.into_page();
        assert_eq!((&page[8..13], page[4095]), (&b"\0\0ab\0"[..], 0));
    }
}
