//! The arguments of a rename.

use crate::node::Node;
use crate::types::{Caller, Errno, RenameFlags, Result};

/// One end of a rename: a directory and a name in it.
#[derive(Clone, Copy)]
pub(crate) struct End<'a> {
    pub(crate) dir: &'a Node,
    pub(crate) name: &'a [u8],
    /// Trailing slashes: the name has to be a directory's.
    pub(crate) slash: bool,
}

impl Rename<'_> {
    pub(super) fn exchanges(&self) -> bool {
        self.flags.contains(RenameFlags::EXCHANGE)
    }

    /// Does the target exist, and is it a directory?
    pub(super) fn is_over_directory(&self) -> bool {
        self.target.is_some_and(|target| target.kind().is_dir())
    }

    /// The checks of flags and trailing slashes against the inodes.
    pub(super) fn check(&self) -> Result<()> {
        match self.target {
            Some(_) if self.flags.contains(RenameFlags::NOREPLACE) => return Err(Errno::EEXIST),
            None if self.exchanges() => return Err(Errno::ENOENT),
            _ => {}
        }
        let wants_dir = self.from.slash || self.to.slash && !self.exchanges();
        if wants_dir && !self.source.kind().is_dir()
            || self.exchanges() && self.to.slash && !self.is_over_directory()
        {
            return Err(Errno::ENOTDIR);
        }
        Ok(())
    }
}

/// # Errors
/// `EINVAL` for flags that are unknown or contradict each other.
pub(crate) fn check_flags(flags: RenameFlags) -> Result<()> {
    let exclusive = RenameFlags::NOREPLACE | RenameFlags::WHITEOUT;
    if !RenameFlags::all().contains(flags)
        || flags.contains(RenameFlags::EXCHANGE) && flags.intersects(exclusive)
    {
        return Err(Errno::EINVAL);
    }
    Ok(())
}

/// A rename, and the inodes of both names.
#[derive(Clone, Copy)]
pub(super) struct Rename<'a> {
    pub(crate) who: &'a Caller,
    pub(crate) from: End<'a>,
    pub(crate) to: End<'a>,
    pub(crate) flags: RenameFlags,
    pub(crate) source: &'a Node,
    pub(crate) target: Option<&'a Node>,
}
