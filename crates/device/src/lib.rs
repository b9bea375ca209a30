//! Where the blocks of a volume lie: image files, block devices, memory.
