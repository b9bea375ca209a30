//! The types that every Holdfast crate shares: numbers, errors, attributes, modes, names, callers.
//!
//! Nothing here does I/O or uses threads. Values are Linux's where Linux has a number for them
//! (mode bits, errno, open flags), so that a front end can pass them through unchanged.

mod attr;
mod caller;
mod errno;
mod flags;
mod hop;
mod ino;
mod kind;
mod name;
mod time;

pub use attr::{Attr, SetAttr, SetTime, StatFs};
pub use caller::{Caller, Caps};
pub use errno::{Errno, Result};
pub use flags::{Access, Fallocate, FileFlags, OpenFlags, RenameFlags, Whence, XattrSet};
pub use ino::Ino;
pub use kind::{FileType, S_ISGID, S_ISUID, S_ISVTX, mode_bits};
pub use name::{NAME_MAX, PATH_MAX, SYMLOOP_MAX, check_component, check_new_name, is_special};
pub use time::Time;
#[doc(hidden)]
pub use tracing::trace_span;
