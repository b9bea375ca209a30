//! Access control lists (acl(5): the POSIX.1e draft as Linux has it), and the permission check.
//!
//! *Invariants.* The entries of an [`Acl`] are in order of their tags. There is one for the owner,
//! one for the owning group and one for others, and any number of named users and groups. There is
//! at most one mask, and exactly one if there is a named entry. Duplicate named entries are
//! allowed, as in Linux; the first user entry counts.
//!
//! The module knows no inode and takes no lock. Its caller keeps the mode's permission bits and the
//! ACL in step, and stores an ACL only if [`equivalent_mode`] returns `None`.

mod check;
mod xattr;

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use check::check;
pub(crate) use check::permission;
pub(crate) use xattr::to_xattr;

/// The attribute that is a file's ACL.
pub(crate) const ACL_ACCESS: &[u8] = b"system.posix_acl_access";
/// The attribute that is a directory's default ACL.
pub(crate) const ACL_DEFAULT: &[u8] = b"system.posix_acl_default";

/// A valid ACL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Acl {
    entries: Box<[Entry]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    tag: Tag,
    /// Permission bits, 0 to 7.
    perm: u8,
    /// User or group; [`ID_NONE`] for a tag without one.
    id: u32,
}

/// The class of callers that an entry applies to, with the numbers of the attribute's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Tag {
    Owner = 0x01,
    User = 0x02,
    OwningGroup = 0x04,
    Group = 0x08,
    Mask = 0x10,
    Other = 0x20,
}

/// The id of entries without one; no user or group has it.
const ID_NONE: u32 = u32::MAX;

impl Acl {
    fn find(&self, tag: Tag) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.tag == tag)
    }

    /// The entry that the group bits of the mode stand for: the mask, or without one the group.
    fn group_class(&mut self) -> Option<&mut Entry> {
        let tag = if self.find(Tag::Mask).is_some() {
            Tag::Mask
        } else {
            Tag::OwningGroup
        };
        self.entries.iter_mut().find(|entry| entry.tag == tag)
    }

    /// Can a mode express all of this ACL?
    fn is_minimal(&self) -> bool {
        self.entries
            .iter()
            .all(|entry| !matches!(entry.tag, Tag::User | Tag::Group | Tag::Mask))
    }
}

/// The permission bits (0777) that stat(2) shows beside this ACL.
pub(crate) fn mode_of(acl: &Acl) -> u16 {
    let bits = |tag| acl.find(tag).map_or(0, |entry| u16::from(entry.perm));
    let group = if acl.find(Tag::Mask).is_some() {
        Tag::Mask
    } else {
        Tag::OwningGroup
    };
    bits(Tag::Owner) << 6 | bits(group) << 3 | bits(Tag::Other)
}

/// The permission bits (0777) that are equivalent to this ACL, if there are any; they are stored in
/// place of the ACL.
pub(crate) fn equivalent_mode(acl: &Acl) -> Option<u16> {
    acl.is_minimal().then(|| mode_of(acl))
}

/// Applies a chmod(2) to `perm`: owner, others, and the mask (or without one the owning group).
pub(crate) fn chmod(acl: &mut Acl, perm: u16) {
    for entry in &mut acl.entries {
        match entry.tag {
            Tag::Owner => entry.perm = class(perm, 6),
            Tag::Other => entry.perm = class(perm, 0),
            Tag::User | Tag::OwningGroup | Tag::Group | Tag::Mask => {}
        }
    }
    if let Some(entry) = acl.group_class() {
        entry.perm = class(perm, 3);
    }
}

/// The access ACL and the permission bits of a new inode that is created with `perm` in a directory
/// with this default ACL. There is no ACL if the bits express all of it. The umask does not apply.
/// Bits above 0777 pass through.
///
/// A new directory also inherits the default ACL itself; the caller copies it.
pub(crate) fn create(default: &Acl, perm: u16) -> (Option<Acl>, u16) {
    let perm = perm & (!0o777 | mode_of(default));
    if default.is_minimal() {
        return (None, perm);
    }
    let mut access = default.clone();
    chmod(&mut access, perm);
    (Some(access), perm)
}

/// The three permission bits of one class of a mode.
const fn class(perm: u16, shift: u32) -> u8 {
    (perm >> shift & 0o7) as u8
}
