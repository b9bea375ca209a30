//! The first byte of a record: the operation, and three flags.

use crate::varint::VARINT_MAX;

/// The record differs from the expected one: a byte of differences follows.
pub(super) const DIFFERS: u8 = 1 << 5;
/// Its meaning depends on the operation.
pub(super) const CHOICE: u8 = 1 << 6;
/// The batch ends with this record.
pub(super) const LAST: u8 = 1 << 7;
/// The bits of the operation itself.
pub(super) const OPERATION: u8 = DIFFERS - 1;

/// Inode, name and directory of a creation in one.
pub(super) const CREATE_NAMED: u8 = 1;
/// Choice: a target follows.
pub(super) const CREATE: u8 = 2;
pub(super) const ATTRIBUTES: u8 = 3;
pub(super) const DIRECTORY: u8 = 4;
pub(super) const ENTER: u8 = 5;
pub(super) const LEAVE: u8 = 6;
pub(super) const WRITE: u8 = 7;
pub(super) const TRUNCATE: u8 = 8;
/// Choice: the space is kept.
pub(super) const ZERO: u8 = 9;
pub(super) const ALLOCATE: u8 = 10;
pub(super) const COLLAPSE: u8 = 11;
pub(super) const INSERT: u8 = 12;
/// Choice: the attribute goes.
pub(super) const XATTR: u8 = 13;
pub(super) const FREE: u8 = 14;
/// Choice: unwritten.
pub(super) const MAP: u8 = 15;
// 16 to 23 are reserved for subvolumes.
pub(super) const NUMBERS: u8 = 24;
pub(super) const OVERWRITE: u8 = 25;

// Differences of the second byte, by operation.
pub(super) const NAMED_DIRECTORY: u8 = 1;
pub(super) const NAMED_INODE: u8 = 2;
pub(super) const NAMED_COOKIE: u8 = 4;
pub(super) const NAME_DIR: u8 = 1;
pub(super) const NAME_COOKIE: u8 = 2;
pub(super) const NAME_INO: u8 = 4;
pub(super) const NAME_KIND: u8 = 8;
pub(super) const RANGE_FILE: u8 = 1;
pub(super) const RANGE_OFFSET: u8 = 2;
pub(super) const MAP_FILE: u8 = 1;
pub(super) const MAP_OFFSET: u8 = 2;
pub(super) const MAP_PLACE: u8 = 4;
pub(super) const MAP_GENERATION: u8 = 8;

/// The most bytes of a record besides its byte strings: three bytes of flags and the twenty-odd
/// numbers of a creation.
pub(crate) const RECORD_MAX: usize = 8 + 30 * VARINT_MAX;
/// The most bytes of a batch's head.
pub(crate) const HEAD_MAX: usize = 2 * VARINT_MAX;
