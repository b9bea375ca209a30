//! Many inodes and many files in one call.

use std::io;
use std::path::Path;
use std::slice::ChunksExactMut;

use holdfast::engine::Bulkstat;
use holdfast::types::{Caps, Errno, Ino};
use holdfast::{Dir, Metadata, Visit};

use crate::failure::{About as _, Failure, Result};
use crate::grow;
use crate::objects::Place;
use crate::sys::Text;
use crate::types::{hf_content, hf_stat};

/// Attributes of the inodes with numbers above `cursor`, in the order of numbers.
pub(crate) fn bulkstat(
    place: &Place,
    cursor: &mut u64,
    mut attrs: ChunksExactMut<'_, u8>,
) -> Result<usize> {
    if !place.dir.caller().has(Caps::SYS_ADMIN) {
        let reason = "no permissions are asked for each inode; use a handle of hf_as_root";
        return Err(Failure::new(Errno::EPERM, reason));
    }
    let (wanted, mut filled) = (attrs.len(), 0);
    let mut scan = Bulkstat::between(Ino(*cursor), Ino(u64::MAX)).with_batch(wanted);
    let scanned = place
        .shared
        .fs
        .core()
        .bulkstat_attributes(&mut scan, |attr| {
            let Some(place) = attrs.next() else {
                return Ok(Visit::Stop);
            };
            grow::write(place, &hf_stat::from(Metadata::from(*attr)));
            (*cursor, filled) = (attr.ino.0, filled + 1);
            Ok(Visit::Continue)
        });
    match scanned {
        // What came before an error is answered first; the next call meets it anew.
        Err(_) if filled > 0 => Ok(filled),
        scanned => scanned.about(&place.shared.name).map(|()| filled),
    }
}

/// Reads whole files one behind the other into the buffer, until one does not fit into the rest of
/// it. Returns the number of paths that have an answer.
pub(crate) fn read_many<'t>(
    place: &Place,
    paths: impl Iterator<Item = Text<'t>>,
    buffer: &mut [u8],
    contents: ChunksExactMut<'_, u8>,
) -> Result<usize> {
    let (mut used, mut answered) = (0, 0);
    for (path, answer) in paths.zip(contents) {
        let (error, length) = match read_one(&place.dir, path.path()?, &mut buffer[used..]) {
            Ok((length, true)) => (0, length),
            Ok(_) if used > 0 => break,
            // An empty buffer is too small for it, so the caller learns how much it takes.
            Ok((length, false)) => (Errno::ERANGE.raw(), length),
            Err(error) => (Errno::from(error).raw(), 0),
        };
        let content = hf_content {
            size: 0,
            error,
            offset: used as u64,
            length,
        };
        grow::write(answer, &content);
        used += if error == 0 { length as usize } else { 0 };
        answered += 1;
    }
    Ok(answered)
}

/// Reads a whole file into the buffer. Returns its length, and whether it fits.
fn read_one(dir: &Dir, path: &Path, buffer: &mut [u8]) -> io::Result<(u64, bool)> {
    let file = dir.open(path)?;
    let length = file.metadata()?.len();
    let whole = usize::try_from(length).ok();
    match whole.and_then(|whole| buffer.get_mut(..whole)) {
        Some(content) => Ok((file.read_at(content, 0)? as u64, true)),
        None => Ok((length, false)),
    }
}

#[cfg(test)]
mod tests {
    use holdfast::Caller;
    use zerocopy::{FromBytes as _, FromZeros};

    use super::*;
    use crate::open::{as_caller, memory};

    const SIZE: usize = size_of::<hf_stat>();

    #[test]
    fn bulkstat_shows_each_inode_once_and_only_to_the_superuser() {
        let place = as_caller(&memory(FromZeros::new_zeroed()).unwrap(), Caller::root());
        for number in 0..10 {
            place
                .dir
                .write(format!("/{number}"), vec![1; number])
                .unwrap();
        }
        let (mut cursor, mut seen, mut bytes) = (0, Vec::new(), vec![0; 4 * SIZE]);
        loop {
            let filled = bulkstat(&place, &mut cursor, bytes.chunks_exact_mut(SIZE)).unwrap();
            if filled == 0 {
                break;
            }
            for attr in bytes.chunks_exact(SIZE).take(filled) {
                seen.push(hf_stat::read_from_bytes(attr).unwrap().st_ino);
            }
        }
        assert_eq!(seen.len(), 11);
        assert!(seen.is_sorted_by(|one, next| one < next), "{seen:?}");

        let user = as_caller(&place, Caller::user(1, 1));
        let failure = bulkstat(&user, &mut 0, bytes.chunks_exact_mut(SIZE)).unwrap_err();
        assert_eq!(failure.errno, Errno::EPERM);
    }
}
