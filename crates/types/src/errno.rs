use std::{fmt, io};

/// A Linux error number, as the core returns it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(i32);

/// A result with an [`Errno`] as its error.
pub type Result<T, E = Errno> = std::result::Result<T, E>;

macro_rules! errnos {
    ($($name:ident)*) => {
        impl Errno {
            $(
                #[doc = concat!("`", stringify!($name), "` of errno(3).")]
                pub const $name: Self = Self(libc::$name);
            )*

            /// The symbolic name, such as `ENOENT`, where this crate knows one.
            #[must_use]
            pub const fn symbol(self) -> Option<&'static str> {
                match self.0 {
                    $(libc::$name => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

errnos! {
    EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG EBADF EAGAIN ENOMEM EACCES EFAULT EBUSY EEXIST EXDEV ENODEV
    ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG ENOSPC ESPIPE EROFS EMLINK EPIPE
    ERANGE EDEADLK ENAMETOOLONG ENOLCK ENOSYS ENOTEMPTY ELOOP ENODATA EOVERFLOW EOPNOTSUPP ESTALE
    EDQUOT EUCLEAN ECANCELED ENOTCONN ETIMEDOUT EPROTO
}

impl Errno {
    /// An error number taken from the operating system (positive).
    #[must_use]
    pub const fn from_raw(raw: i32) -> Self {
        Self(raw)
    }

    /// The positive number, as errno(3) holds it.
    #[must_use]
    pub const fn raw(self) -> i32 {
        self.0
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.symbol() {
            Some(symbol) => f.write_str(symbol),
            None => write!(f, "Errno({})", self.0),
        }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", io::Error::from_raw_os_error(self.0))
    }
}

impl std::error::Error for Errno {}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> Self {
        Self::from_raw_os_error(errno.0)
    }
}

impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Self {
        Self(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_and_numbers_agree() {
        assert_eq!(Errno::ENOENT.raw(), 2);
        assert_eq!(format!("{:?}", Errno::ENOTEMPTY), "ENOTEMPTY");
        assert_eq!(Errno::from_raw(4000).symbol(), None);
        assert_eq!(Errno::from(io::Error::from(Errno::EUCLEAN)), Errno::EUCLEAN);
    }
}
