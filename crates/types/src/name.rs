use crate::{Errno, Result};

/// Longest name of a directory entry, in bytes.
pub const NAME_MAX: usize = 255;
/// Longest path that a path-taking call accepts, in bytes, the terminating NUL counted.
pub const PATH_MAX: usize = 4096;
/// Symbolic links followed in one path walk before `ELOOP`.
pub const SYMLOOP_MAX: u32 = 40;

/// Checks a name that is looked up: not empty, no slash, no NUL, at most [`NAME_MAX`] bytes.
///
/// # Errors
/// `ENOENT` if empty, `ENAMETOOLONG` if too long, `EINVAL` for a slash or NUL.
#[inline]
pub fn check_component(name: &[u8]) -> Result<()> {
    if name.is_empty() {
        return Err(Errno::ENOENT);
    }
    if name.len() > NAME_MAX {
        return Err(Errno::ENAMETOOLONG);
    }
    if name.iter().any(|byte| matches!(byte, b'/' | 0)) {
        return Err(Errno::EINVAL);
    }
    Ok(())
}

/// May a path end in this name, though no directory lists it? That is `.`, `..`, or `/` (the last
/// component of a path of slashes only).
#[inline]
#[must_use]
pub fn is_special(name: &[u8]) -> bool {
    matches!(name, b"." | b".." | b"/")
}

/// Checks a name that is to be created: as [`check_component`], and not special.
///
/// # Errors
/// Those of [`check_component`], and `EEXIST` for `.`, `..` and `/`, which always exist.
#[inline]
pub fn check_new_name(name: &[u8]) -> Result<()> {
    if is_special(name) {
        return Err(Errno::EEXIST);
    }
    check_component(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_but_slash_and_nul_are_a_name() {
        assert_eq!(check_new_name(b"a\nb\xff"), Ok(()));
        assert_eq!(check_new_name(&[b'x'; 255]), Ok(()));
        assert_eq!(check_new_name(&[b'x'; 256]), Err(Errno::ENAMETOOLONG));
        assert_eq!(check_new_name(b""), Err(Errno::ENOENT));
        assert_eq!(check_new_name(b"a/b"), Err(Errno::EINVAL));
        assert_eq!(check_new_name(b".."), Err(Errno::EEXIST));
        assert_eq!(check_component(b".."), Ok(()));
    }
}
