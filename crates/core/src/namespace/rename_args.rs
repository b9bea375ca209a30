//! The arguments of a rename.

use crate::node::Node;
use crate::types::{Errno, RenameFlags, Result};

/// One end of a rename: a directory and a name in it.
#[derive(Clone, Copy)]
pub(crate) struct End<'a> {
    pub(crate) dir: &'a Node,
    pub(crate) name: &'a [u8],
    /// Trailing slashes: the name has to be a directory's.
    pub(crate) slash: bool,
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
