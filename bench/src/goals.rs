//! What the figures are held against.

/// The engine, as targets are called.
pub(crate) const ENGINE: &str = "mem:";

/// The engine over a store that computes its files: no rival, but another side of it.
pub(crate) const MADE: &str = "made:";

/// What threads shall reach of as many independent processes.
pub(crate) const SCALING: f64 = 0.975;

/// What readers shall keep of their speed beside a writer.
pub(crate) const KEPT: f64 = 0.9;

/// Inodes that one thread shall meet in a second.
pub(crate) const ITERATED: f64 = 50e6;

/// The seconds in which one thread shall let go of a million inodes.
pub(crate) const LET_GO: f64 = 0.1;

/// What a flood of creations shall keep of its speed within a budget.
pub(crate) const FLOOD_KEPT: f64 = 0.95;

/// How many times as long 99 of 100 creations may take within a budget.
pub(crate) const FLOOD_P99: f64 = 2.0;

/// The part of a working set's uses that shall be found in memory beside a walk.
pub(crate) const HITS: f64 = 0.99;

/// What a walk shall keep of its speed beside uses of a working set.
pub(crate) const WALK_KEPT: f64 = 0.9;

/// Names that shall be made in one directory in a second, within a budget.
pub(crate) const NAMES_MADE: f64 = 100_000.0;

/// Reads of the device that a cold lookup shall need at most.
pub(crate) const LOOKUP_READS: u64 = 3;

/// What a listing of a directory that is not in memory as a whole shall reach of one that is.
pub(crate) const LISTED: f64 = 0.8;

/// Resident bytes that one of these shall take at most.
pub(crate) fn bytes(thing: &str) -> Option<f64> {
    match thing {
        "file" => Some(280.0),
        "empty directory" => Some(300.0),
        _ => None,
    }
}

/// How many times as fast as the kernel's file system in memory the engine shall be.
pub(crate) fn ratio(phase: &str) -> Option<f64> {
    match phase {
        "create" | "unlink" | "open" => Some(10.0),
        "stat" | "walk" => Some(8.0),
        _ => match phase.split_once('-') {
            Some(("read2" | "pread3", "1")) => Some(20.0),
            Some(("read2" | "pread3", "4096")) => Some(6.0),
            _ => None,
        },
    }
}
