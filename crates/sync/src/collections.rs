//! What collections take in memory.

/// Entries of a node of an ordered map, at most.
const NODE: usize = 11;

/// Bytes per entry of a large ordered map: nodes are between half full and full, two thirds on
/// average.
#[must_use]
pub const fn entry_bytes<T>() -> usize {
    size_of::<T>() * 3 / 2
}

/// Bytes of an ordered map with `len` entries.
#[must_use]
pub const fn map_bytes<T>(len: usize) -> usize {
    match len {
        0 => 0,
        1..=NODE => size_of::<T>() * NODE + 16,
        _ => entry_bytes::<T>() * len,
    }
}

/// Bytes of a hash table with room for `capacity` entries.
#[must_use]
pub const fn table_bytes<T>(capacity: usize) -> usize {
    // One bucket in eight stays empty, and each has a control byte.
    capacity.div_ceil(7) * 8 * (size_of::<T>() + 1)
}
