//! Extended attributes, as getxattr(2), setxattr(2) and listxattr(2) have them.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;

use holdfast::XattrSet;
use holdfast::types::Errno;

use crate::failure::{Failure, Result};
use crate::types::{HF_XATTR_CREATE, HF_XATTR_REPLACE};

/// Puts an answer into a caller's buffer. A buffer of no length asks for the length.
///
/// # Errors
/// `ERANGE` if it does not fit.
pub(crate) fn put(answer: &[u8], buffer: &mut [u8]) -> io::Result<usize> {
    if !buffer.is_empty() {
        let place = buffer.get_mut(..answer.len()).ok_or(Errno::ERANGE)?;
        place.copy_from_slice(answer);
    }
    Ok(answer.len())
}

/// The names with a NUL behind each.
pub(crate) fn names(names: Vec<OsString>) -> Vec<u8> {
    let mut list = Vec::new();
    for name in names {
        list.extend_from_slice(name.as_bytes());
        list.push(0);
    }
    list
}

/// Which attributes may be set.
///
/// # Errors
/// `EINVAL` for other flags.
pub(crate) fn how(flags: u32) -> Result<XattrSet> {
    match flags {
        0 => Ok(XattrSet::Any),
        HF_XATTR_CREATE => Ok(XattrSet::Create),
        HF_XATTR_REPLACE => Ok(XattrSet::Replace),
        _ => Err(Failure::unknown_flags(
            flags,
            "0, HF_XATTR_CREATE or HF_XATTR_REPLACE",
        )),
    }
}
