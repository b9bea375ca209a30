//! Options as mount(8) gives them with `-o`.

use rustix::mount::MountFlags;
use std::path::PathBuf;

/// How a file system is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountOptions {
    /// Read-only.
    pub read_only: bool,
    /// Set-id bits mean nothing.
    pub nosuid: bool,
    /// Device nodes do not open.
    pub nodev: bool,
    /// Nothing is executed.
    pub noexec: bool,
    /// Writes wait until they are durable.
    pub sync: bool,
    /// Changes of directories wait until they are durable.
    pub dirsync: bool,
    /// Symbolic links are not followed.
    pub nosymfollow: bool,
    /// How access times are kept.
    pub atime: AtimeOption,
    /// Access times of directories are left alone.
    pub nodiratime: bool,
    /// Times are kept in memory until something else is written.
    pub lazytime: bool,
    /// Others than the mounter may use it; `None`: if the mounter is root.
    pub allow_other: Option<bool>,
    /// The kernel checks permissions.
    pub default_permissions: bool,
    /// The mount point may have files in it, which the mount hides.
    pub nonempty: bool,
    /// Change the options of a file system that is mounted.
    pub remount: bool,
    /// Largest read in bytes; 0: what the protocol allows.
    pub max_read: u32,
    /// Preferred size of I/O in bytes, if given.
    pub block_size: Option<u32>,
    /// First column of the mount table for a mount of the type `fuse`.
    pub fsname: String,
    /// The type is `fuse.` or `fuseblk.` and this.
    pub subtype: String,
    /// Whether it is mounted as `fuseblk`, and over what.
    pub block: BlockMount,
    /// Unknown options in their order: they are for the file system.
    pub unknown: Vec<(String, Option<String>)>,
}

/// A mount of the type `fuseblk`, over a loop device. The kernel passes sync(2) and syncfs(2) on
/// (since Linux 6.18), and umount(2) returns when the file system is closed. The first column of
/// the mount table is the loop device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BlockMount {
    /// As `fuse`.
    #[default]
    No,
    /// Over this image file or device if possible, else as `fuse`.
    IfPossible(PathBuf),
    /// Over this image file or device, or no mount.
    Required(PathBuf),
}

/// How access times are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtimeOption {
    /// Updated when they are behind the change, or a day old.
    #[default]
    Relatime,
    /// Updated at every access.
    Strict,
    /// Never updated.
    None,
}

impl Default for MountOptions {
    fn default() -> Self {
        Self {
            read_only: false,
            nosuid: false,
            nodev: false,
            noexec: false,
            sync: false,
            dirsync: false,
            nosymfollow: false,
            atime: AtimeOption::default(),
            nodiratime: false,
            lazytime: false,
            allow_other: None,
            default_permissions: true,
            nonempty: false,
            remount: false,
            max_read: 0,
            block_size: None,
            fsname: "holdfast".into(),
            subtype: "holdfast".into(),
            block: BlockMount::default(),
            unknown: Vec::new(),
        }
    }
}

/// An option with an invalid value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("option {name}: {reason}")]
pub struct OptionError {
    /// The option.
    pub name: String,
    /// What is wrong with it.
    pub reason: String,
}

impl MountOptions {
    /// The defaults, changed by a comma-separated list.
    ///
    /// # Errors
    /// [`OptionError`] for an invalid value. Unknown options are no error: they are stored in
    /// [`MountOptions::unknown`].
    pub fn parse(list: &str) -> Result<Self, OptionError> {
        let mut options = Self::default();
        options.apply(list)?;
        Ok(options)
    }

    /// Applies a comma-separated list (`\,` is a comma within a value); later ones win.
    ///
    /// # Errors
    /// As [`MountOptions::parse`].
    pub fn apply(&mut self, list: &str) -> Result<(), OptionError> {
        for item in split(list) {
            let (name, value) = match item.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (item.as_str(), None),
            };
            if !(self.apply_flag(name, value) || self.apply_value(name, value)?) {
                self.unknown
                    .push((name.to_owned(), value.map(str::to_owned)));
            }
        }
        Ok(())
    }

    /// Options without a value; `false` if this is none.
    fn apply_flag(&mut self, name: &str, value: Option<&str>) -> bool {
        if is_mount_helpers(name) {
            return true;
        }
        if value.is_some() {
            return false;
        }
        match name {
            "ro" => self.read_only = true,
            "rw" => self.read_only = false,
            "nosuid" => self.nosuid = true,
            "suid" => self.nosuid = false,
            "nodev" => self.nodev = true,
            "dev" => self.nodev = false,
            "noexec" => self.noexec = true,
            "exec" => self.noexec = false,
            "sync" => self.sync = true,
            "async" => self.sync = false,
            "dirsync" => self.dirsync = true,
            "nosymfollow" => self.nosymfollow = true,
            "symfollow" => self.nosymfollow = false,
            "noatime" => self.atime = AtimeOption::None,
            "atime" | "relatime" | "nostrictatime" => self.atime = AtimeOption::Relatime,
            "strictatime" | "norelatime" => self.atime = AtimeOption::Strict,
            "nodiratime" => self.nodiratime = true,
            "diratime" => self.nodiratime = false,
            "lazytime" => self.lazytime = true,
            "nolazytime" => self.lazytime = false,
            "allow_other" => self.allow_other = Some(true),
            "noallow_other" => self.allow_other = Some(false),
            "default_permissions" => self.default_permissions = true,
            "nonempty" => self.nonempty = true,
            "remount" => self.remount = true,
            "defaults" => self.reset_defaults(),
            // Options that mount(8) handles itself, or that are always so.
            "auto" | "noauto" | "user" | "nouser" | "users" | "owner" | "group" | "_netdev"
            | "nofail" | "nomand" | "loud" | "silent" | "noiversion" => {}
            _ => return false,
        }
        true
    }

    /// `defaults` of fstab: rw, suid, dev, exec, async.
    fn reset_defaults(&mut self) {
        self.read_only = false;
        self.nosuid = false;
        self.nodev = false;
        self.noexec = false;
        self.sync = false;
    }

    /// Options with a value; `false` if this is none.
    fn apply_value(&mut self, name: &str, value: Option<&str>) -> Result<bool, OptionError> {
        let needed = || {
            value
                .filter(|value| !value.is_empty())
                .ok_or_else(|| OptionError {
                    name: name.into(),
                    reason: "it needs a value".into(),
                })
        };
        match name {
            "fsname" => self.fsname = needed()?.into(),
            "subtype" => self.subtype = subtype(needed()?)?,
            "max_read" => self.max_read = number(name, needed()?, 4096, 1 << 20)?,
            "blksize" => {
                let size = number(name, needed()?, 512, 1 << 20)?;
                if !size.is_power_of_two() {
                    return Err(OptionError {
                        name: name.into(),
                        reason: format!("{size} is not a power of two"),
                    });
                }
                self.block_size = Some(size);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The flags of mount(2).
    #[must_use]
    pub fn flags(&self) -> MountFlags {
        let mut flags = MountFlags::empty();
        flags.set(MountFlags::RDONLY, self.read_only);
        flags.set(MountFlags::NOSUID, self.nosuid);
        flags.set(MountFlags::NODEV, self.nodev);
        flags.set(MountFlags::NOEXEC, self.noexec);
        flags.set(MountFlags::SYNCHRONOUS, self.sync);
        flags.set(MountFlags::DIRSYNC, self.dirsync);
        flags.set(MountFlags::NOATIME, self.atime == AtimeOption::None);
        flags.set(MountFlags::STRICTATIME, self.atime == AtimeOption::Strict);
        flags.set(MountFlags::RELATIME, self.atime == AtimeOption::Relatime);
        flags.set(MountFlags::NODIRATIME, self.nodiratime);
        flags.set(MountFlags::LAZYTIME, self.lazytime);
        flags.set(MountFlags::NOSYMFOLLOW, self.nosymfollow);
        flags
    }
}

/// Options that mount(8) and similar programs keep for themselves.
fn is_mount_helpers(name: &str) -> bool {
    name.is_empty() || name.starts_with("x-") || name.starts_with("X-") || name == "comment"
}

fn subtype(value: &str) -> Result<String, OptionError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.#".contains(&byte);
    if value.bytes().all(plain) {
        return Ok(value.into());
    }
    Err(OptionError {
        name: "subtype".into(),
        reason: "only letters, digits and -_.# are allowed".into(),
    })
}

fn number(name: &str, value: &str, min: u32, max: u32) -> Result<u32, OptionError> {
    match value.parse() {
        Ok(number) if (min..=max).contains(&number) => Ok(number),
        _ => Err(OptionError {
            name: name.into(),
            reason: format!("{value:?} is not a number from {min} to {max}"),
        }),
    }
}

/// Splits at commas that no backslash precedes.
fn split(list: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    let mut chars = list.chars();
    while let Some(char) = chars.next() {
        let last = items.len() - 1;
        match char {
            ',' => items.push(String::new()),
            '\\' => items[last].push(chars.next().unwrap_or('\\')),
            other => items[last].push(other),
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_options_win_and_unknown_ones_are_told_by_name() {
        let options =
            MountOptions::parse("ro,nosuid,size=1G,rw,x-systemd.automount,inode64,noatime")
                .unwrap();
        assert!(!options.read_only && options.nosuid);
        assert_eq!(options.atime, AtimeOption::None);
        let unknown = [("size".into(), Some("1G".into())), ("inode64".into(), None)];
        assert_eq!(options.unknown, unknown);
        assert!(
            options
                .flags()
                .contains(MountFlags::NOSUID | MountFlags::NOATIME)
        );
        assert!(!options.flags().contains(MountFlags::RDONLY));
    }

    #[test]
    fn commas_within_values_can_be_written() {
        let options = MountOptions::parse(r"fsname=a\,b\\c,,subtype=x").unwrap();
        assert_eq!(options.fsname, r"a,b\c");
        assert_eq!(options.subtype, "x");
        assert!(options.unknown.is_empty());
    }

    #[test]
    fn absurd_values_are_refused_with_their_option() {
        for list in [
            "max_read=0",
            "max_read=x",
            "blksize=1000",
            "fsname=",
            "subtype=a/b",
            "fsname",
        ] {
            let error = MountOptions::parse(list).unwrap_err();
            assert_eq!(error.name, list.split('=').next().unwrap());
        }
    }

    #[test]
    fn a_flag_with_a_value_is_not_the_flag() {
        let options = MountOptions::parse("ro=1").unwrap();
        assert!(!options.read_only);
        assert_eq!(options.unknown, [("ro".to_owned(), Some("1".to_owned()))]);
    }
}
