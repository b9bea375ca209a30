//! The results of changes.

use super::item::Item;
use std::error::Error;
use std::fmt;

/// Why a name was not inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertError {
    /// The key exists already.
    Taken,
    /// The order is not greater than every order so far.
    OutOfOrder,
    /// There are 2^28 names, or the order is 2^63 or more.
    Full,
    /// The key is empty or longer than 255 bytes, the value 2^60 or more, or the tag 16 or more.
    Unfit,
}

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Taken => "the key is there already",
            Self::OutOfOrder => "the order is not greater than every order so far",
            Self::Full => "no more names can be numbered",
            Self::Unfit => "key, value or tag is out of range",
        })
    }
}

impl Error for InsertError {}

/// What a removed name was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Its position in the listing.
    pub order: u64,
    /// The value that it had.
    pub value: u64,
    /// The value's tag.
    pub tag: u8,
}

impl Removed {
    pub(super) fn of(item: Item<'_>) -> Self {
        let (value, tag) = item.payload();
        Self {
            order: item.order(),
            value,
            tag,
        }
    }
}
