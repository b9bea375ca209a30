//! The names that the threads fight over: few enough that they meet.

use crate::rng::Rng;

const FILES: u64 = 24;
const DIRS: u64 = 5;
/// Directories on a path.
const DEPTH: u64 = 3;

/// The name of a file, a link, or a directory: any may stand where another is expected.
pub(super) fn name(rng: &mut Rng) -> Vec<u8> {
    if rng.one_in(4) {
        dir_name(rng)
    } else if rng.one_in(12) {
        // Longer than what names in a row have.
        format!("{:->200}", rng.below(3)).into_bytes()
    } else {
        format!("f{}", rng.below(FILES)).into_bytes()
    }
}

/// The name that directories mostly have.
pub(super) fn dir_name(rng: &mut Rng) -> Vec<u8> {
    format!("d{}", rng.below(DIRS)).into_bytes()
}

/// A path to somewhere.
pub(super) fn path(rng: &mut Rng) -> Vec<u8> {
    let mut path = dir_path(rng);
    path.extend_from_slice(&name(rng));
    if rng.one_in(20) {
        path.push(b'/');
    }
    path
}

/// A path that ends before its last name.
fn dir_path(rng: &mut Rng) -> Vec<u8> {
    let mut path = Vec::new();
    if rng.one_in(3) {
        path.push(b'/');
    }
    for _ in 0..rng.below(DEPTH + 1) {
        match rng.below(12) {
            0 => path.extend_from_slice(b".."),
            1 => path.push(b'.'),
            2 => path.extend_from_slice(&name(rng)),
            _ => path.extend_from_slice(&dir_name(rng)),
        }
        path.push(b'/');
    }
    path
}

/// A path to a directory.
pub(super) fn to_dir(rng: &mut Rng) -> Vec<u8> {
    let mut path = dir_path(rng);
    path.extend_from_slice(&dir_name(rng));
    path
}
