//! Permission checks with an access control list.

use super::Acl;
use crate::acl::list::{Tag, class};
use holdfast_types::{Access, Caller, Caps, FileType};

/// Does the ACL of an inode of this owner and group grant `want`? Capabilities are not considered.
pub(crate) fn check(acl: &Acl, who: &Caller, uid: u32, gid: u32, want: Access) -> bool {
    let grants = |perm: u8| want.bits() & !perm == 0;
    let mask = acl.find(Tag::Mask).map_or(0o7, |entry| entry.perm);
    let mut in_a_group = false;
    for entry in &acl.entries {
        let is_group_of_who = match entry.tag {
            Tag::Owner if who.uid == uid => return grants(entry.perm),
            Tag::User if who.uid == entry.id => return grants(entry.perm & mask),
            Tag::OwningGroup => who.in_group(gid),
            Tag::Group => who.in_group(entry.id),
            // An entry of one of the caller's groups exists, and none grants `want`.
            Tag::Other => return !in_a_group && grants(entry.perm),
            Tag::Owner | Tag::User | Tag::Mask => false,
        };
        if is_group_of_who {
            in_a_group = true;
            // One group entry has to grant all of `want`; entries are not combined.
            if grants(entry.perm) {
                return grants(entry.perm & mask);
            }
        }
    }
    false
}

/// The complete check of Linux: owner, ACL, group, others, then capabilities. `perm` is the
/// inode's mode; `acl` its access ACL when it has one.
pub(crate) fn permission(
    who: &Caller,
    uid: u32,
    gid: u32,
    perm: u16,
    acl: Option<&Acl>,
    kind: FileType,
    want: Access,
) -> bool {
    who.checked
        || discretionary(who, uid, gid, perm, acl, want)
        || overridden(who, perm, kind, want)
}

fn discretionary(
    who: &Caller,
    uid: u32,
    gid: u32,
    perm: u16,
    acl: Option<&Acl>,
    want: Access,
) -> bool {
    let shift = if who.uid == uid {
        6
    } else {
        // With an empty mask Linux ignores the ACL: the mode alone decides, and a named user has
        // the rights of others.
        if let Some(acl) = acl
            && class(perm, 3) != 0
        {
            return check(acl, who, uid, gid, want);
        }
        if who.in_group(gid) { 3 } else { 0 }
    };
    want.bits() & !class(perm, shift) == 0
}

/// Do the caller's capabilities override the permission bits?
fn overridden(who: &Caller, perm: u16, kind: FileType, want: Access) -> bool {
    let reads_only = match kind {
        FileType::Directory => !want.contains(Access::WRITE),
        _ => want == Access::READ,
    };
    if reads_only && who.has(Caps::DAC_READ_SEARCH) {
        return true;
    }
    // No capability permits executing a file without any x bit.
    let overridable = kind.is_dir() || !want.contains(Access::EXEC) || perm & 0o111 != 0;
    overridable && who.has(Caps::DAC_OVERRIDE)
}
