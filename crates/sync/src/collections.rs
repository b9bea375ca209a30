//! What collections take in memory.

/// Entries of a node of an ordered map, at most.
const NODE: usize = 11;

/// Bytes that an entry of an ordered map with many takes: its nodes are half to wholly full, two thirds as a rule.
#[must_use]
pub const fn entry_bytes<T>() -> usize {
    size_of::<T>() * 3 / 2
}

/// Bytes that an ordered map with so many entries takes: one node, or several.
#[must_use]
pub const fn map_bytes<T>(len: usize) -> usize {
    match len {
        0 => 0,
        1..=NODE => size_of::<T>() * NODE + 16,
        _ => entry_bytes::<T>() * len,
    }
}

/// Bytes that a table of hashes takes which has room for so many entries.
#[must_use]
pub const fn table_bytes<T>(capacity: usize) -> usize {
    // One place in eight stays empty, and each has a byte of control.
    capacity.div_ceil(7) * 8 * (size_of::<T>() + 1)
}
