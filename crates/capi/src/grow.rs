//! Structs that grow: the first field is the size that the caller's program was built with.
//!
//! Only bytes within that size are read or written, as copy_struct_from_user of Linux does it. A
//! program that is older than the library passes less, a newer one more.

use holdfast::types::Errno;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::failure::{Failure, Result};
use crate::types::{
    hf_content, hf_dirent, hf_memory_options, hf_stat, hf_statvfs, hf_volume_options,
};

/// The bounds of what is taken for a size: itself and one more field, and a page.
const SIZE_MIN: usize = 8;
const SIZE_MAX: usize = 4096;

/// A struct of `holdfast.h` that begins with `uint32_t size`.
pub(crate) trait Growing: FromBytes + IntoBytes + Immutable + 'static {
    const NAME: &'static str;
}

macro_rules! growing {
    ($($name:ident)*) => {
        $(impl Growing for $name { const NAME: &'static str = stringify!($name); })*
    };
}

growing! { hf_memory_options hf_volume_options hf_stat hf_statvfs hf_dirent hf_content }

/// Checks the size that a caller set.
///
/// # Errors
/// `EINVAL` for one that no version had.
pub(crate) fn check_size<T: Growing>(size: u32) -> Result<usize> {
    let size = size as usize;
    if (SIZE_MIN..=SIZE_MAX).contains(&size) {
        return Ok(size);
    }
    let reason = format!("size is {size}; set it to sizeof (struct {0})", T::NAME);
    Err(Failure::invalid(reason))
}

/// The struct of a caller; fields beyond its size are 0.
///
/// # Errors
/// `E2BIG` if it sets a field that this version does not know.
pub(crate) fn read<T: Growing>(bytes: &[u8]) -> Result<T> {
    let mut value = T::new_zeroed();
    let known = value.as_mut_bytes();
    let common = bytes.len().min(known.len());
    known[..common].copy_from_slice(&bytes[..common]);
    if bytes[common..].iter().any(|&byte| byte != 0) {
        let reason = format!(
            "struct {} has fields that this version of the library does not know; install a newer \
             one, or leave them 0",
            T::NAME
        );
        return Err(Failure::new(Errno::E2BIG, reason));
    }
    Ok(value)
}

/// Fills the struct of a caller: fields that this version does not know become 0. The size stays
/// that of the caller.
pub(crate) fn write<T: Growing>(bytes: &mut [u8], value: &T) {
    let known = value.as_bytes();
    let common = bytes.len().min(known.len());
    let size = size_of::<u32>();
    bytes[size..common].copy_from_slice(&known[size..common]);
    bytes[common..].fill(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `hf_memory_options`: two fields of 4 bytes, two of 8.
    fn bytes(len: usize) -> Vec<u8> {
        vec![1; len]
    }

    #[test]
    fn a_smaller_struct_leaves_later_fields_0() {
        let options: hf_memory_options = read(&bytes(16)).unwrap();
        assert_eq!(options.bytes_max, 0x0101_0101_0101_0101);
        assert_eq!(options.inodes_max, 0);
        let half: hf_memory_options = read(&bytes(20)).unwrap();
        assert_eq!(half.as_bytes()[16..], [1, 1, 1, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn a_larger_struct_is_taken_if_what_is_unknown_is_0() {
        let mut larger = bytes(40);
        let failure = read::<hf_memory_options>(&larger).err().unwrap();
        assert_eq!(failure.errno, Errno::E2BIG);
        larger[24..].fill(0);
        assert!(read::<hf_memory_options>(&larger).is_ok());
    }

    #[test]
    fn only_bytes_within_the_size_are_written() {
        let value: hf_memory_options = read(&bytes(24)).unwrap();
        let mut memory = [9; 32];
        write(&mut memory[..12], &value);
        assert_eq!(memory[..4], [9; 4], "the size stays");
        assert_eq!(memory[4..12], [1; 8]);
        assert_eq!(memory[12..], [9; 20]);
        write(&mut memory[..28], &value);
        assert_eq!(memory[24..], [0, 0, 0, 0, 9, 9, 9, 9]);
    }

    #[test]
    fn a_size_that_was_not_set_is_refused() {
        for size in [0, 7, 4097, u32::MAX] {
            let failure = check_size::<hf_stat>(size).unwrap_err();
            assert!(
                failure.reason.contains("sizeof (struct hf_stat)"),
                "{failure:?}"
            );
        }
        assert_eq!(check_size::<hf_stat>(8).unwrap(), 8);
    }
}
