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
mod list;
mod xattr;

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use check::check;
pub(crate) use check::permission;
pub(crate) use list::{ACL_ACCESS, ACL_DEFAULT, Acl, chmod, create, equivalent_mode, mode_of};
pub(crate) use xattr::to_xattr;
