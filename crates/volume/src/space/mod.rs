//! Free space: groups, bitmaps, preallocations.
