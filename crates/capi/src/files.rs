//! Open files.

use std::ffi::c_int;
use std::path::Path;
use std::sync::Arc;

use holdfast::OpenOptions;

use crate::failure::{About as _, Failure, Result};
use crate::objects::{Opened, Place};

pub(crate) fn open(place: &Place, path: &Path, flags: c_int, mode: u32) -> Result<Opened> {
    let access = flags & libc::O_ACCMODE;
    if access == libc::O_ACCMODE {
        let reason = "pass one of O_RDONLY, O_WRONLY, O_RDWR";
        return Err(Failure::invalid(reason));
    }
    let mut options = OpenOptions::new();
    options
        .read(access != libc::O_WRONLY)
        .write(access != libc::O_RDONLY)
        .custom_flags(flags)
        .mode(mode);
    let path_text = path.display();
    Ok(Opened {
        shared: Arc::clone(&place.shared),
        file: place.dir.open_with(path, &options).about(&path_text)?,
        path: path_text.to_string(),
    })
}
