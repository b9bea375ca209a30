//! Listings of directories, with the attributes of each entry.

use std::path::Path;
use std::sync::Arc;

use holdfast::types::{Errno, FileType};
use parking_lot::Mutex;
use zerocopy::IntoBytes as _;

use crate::failure::{About as _, Result};
use crate::grow;
use crate::objects::{Listing, Place};
use crate::types::{hf_dirent, hf_stat};

pub(crate) fn open(place: &Place, path: &Path) -> Result<Listing> {
    Ok(Listing {
        shared: Arc::clone(&place.shared),
        entries: Mutex::new(place.dir.read_dir(path).about(&path.display())?),
        path: path.display().to_string(),
    })
}

/// The next entry, and its attributes where they are wanted. `false` at the end.
pub(crate) fn next(listing: &Listing, entry: &mut [u8], attr: Option<&mut [u8]>) -> Result<bool> {
    let Some(found) = listing.entries.lock().next() else {
        return Ok(false);
    };
    let found = found.about(&listing.path)?;
    let metadata = found.metadata();
    if let (Some(attr), Ok(metadata)) = (attr, &metadata) {
        grow::write(attr, &hf_stat::from(*metadata));
    }
    let kind: FileType = found.file_type().about(&listing.path)?.into();
    let name = found.file_name_ref().as_encoded_bytes();
    let mut dirent = hf_dirent {
        size: 0,
        error: metadata.err().map_or(0, |error| Errno::from(error).raw()),
        d_ino: found.ino(),
        d_type: kind.dirent_type().into(),
        d_namlen: name.len() as u32,
        d_name: [0; 256],
    };
    // A name has at most 255 bytes, and a NUL stays behind it.
    dirent.d_name.as_mut_bytes()[..name.len()].copy_from_slice(name);
    grow::write(entry, &dirent);
    Ok(true)
}
