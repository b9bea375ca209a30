//! What directories and files are called.

/// Names of files and directories have 24 bytes.
pub(crate) const FILE: &str = "file-";
pub(crate) const DIR: &str = "dir--";

/// The digits of a file's number, enough for all.
pub(crate) const DIGITS: usize = 19;

/// A thread's own directory.
pub(crate) fn top(thread: usize) -> String {
    format!("t{thread}")
}

/// A directory of files below a thread's own.
pub(crate) fn folder(number: usize) -> String {
    format!("d{number:07}")
}
