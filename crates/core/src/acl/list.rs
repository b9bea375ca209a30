//! An access control list.

/// The attribute that is a file's ACL.
pub(crate) const ACL_ACCESS: &[u8] = b"system.posix_acl_access";
/// The attribute that is a directory's default ACL.
pub(crate) const ACL_DEFAULT: &[u8] = b"system.posix_acl_default";

/// A valid ACL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Acl {
    pub(super) entries: Box<[Entry]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) tag: Tag,
    /// Permission bits, 0 to 7.
    pub(super) perm: u8,
    /// User or group; [`ID_NONE`] for a tag without one.
    pub(super) id: u32,
}

/// The class of callers that an entry applies to, with the numbers of the attribute's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Tag {
    Owner = 0x01,
    User = 0x02,
    OwningGroup = 0x04,
    Group = 0x08,
    Mask = 0x10,
    Other = 0x20,
}

/// The id of entries without one; no user or group has it.
pub(super) const ID_NONE: u32 = u32::MAX;

impl Acl {
    pub(super) fn find(&self, tag: Tag) -> Option<&Entry> {
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
pub(super) const fn class(perm: u16, shift: u32) -> u8 {
    (perm >> shift & 0o7) as u8
}
