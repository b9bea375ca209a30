use std::os::unix::fs::PermissionsExt as _;

/// The permission bits of an inode, as `std::fs::Permissions` with its Unix extension; each
/// converts into the other.
///
/// ```
/// use holdfast::{FileSystem, Permissions};
///
/// let fs = FileSystem::memory();
/// fs.write("/key", "secret")?;
/// fs.set_permissions("/key", Permissions::from_mode(0o400))?;
/// assert!(fs.metadata("/key")?.permissions().readonly());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permissions {
    mode: u32,
}

impl Permissions {
    /// Permissions of this mode word (as chmod(2) takes it; bits of a file type do no harm).
    #[must_use]
    pub const fn from_mode(mode: u32) -> Self {
        Self { mode }
    }

    /// The mode word. From [`Metadata::permissions`](crate::Metadata::permissions) it holds the
    /// bits of the file type as well, as the standard library's does.
    #[must_use]
    pub const fn mode(&self) -> u32 {
        self.mode
    }

    /// Changes the mode word (of this value; [`set_permissions`] changes a file).
    ///
    /// [`set_permissions`]: crate::Dir::set_permissions
    pub const fn set_mode(&mut self, mode: u32) {
        self.mode = mode;
    }

    /// Is no write bit set?
    #[must_use]
    pub const fn readonly(&self) -> bool {
        self.mode & 0o222 == 0
    }

    /// Clears all write bits, or sets them all.
    pub const fn set_readonly(&mut self, readonly: bool) {
        if readonly {
            self.mode &= !0o222;
        } else {
            self.mode |= 0o222;
        }
    }

    /// The bits that chmod(2) heeds.
    pub(crate) const fn perm(&self) -> u16 {
        (self.mode & 0o7777) as u16
    }
}

impl From<std::fs::Permissions> for Permissions {
    fn from(permissions: std::fs::Permissions) -> Self {
        Self::from_mode(permissions.mode())
    }
}

impl From<Permissions> for std::fs::Permissions {
    fn from(permissions: Permissions) -> Self {
        Self::from_mode(permissions.mode)
    }
}
