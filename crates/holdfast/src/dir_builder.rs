/// How to make a directory, as `std::fs::DirBuilder`; an argument of
/// [`Dir::create_dir_with`](crate::Dir::create_dir_with).
///
/// ```
/// use holdfast::{DirBuilder, FileSystem};
///
/// let fs = FileSystem::memory();
/// fs.create_dir_with("/home/ada", DirBuilder::new().recursive(true).mode(0o700))?;
/// assert_eq!(fs.metadata("/home/ada")?.mode() & 0o777, 0o700);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DirBuilder {
    mode: u32,
    recursive: bool,
}

impl DirBuilder {
    /// One directory, mode 0777.
    #[must_use]
    pub fn new() -> Self {
        Self {
            mode: 0o777,
            recursive: false,
        }
    }

    /// Also make missing parents, and succeed if the directory exists?
    pub fn recursive(&mut self, recursive: bool) -> &mut Self {
        self.recursive = recursive;
        self
    }

    /// The mode, before the caller's umask.
    pub fn mode(&mut self, mode: u32) -> &mut Self {
        self.mode = mode;
        self
    }

    pub(crate) fn is_recursive(&self) -> bool {
        self.recursive
    }

    pub(crate) fn perm(&self) -> u16 {
        (self.mode & 0o7777) as u16
    }
}

impl Default for DirBuilder {
    fn default() -> Self {
        Self::new()
    }
}
