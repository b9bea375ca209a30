//! Changes of whole trees: removing them, setting owners or modes.

mod mode;
mod tree;

pub use mode::ModeChange;
pub use tree::{ChangeEvent, ChangeOptions, Changed};

use std::path::Path;

use crate::copy::CopyError;
use crate::types::SetAttr;
use crate::{FileSystem, Permissions};
use tree::{Change, Order};

impl FileSystem {
    /// Removes a name and all below it, as `rm -r`; links are not followed. Names that cannot be
    /// removed are reported to `watch`, and the work goes on.
    ///
    /// ```
    /// use holdfast::{ChangeOptions, FileSystem};
    ///
    /// let fs = FileSystem::memory();
    /// fs.create_dir_all("/tree/below")?;
    /// fs.write("/tree/below/file", "content")?;
    /// let removed = fs.remove_tree("/tree", &ChangeOptions::default(), &mut |_| ())?;
    /// assert_eq!(removed.names, 3);
    /// assert!(!fs.exists("/tree"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such name; `EBUSY` for the root; `EROFS`, `EIO`; `ECANCELED` when stopped.
    pub fn remove_tree(
        &self,
        path: impl AsRef<Path>,
        options: &ChangeOptions,
        watch: &mut dyn FnMut(ChangeEvent<'_>),
    ) -> Result<Changed, CopyError> {
        let change = Change::new(self, path.as_ref(), options, watch);
        change.all(Order::After, &|inside, dir, name, about| {
            inside.remove_name(dir, name, about.kind.is_dir())
        })
    }

    /// Sets owner and group (`None`: unchanged) of a name and all below it, as `chown -R`. Symbolic
    /// links are not followed.
    ///
    /// # Errors
    /// As [`remove_tree`](Self::remove_tree).
    pub fn set_owner_tree(
        &self,
        path: impl AsRef<Path>,
        uid: Option<u32>,
        gid: Option<u32>,
        options: &ChangeOptions,
        watch: &mut dyn FnMut(ChangeEvent<'_>),
    ) -> Result<Changed, CopyError> {
        let change = Change::new(self, path.as_ref(), options, watch);
        change.all(Order::Before, &|inside, dir, name, _| {
            let set = SetAttr {
                uid,
                gid,
                ..SetAttr::default()
            };
            inside.set_attributes(dir, name, &set)
        })
    }

    /// Changes the mode of a name and of all below it, as `chmod -R`. Symbolic links have none, and
    /// are left alone.
    ///
    /// # Errors
    /// As [`remove_tree`](Self::remove_tree).
    pub fn set_mode_tree(
        &self,
        path: impl AsRef<Path>,
        mode: &ModeChange,
        options: &ChangeOptions,
        watch: &mut dyn FnMut(ChangeEvent<'_>),
    ) -> Result<Changed, CopyError> {
        let umask = self.caller().umask;
        let change = Change::new(self, path.as_ref(), options, watch);
        change.all(Order::Before, &|inside, dir, name, about| {
            if about.kind == crate::types::FileType::Symlink {
                return Ok(());
            }
            let is_dir = about.kind.is_dir();
            let mode = mode.apply(Permissions::from_mode(about.perm.into()), is_dir, umask);
            let set = SetAttr {
                perm: Some((mode.mode() & 0o7777) as u16),
                ..SetAttr::default()
            };
            inside.set_attributes(dir, name, &set)
        })
    }
}

#[cfg(test)]
mod tests;
