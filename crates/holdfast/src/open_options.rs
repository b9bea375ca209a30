use crate::types::{Errno, OpenFlags, Result};

/// How to open a file, as `std::fs::OpenOptions` with its Unix extension; an argument of
/// [`Dir::open_with`](crate::Dir::open_with).
///
/// ```
/// use holdfast::{FileSystem, OpenOptions};
/// use std::io::Write;
///
/// let fs = FileSystem::memory();
/// let mut log = fs.open_with("/log", OpenOptions::new().append(true).create(true).mode(0o600))?;
/// log.write_all(b"started\n")?;
///
/// // A file without a name, which gets one when it is whole.
/// let mut draft = fs.open_with("/", OpenOptions::new().write(true).tmpfile(true))?;
/// draft.write_all(b"all of it")?;
/// fs.link_file(&draft, "/published")?;
/// assert_eq!(fs.read("/published")?, b"all of it");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions {
    read: bool,
    write: bool,
    append: bool,
    truncate: bool,
    create: bool,
    create_new: bool,
    /// Flags set by name or number, without the access mode.
    flags: OpenFlags,
    mode: u32,
}

impl OpenOptions {
    /// Nothing allowed yet, mode 0666.
    #[must_use]
    pub fn new() -> Self {
        Self {
            read: false,
            write: false,
            append: false,
            truncate: false,
            create: false,
            create_new: false,
            flags: OpenFlags::empty(),
            mode: 0o666,
        }
    }

    /// For reading?
    pub fn read(&mut self, read: bool) -> &mut Self {
        self.read = read;
        self
    }

    /// For writing?
    pub fn write(&mut self, write: bool) -> &mut Self {
        self.write = write;
        self
    }

    /// For writing, every write at the end, also with concurrent writers?
    pub fn append(&mut self, append: bool) -> &mut Self {
        self.append = append;
        self
    }

    /// Truncate to length 0 when opened?
    pub fn truncate(&mut self, truncate: bool) -> &mut Self {
        self.truncate = truncate;
        self
    }

    /// Make it if it does not exist?
    pub fn create(&mut self, create: bool) -> &mut Self {
        self.create = create;
        self
    }

    /// Make it, and fail if the name exists, even as a dangling symbolic link?
    pub fn create_new(&mut self, create_new: bool) -> &mut Self {
        self.create_new = create_new;
        self
    }

    /// The mode of a file that is made, before the caller's umask.
    pub fn mode(&mut self, mode: u32) -> &mut Self {
        self.mode = mode;
        self
    }

    /// More flags of open(2), by their Linux numbers (`O_NOATIME`, `O_PATH`, `O_SYNC`, ...),
    /// replacing those set by this or the following methods. Bits of the access mode are ignored.
    pub fn custom_flags(&mut self, flags: i32) -> &mut Self {
        let access = OpenFlags::WRITE_ONLY | OpenFlags::READ_WRITE;
        self.flags = OpenFlags::from_bits_retain(flags).difference(access);
        self
    }

    /// Fail unless it is a directory (`O_DIRECTORY`)?
    pub fn directory(&mut self, directory: bool) -> &mut Self {
        self.flags.set(OpenFlags::DIRECTORY, directory);
        self
    }

    /// Fail if the path ends in a symbolic link (`O_NOFOLLOW`)?
    pub fn no_follow(&mut self, no_follow: bool) -> &mut Self {
        self.flags.set(OpenFlags::NOFOLLOW, no_follow);
        self
    }

    /// Make a file without a name in the directory that the path leads to (`O_TMPFILE`)? It
    /// must be open for writing; [`link_file`](crate::Dir::link_file) gives it a name,
    /// otherwise it goes when closed.
    pub fn tmpfile(&mut self, tmpfile: bool) -> &mut Self {
        self.flags.set(OpenFlags::TMPFILE, tmpfile);
        self
    }

    /// Permission bits for what is made.
    pub(crate) fn perm(&self) -> u16 {
        (self.mode & 0o7777) as u16
    }

    /// The flags of open(2). The rules are the standard library's.
    ///
    /// # Errors
    /// `EINVAL` without any access, or for creating or truncating without writing, or for
    /// truncating what is appended to.
    pub(crate) fn open_flags(&self) -> Result<OpenFlags> {
        let access = match (self.read, self.write, self.append) {
            (false, false, false) => return Err(Errno::EINVAL),
            (true, false, false) => OpenFlags::empty(),
            (false, true, false) => OpenFlags::WRITE_ONLY,
            (true, true, false) => OpenFlags::READ_WRITE,
            (false, _, true) => OpenFlags::WRITE_ONLY | OpenFlags::APPEND,
            (true, _, true) => OpenFlags::READ_WRITE | OpenFlags::APPEND,
        };
        let changes = self.truncate || self.create || self.create_new;
        let truncates_appended = self.append && self.truncate && !self.create_new;
        if changes && !(self.write || self.append) || truncates_appended {
            return Err(Errno::EINVAL);
        }
        let mut flags = access | self.flags;
        if self.create_new {
            flags |= OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
        } else {
            flags.set(
                OpenFlags::CREATE,
                self.create || self.flags.contains(OpenFlags::CREATE),
            );
            flags.set(
                OpenFlags::TRUNCATE,
                self.truncate || self.flags.contains(OpenFlags::TRUNCATE),
            );
        }
        Ok(flags)
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}
