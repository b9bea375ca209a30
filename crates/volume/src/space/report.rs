use super::Space;

/// The use of a volume's blocks. The parts are summed one after the other, so they match only
/// roughly during changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Blocks of all groups, less those of the bitmaps.
    pub total: u64,
    /// Unused blocks, including reserved ones.
    pub free: u64,
    /// Free blocks that are reserved.
    pub reserved: u64,
    /// Free blocks that are set aside for nodes.
    pub node_reserve: u64,
    /// Free blocks that are withheld, because the host of an image has no room for them.
    pub withheld: u64,
    /// Freed data that a commit returns.
    pub deferred_data: u64,
    /// Replaced nodes that a checkpoint returns.
    pub deferred_nodes: u64,
    /// Preallocated blocks; given up when room is short.
    pub preallocated: u64,
    /// Blocks used and not recorded: deferred, preallocated, or placed.
    pub unrecorded: u64,
}

impl Report {
    /// Blocks that a file may still get: free and unreserved, or given up on demand.
    #[must_use]
    pub fn available(&self) -> u64 {
        let free = self
            .free
            .saturating_sub(self.reserved + self.node_reserve + self.withheld);
        free + self.preallocated + self.deferred_data
    }
}

impl Space {
    /// The use of the blocks. Visits every group, if they were read.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut report = Report {
            total: self.layout().capacity(),
            ..Report::default()
        };
        let (unpromised, node_reserve) = self.counter.balance();
        match self.table.get() {
            Some(table) => {
                for group in 0..table.count() {
                    let state = table.lock(group);
                    report.free += u64::from(state.free());
                    report.unrecorded += u64::from(state.unrecorded());
                }
            }
            // Nothing has been placed, so every free block is on the ledger or reserved.
            None => report.free = self.free_at_first,
        }
        report.node_reserve = node_reserve;
        report.withheld = self.withheld();
        let ours = unpromised + node_reserve + report.withheld;
        report.reserved = report.free.saturating_sub(ours);
        (report.deferred_data, report.deferred_nodes) = self.records.deferred();
        report.preallocated = self.preallocated();
        report
    }
}
