use super::Space;

/// How a volume's blocks are used. The parts are summed one after the other: while others change
/// them, they fit together only roughly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Blocks of all groups, less those of the bitmaps.
    pub total: u64,
    /// Blocks that nobody uses, promised ones included.
    pub free: u64,
    /// Blocks of those that are promised, and not placed yet.
    pub reserved: u64,
    /// Blocks of those that are set aside for nodes.
    pub spare: u64,
    /// Blocks of those that are withheld, because the host of an image has no room for them.
    pub withheld: u64,
    /// Freed data that returns with a commit.
    pub deferred_data: u64,
    /// Replaced nodes that return with a checkpoint.
    pub deferred_nodes: u64,
    /// Blocks set aside for files that may grow; returned when room is short.
    pub preallocated: u64,
    /// Blocks used and not recorded: deferred ones, preallocations, data on its way.
    pub unrecorded: u64,
}

impl Report {
    /// Blocks that a file may still get: free and not promised, or given up on demand.
    #[must_use]
    pub fn available(&self) -> u64 {
        let free = self
            .free
            .saturating_sub(self.reserved + self.spare + self.withheld);
        free + self.preallocated + self.deferred_data
    }
}

impl Space {
    /// How the blocks are used. Looks at every group, if they were read.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut report = Report {
            total: self.layout().capacity(),
            ..Report::default()
        };
        let (unpromised, spare) = self.ledger().balance();
        match self.table.get() {
            Some(table) => {
                for group in 0..table.count() {
                    let state = table.lock(group);
                    report.free += u64::from(state.free());
                    report.unrecorded += u64::from(state.ahead());
                }
            }
            // Nothing has been placed, so all that is free is on the ledger, or promised.
            None => report.free = self.free_at_first,
        }
        report.spare = spare;
        report.withheld = self.withheld();
        let ours = unpromised + spare + report.withheld;
        report.reserved = report.free.saturating_sub(ours);
        (report.deferred_data, report.deferred_nodes) = self.deferred();
        report.preallocated = self.preallocated();
        report
    }
}
