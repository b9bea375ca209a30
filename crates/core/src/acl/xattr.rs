//! The extended attributes `system.posix_acl_access` and `system.posix_acl_default`.
//!
//! Little-endian: a version (4 bytes), then entries of 8 bytes: tag (2), permissions (2), id (4).

use super::Acl;
use crate::acl::list::{Entry, ID_NONE, Tag};
use holdfast_types::{Errno, Result};

const VERSION: u32 = 2;
const HEADER_BYTES: usize = 4;
const ENTRY_BYTES: usize = 8;
/// Longest value of an extended attribute on Linux.
const VALUE_BYTES_MAX: usize = 1 << 16;

impl Acl {
    /// Parses an attribute's value, which is not trusted. `None` for a value without entries, which
    /// removes the ACL.
    ///
    /// # Errors
    /// `E2BIG` if longer than an attribute can be, `EOPNOTSUPP` for another version, `EINVAL` for
    /// everything else that is not a valid ACL.
    pub(crate) fn parse(value: &[u8]) -> Result<Option<Self>> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(Errno::E2BIG);
        }
        let chunks = split(value)?;
        if chunks.is_empty() {
            return Ok(None);
        }
        let entries = chunks
            .iter()
            .map(parse_entry)
            .collect::<Result<Box<[_]>>>()?;
        check_order(&entries)?;
        Ok(Some(Self { entries }))
    }

    /// Checks the header and the tags of a value. Linux makes this check before the permission
    /// check, and checks the order of the entries after it.
    ///
    /// # Errors
    /// As [`Acl::parse`], except for the order of the entries.
    pub(crate) fn check_format(value: &[u8]) -> Result<()> {
        for chunk in split(value)? {
            parse_entry(&[
                chunk[0], chunk[1], 0, 0, chunk[4], chunk[5], chunk[6], chunk[7],
            ])?;
        }
        Ok(())
    }
}

/// The entries of a value with a good header.
fn split(value: &[u8]) -> Result<&[[u8; ENTRY_BYTES]]> {
    let (version, body) = value
        .split_first_chunk::<HEADER_BYTES>()
        .ok_or(Errno::EINVAL)?;
    if u32::from_le_bytes(*version) != VERSION {
        return Err(Errno::EOPNOTSUPP);
    }
    let (chunks, rest) = body.as_chunks::<ENTRY_BYTES>();
    if rest.is_empty() {
        Ok(chunks)
    } else {
        Err(Errno::EINVAL)
    }
}

/// The attribute's value for this ACL.
pub(crate) fn to_xattr(acl: &Acl) -> Box<[u8]> {
    let mut value = Vec::with_capacity(HEADER_BYTES + acl.entries.len() * ENTRY_BYTES);
    value.extend(VERSION.to_le_bytes());
    for entry in &acl.entries {
        value.extend((entry.tag as u16).to_le_bytes());
        value.extend(u16::from(entry.perm).to_le_bytes());
        value.extend(entry.id.to_le_bytes());
    }
    value.into()
}

fn parse_entry(bytes: &[u8; ENTRY_BYTES]) -> Result<Entry> {
    let [tag_low, tag_high, perm_low, perm_high, id @ ..] = *bytes;
    let tag = match u16::from_le_bytes([tag_low, tag_high]) {
        0x01 => Tag::Owner,
        0x02 => Tag::User,
        0x04 => Tag::OwningGroup,
        0x08 => Tag::Group,
        0x10 => Tag::Mask,
        0x20 => Tag::Other,
        _ => return Err(Errno::EINVAL),
    };
    let perm = match (perm_low, perm_high) {
        (perm @ 0..=7, 0) => perm,
        _ => return Err(Errno::EINVAL),
    };
    let id = match tag {
        Tag::User | Tag::Group => match u32::from_le_bytes(id) {
            ID_NONE => return Err(Errno::EINVAL),
            id => id,
        },
        // The id of these tags has no meaning.
        Tag::Owner | Tag::OwningGroup | Tag::Mask | Tag::Other => ID_NONE,
    };
    Ok(Entry { tag, perm, id })
}

/// Checks the invariant of [`Acl`].
fn check_order(entries: &[Entry]) -> Result<()> {
    let once = |tag| entries.iter().filter(|entry| entry.tag == tag).count() == 1;
    let named = entries
        .iter()
        .any(|entry| matches!(entry.tag, Tag::User | Tag::Group));
    let masks = entries
        .iter()
        .filter(|entry| entry.tag == Tag::Mask)
        .count();
    let valid = entries.is_sorted_by_key(|entry| entry.tag)
        && once(Tag::Owner)
        && once(Tag::OwningGroup)
        && once(Tag::Other)
        && (masks == 1 || masks == 0 && !named);
    if valid { Ok(()) } else { Err(Errno::EINVAL) }
}
