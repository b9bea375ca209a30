//! Errors on their way to C: the number, and the reason of `hf_last_error`.

use std::cell::RefCell;
use std::ffi::c_char;
use std::{fmt, io};

use holdfast::VolumeError;
use holdfast::types::Errno;

/// The number that C gets, and the whole reason.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) errno: Errno,
    pub(crate) reason: String,
}

/// The result of what a function of the library does.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub(crate) fn new(errno: Errno, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { errno, reason }
    }

    /// An argument that no call takes.
    pub(crate) fn invalid(reason: impl Into<String>) -> Self {
        Self::new(Errno::EINVAL, reason)
    }

    /// Flags that a call does not have; `known` are those that it has.
    pub(crate) fn unknown_flags(flags: u32, known: &str) -> Self {
        Self::invalid(format!(
            "flags {flags:#x} have no meaning here; pass {known}"
        ))
    }

    /// The failure of an operation on the object of this name.
    pub(crate) fn at(error: io::Error, object: &impl fmt::Display) -> Self {
        let errno = Errno::from(error);
        let reason = match remedy(errno) {
            Some(remedy) => format!("{object}: {errno}; {remedy}"),
            None => format!("{object}: {errno}"),
        };
        Self { errno, reason }
    }
}

/// The reason of a volume's error names its file or device, and a remedy.
impl From<VolumeError> for Failure {
    fn from(error: VolumeError) -> Self {
        Self::new(error.errno(), error.to_string())
    }
}

/// Names the object of an operation in its error.
pub(crate) trait About<T> {
    fn about(self, object: &impl fmt::Display) -> Result<T>;
}

impl<T, E: Into<io::Error>> About<T> for std::result::Result<T, E> {
    fn about(self, object: &impl fmt::Display) -> Result<T> {
        self.map_err(|error| Failure::at(error.into(), object))
    }
}

/// What a caller can do about an error.
fn remedy(errno: Errno) -> Option<&'static str> {
    Some(match errno {
        Errno::ENOENT => "paths start at the root of this file system; O_CREAT makes a file",
        Errno::EACCES => "the user of this handle lacks the permission; see hf_as_user",
        Errno::EPERM => "only the owner or the superuser may; see hf_as_user",
        Errno::EROFS => "open the volume without HF_READ_ONLY",
        Errno::ENOSPC => "remove files, or raise the limits: `holdfast resize`, bytes_max",
        Errno::EDQUOT => "remove files, or raise the quota",
        Errno::EXDEV => "both names must be on one file system",
        Errno::ENOTEMPTY => "remove the names in it first",
        Errno::EEXIST => "remove the name first, or choose another",
        Errno::EISDIR => "it is a directory; see hf_opendir, hf_rmdir",
        Errno::ENOTDIR => "a name before the last one is not a directory, or the last should be",
        Errno::ENAMETOOLONG => "a path has at most 4095 bytes, a name 255; see hf_subdir",
        Errno::EBADF => "the file is not open for this; see the flags of hf_open",
        Errno::ERANGE => "pass a larger buffer; size 0 asks for the length",
        Errno::EINVAL => "an argument is out of range, or not for this kind of file",
        Errno::EIO => "the volume was closed or has failed; close it, then run `holdfast fsck`",
        _ => return None,
    })
}

thread_local! {
    /// The reason of this thread's last failure and a NUL; empty before the first one.
    static LAST: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Keeps a reason for `hf_last_error` on this thread.
pub(crate) fn keep(reason: &str) {
    let mut text: Vec<u8> = reason.bytes().filter(|&byte| byte != 0).collect();
    text.push(0);
    // A thread that is ending has no last error.
    let _ = LAST.try_with(|last| last.replace(text));
}

/// The last reason on this thread: valid until the thread's next failure.
pub(crate) fn last() -> *const c_char {
    let kept = LAST.try_with(|last| match last.borrow().as_slice() {
        [] => None,
        text => Some(text.as_ptr().cast()),
    });
    kept.ok().flatten().unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> Vec<u8> {
        LAST.with_borrow(Vec::clone)
    }

    #[test]
    fn each_thread_has_its_own_last_reason() {
        assert_eq!(kept(), b"");
        keep("this \0thread");
        std::thread::spawn(|| {
            assert_eq!(kept(), b"");
            keep("the other one");
        })
        .join()
        .unwrap();
        assert_eq!(kept(), b"this thread\0");
    }

    #[test]
    fn a_reason_names_the_object_and_the_remedy() {
        let failed: Result<()> = Err(Errno::ENOSPC).about(&"/data");
        let failure = failed.unwrap_err();
        assert_eq!(failure.errno, Errno::ENOSPC);
        assert!(
            failure.reason.starts_with("/data: No space left"),
            "{failure:?}"
        );
        assert!(failure.reason.contains("holdfast resize"), "{failure:?}");
    }
}
