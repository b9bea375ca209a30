//! Attributes: reading and changing them, and the access times that reads move.

pub(crate) mod atime;
pub(crate) mod flags;
pub(crate) mod get;
pub(crate) mod privileges;
pub(crate) mod set;
