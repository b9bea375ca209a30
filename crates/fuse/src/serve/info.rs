//! Information on a mount, as extended attributes of its root.

use std::sync::Arc;

/// Information on a mount as JSON, in the given detail.
pub type InfoSource = Arc<dyn Fn(InfoDetail) -> String + Send + Sync>;

/// How much an [`InfoSource`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InfoDetail {
    /// What is known without a scan.
    Brief,
    /// Also counts that need a scan of all inodes in memory.
    Inodes,
}

/// The extended attribute of the root directory with the mount's [`InfoDetail::Brief`] information.
pub const INFO_XATTR: &str = "holdfast.info";

/// The same for [`InfoDetail::Inodes`].
pub const INODES_XATTR: &str = "holdfast.info.inodes";

impl InfoDetail {
    /// The detail that an attribute of the root stands for.
    pub(super) fn of(name: &[u8]) -> Option<Self> {
        let details = [(INFO_XATTR, Self::Brief), (INODES_XATTR, Self::Inodes)];
        let found = details
            .into_iter()
            .find(|(known, _)| name == known.as_bytes());
        found.map(|(_, detail)| detail)
    }
}
