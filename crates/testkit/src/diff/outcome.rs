//! What an operation answered.

use crate::diff::op::{Bytes, LockWant};
use crate::diff::view::View;
use holdfast_types::Errno;
use std::collections::BTreeMap;

/// A lock as `F_GETLK` reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenLock {
    /// Shared or exclusive.
    pub kind: LockWant,
    /// First byte.
    pub start: i64,
    /// Length in bytes; 0 means to the end.
    pub len: i64,
    /// Does it belong to a process (a POSIX lock) rather than an open file?
    pub of_process: bool,
}

/// What a call answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Success without a value.
    Done,
    /// The error.
    Failed(Errno),
    /// A count or an offset.
    Number(u64),
    /// Bytes read, or a link's target, or an attribute's value.
    Data(Vec<u8>),
    /// Names of a directory and their `d_type`.
    Names(BTreeMap<Bytes, u8>),
    /// A run of names of a directory: name, `d_type`, the cookie behind it.
    Entries(Vec<(Bytes, u8, u64)>),
    /// Names of extended attributes, sorted.
    XattrNames(Vec<Bytes>),
    /// Attributes.
    Attributes(View),
    /// The lock that stands in the way, if any.
    Lock(Option<SeenLock>),
    /// The target contradicted itself (a cookie did not resume, say): wrong in any case.
    Broken(String),
}

impl Outcome {
    /// From a result without a value.
    pub fn done(result: Result<(), Errno>) -> Self {
        result.map_or_else(Self::Failed, |()| Self::Done)
    }

    /// From a result that is a count.
    pub fn number(result: Result<u64, Errno>) -> Self {
        result.map_or_else(Self::Failed, Self::Number)
    }

    /// From a result that is bytes.
    pub fn data(result: Result<Vec<u8>, Errno>) -> Self {
        result.map_or_else(Self::Failed, Self::Data)
    }

    /// Did the call succeed?
    #[must_use]
    pub const fn succeeded(&self) -> bool {
        !matches!(self, Self::Failed(_) | Self::Broken(_))
    }

    /// The outcome in at most a line or two.
    #[must_use]
    pub fn brief(&self) -> String {
        match self {
            Self::Data(bytes) if bytes.len() > 64 => {
                let head = Bytes(bytes[..32].to_vec());
                format!("Data({} bytes, {head:?}...)", bytes.len())
            }
            other => format!("{other:?}"),
        }
    }
}
