use crate::types::Errno;

/// When a read updates a file's access time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtimePolicy {
    /// When it is not later than the last change, or a day old.
    #[default]
    Relatime,
    /// Always.
    Strict,
    /// Never.
    None,
}

/// The behaviour of a file system: the options of mount(8) that do not belong to a front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// When a read updates access times.
    pub atime: AtimePolicy,
    /// Do directories keep their access time (`nodiratime`)?
    pub nodiratime: bool,
    /// Times that a use updates reach the store only together with another change of the inode.
    pub lazytime: bool,
    /// Every change fails with `EROFS`.
    pub read_only: bool,
    /// Set-id bits have no effect on execution. (A front end executes; the core only keeps the
    /// option.)
    pub nosuid: bool,
    /// Device inodes cannot be opened (`EACCES`).
    pub nodev: bool,
    /// Nothing can be executed (`EACCES` from access(2) for regular files).
    pub noexec: bool,
    /// Every change is durable when its call returns.
    pub sync: bool,
    /// Every change of a directory's names is durable when its call returns: creation, links,
    /// renames and removals.
    pub dirsync: bool,
    /// The most names of an inode; one more is `EMLINK`.
    pub link_max: u32,
    /// Bytes of memory that all file systems of this process may take together. Unused inodes,
    /// names and content count, and a volume's unwritten changes and tree nodes. Data of memory
    /// stores does not count. There is one limit for the process, and the last value counts. `None`
    /// leaves it unchanged.
    ///
    /// The initial limit is a quarter of the machine's memory, or half of the limit of the control
    /// groups above the process if that is less. It is at least 32 MiB. `u64::MAX`: all of the
    /// machine's memory.
    pub memory: Option<u64>,
    /// A directory with at most this number of names is loaded as a whole when one of them is
    /// looked up. Of a larger one only used names are in memory. It is loaded as a whole when
    /// enough lookups justify that, and if its names fit into an eighth of the memory.
    ///
    /// 0, for tests: no directory is kept as a whole, and almost no names are kept.
    pub whole_directory: u32,
    /// Inodes that a program is likely to use next are loaded together with the one that it uses,
    /// by the order of earlier uses (stat-ahead).
    pub statahead: bool,
    /// Owner of a new root directory. `None`: the user that the creator acts for, if there is one,
    /// or else the superuser.
    pub root_uid: Option<u32>,
    /// Its group.
    pub root_gid: Option<u32>,
    /// Its permission bits.
    pub root_perm: u16,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            atime: AtimePolicy::default(),
            nodiratime: false,
            lazytime: false,
            read_only: false,
            nosuid: false,
            nodev: false,
            noexec: false,
            sync: false,
            dirsync: false,
            link_max: i32::MAX as u32,
            memory: None,
            whole_directory: 4096,
            statahead: true,
            root_uid: None,
            root_gid: None,
            root_perm: 0o755,
        }
    }
}

impl Options {
    /// Parses one option of mount(8); `false`: it is not one of the core's.
    ///
    /// # Errors
    /// `EINVAL` when the option is known and its value is invalid.
    pub fn parse(&mut self, option: &str) -> Result<bool, Errno> {
        let (key, value) = match option.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (option, None),
        };
        let octal = |value: Option<&str>| {
            value
                .and_then(|digits| u16::from_str_radix(digits, 8).ok())
                .ok_or(Errno::EINVAL)
        };
        let number = |value: Option<&str>| {
            value
                .and_then(|digits| digits.parse().ok())
                .ok_or(Errno::EINVAL)
        };
        match key {
            "mode" => self.root_perm = octal(value)? & 0o7777,
            "uid" => self.root_uid = Some(number(value)?),
            "gid" => self.root_gid = Some(number(value)?),
            "statahead" => {
                self.statahead = match value {
                    Some("on") => true,
                    Some("off") => false,
                    _ => return Err(Errno::EINVAL),
                }
            }
            _ if value.is_some() => return Ok(false),
            "ro" => self.read_only = true,
            "rw" => self.read_only = false,
            "relatime" | "atime" => self.atime = AtimePolicy::Relatime,
            "strictatime" | "norelatime" => self.atime = AtimePolicy::Strict,
            "noatime" => self.atime = AtimePolicy::None,
            "diratime" => self.nodiratime = false,
            "nodiratime" => self.nodiratime = true,
            "lazytime" => self.lazytime = true,
            "nolazytime" => self.lazytime = false,
            "nosuid" => self.nosuid = true,
            "suid" => self.nosuid = false,
            "nodev" => self.nodev = true,
            "dev" => self.nodev = false,
            "noexec" => self.noexec = true,
            "exec" => self.noexec = false,
            "sync" => self.sync = true,
            "async" => self.sync = false,
            "dirsync" => self.dirsync = true,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Counts of a file system's objects at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Inodes in memory.
    pub inodes: u64,
    /// Names in memory.
    pub names: u64,
    /// Pages of file content in memory.
    pub pages: u64,
    /// Bytes of these pages and their tables.
    pub bytes: u64,
    /// Open files.
    pub open_files: u64,
    /// Watches.
    pub watches: u64,
    /// File locks held.
    pub locks: u64,
    /// Inodes that are not in memory and are referenced by number
    /// ([`Node::into_raw`](crate::Node::into_raw)): by the kernel of a mount.
    pub inodes_away: u64,
    /// Inodes that were read ahead, so far.
    pub statahead_issued: u64,
    /// Those of them that were used.
    pub statahead_used: u64,
    /// Those of them that were evicted before a use.
    pub statahead_wasted: u64,
    /// How often reclaim kept an inode because it was referenced again, so far.
    pub promoted: u64,
    /// How often an inode was loaded again so soon that it should have been kept, so far.
    pub refaults: u64,
    /// The same for the content of small files.
    pub content_refaults: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_as_mount_spells_them() {
        let mut options = Options::default();
        for known in ["ro", "noatime", "nodev", "mode=1777", "uid=7"] {
            assert_eq!(options.parse(known), Ok(true), "{known}");
        }
        assert!(options.read_only && options.nodev);
        assert_eq!(options.atime, AtimePolicy::None);
        assert_eq!((options.root_perm, options.root_uid), (0o1777, Some(7)));
        assert!(options.statahead);
        assert_eq!(options.parse("statahead=off"), Ok(true));
        assert!(!options.statahead);
        assert_eq!(options.parse("statahead=on"), Ok(true));
        assert!(options.statahead);
        for wrong in ["statahead", "statahead=", "statahead=no"] {
            assert_eq!(options.parse(wrong), Err(Errno::EINVAL), "{wrong}");
        }
        assert_eq!(options.parse("size=1g"), Ok(false));
        assert_eq!(options.parse("ro=yes"), Ok(false));
        assert_eq!(options.parse("mode=9"), Err(Errno::EINVAL));
        assert_eq!(options.parse("uid"), Err(Errno::EINVAL));
    }
}
