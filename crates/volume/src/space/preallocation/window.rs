use super::super::Extent;

/// The most blocks of a file: its size has 63 bits.
pub const FILE_BLOCKS_MAX: u64 = 1 << 51;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const BLOCK: u64 = crate::block::BLOCK as u64;

/// Mapped blocks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// The first one's number in the file.
    pub logical: u64,
    /// Their place on the volume.
    pub extent: Extent,
}

impl Mapped {
    fn end(&self) -> u64 {
        self.logical.saturating_add(self.extent.length)
    }
}

/// A request for room for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRequest {
    /// The first block that is written, in blocks of the file.
    pub logical: u64,
    /// How many blocks are written, at least 1; none of them is mapped.
    pub length: u64,
    /// The file's size in blocks, with or without this write.
    pub size: u64,
    /// May the file go on growing? Not without an open writer.
    pub growing: bool,
    /// Is so little written around it that a preallocation would mostly remain empty?
    pub scattered: bool,
    /// The nearest mapped blocks before and behind.
    pub before: Option<Mapped>,
    /// See `before`.
    pub after: Option<Mapped>,
    /// The goal if there are none.
    pub goal: Option<u64>,
}

impl FileRequest {
    /// `length` blocks from `logical` on, of a growing file without neighbours.
    #[must_use]
    pub fn new(logical: u64, length: u64) -> Self {
        Self {
            logical,
            length,
            size: logical.saturating_add(length),
            growing: true,
            scattered: false,
            before: None,
            after: None,
            goal: None,
        }
    }

    /// The block behind the last one written.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.logical.saturating_add(self.length)
    }

    /// The file's size with this write, in blocks.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size.max(self.end())
    }

    /// Does this write complete the file, as far as can be known?
    #[must_use]
    pub fn is_last(&self) -> bool {
        !self.growing && self.end() >= self.size
    }

    /// Should room beyond this write be preallocated?
    #[must_use]
    pub fn preallocates(&self) -> bool {
        !self.is_last() && !self.scattered
    }
}

/// The blocks of a file to allocate in one piece: this write, and those likely to follow. The sizes
/// are ext4's, which depend on the file's size.
///
/// *Invariant.* It contains the first block of the request (invariant P6), not always the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first block, in blocks of the file.
    pub start: u64,
    /// The block behind the last one.
    pub end: u64,
}

impl Window {
    /// The window of a request on a volume with groups of `group_blocks`. `None` if the request
    /// lies beyond what a file can have.
    #[must_use]
    pub fn of(request: &FileRequest, group_blocks: u64) -> Option<Self> {
        let logical = request.logical;
        if logical >= FILE_BLOCKS_MAX || request.length == 0 {
            return None;
        }
        let aligned = |bytes: u64| {
            let blocks = bytes / BLOCK;
            (logical / blocks * blocks, blocks)
        };
        let (start, length) = match request.size().saturating_mul(BLOCK) {
            ..=MIB => (0, request.size().next_power_of_two().max(16 * KIB / BLOCK)),
            bytes if bytes <= 4 * MIB => aligned(2 * MIB),
            bytes if bytes <= 8 * MIB => aligned(4 * MIB),
            _ => aligned(8 * MIB),
        };
        let mut window = Self {
            start: start.max(logical / group_blocks * group_blocks),
            end: (start + length).min(FILE_BLOCKS_MAX),
        };
        if let Some(before) = request.before {
            window.begin_behind(before.end(), logical);
        }
        if let Some(after) = request.after {
            window.end_before(after.logical, logical);
        }
        window.limit(group_blocks, logical);
        Some(window)
    }

    /// The number of blocks.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.end - self.start
    }

    /// Begins no earlier than `at`, but contains `logical`.
    pub(super) fn begin_behind(&mut self, at: u64, logical: u64) {
        self.start = self.start.max(at.min(logical));
    }

    /// Ends no later than `at`, but contains `logical`.
    pub(super) fn end_before(&mut self, at: u64, logical: u64) {
        self.end = self.end.min(at.max(logical + 1));
    }

    /// Limits it to `most` blocks (at least 1), those from `logical` on first.
    pub(super) fn limit(&mut self, most: u64, logical: u64) {
        if self.length() > most {
            self.start = self.start.max((logical + 1).saturating_sub(most));
            self.end = self.end.min(self.start + most);
        }
    }

    /// The first block in the window for `found` blocks, if there are fewer than wanted. They go to
    /// the window's end if that includes the request's first block. Otherwise they go to its start
    /// if that includes the request's last block, and else to the request's first block. Never
    /// beyond the window.
    #[must_use]
    pub fn place(&self, request: &FileRequest, found: u64) -> u64 {
        let found = found.min(self.length());
        if self.end - found <= request.logical {
            self.end - found
        } else if self.start + found >= request.end() {
            self.start
        } else {
            request.logical
        }
    }

    /// The goal for the window: behind the neighbour before it, or else before the one behind it.
    #[must_use]
    pub fn goal(&self, request: &FileRequest) -> Option<u64> {
        let before = request.before.filter(|before| before.end() == self.start);
        let after = request.after.filter(|after| after.logical == self.end);
        let behind = before.map(|before| before.extent.end());
        let front = after.and_then(|after| after.extent.start.checked_sub(self.length()));
        // Not adjacent, but nearer than anything else.
        let near = request.before.map(|before| before.extent.end());
        behind.or(front).or(near).or(request.goal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GROUP: u64 = super::super::super::GROUP_BLOCKS_MAX;

    fn window(start: u64, end: u64) -> Window {
        Window { start, end }
    }

    /// Regression R-P2.
    #[test]
    fn a_short_result_stays_within_the_window() {
        let goal = window(0, 512);
        assert_eq!(goal.place(&FileRequest::new(503, 7), 394), 118);
    }

    /// Regression R-P3.
    #[test]
    fn a_short_result_for_a_request_beyond_the_window_ends_with_the_window() {
        let goal = window(0, 2048);
        assert_eq!(goal.place(&FileRequest::new(2045, 10), 200), 1848);
    }

    /// Regression R-P4.
    #[test]
    fn a_window_that_ends_at_2_to_the_32_does_not_wrap() {
        let request = FileRequest::new(4_294_966_386, 2);
        let goal = Window::of(&request, GROUP).expect("within a file");
        assert_eq!(goal, window(4_294_965_248, 1 << 32));
        assert_eq!(goal.length(), 2048);
    }

    /// Regression R-P5.
    #[test]
    fn windows_at_the_end_of_the_largest_file_end_there() {
        for back in 1..3000 {
            let request = FileRequest::new(FILE_BLOCKS_MAX - back, 4000);
            let goal = Window::of(&request, GROUP).expect("within a file");
            assert!(goal.start <= request.logical && goal.end > request.logical);
            assert!(goal.end <= FILE_BLOCKS_MAX);
        }
        assert_eq!(
            Window::of(&FileRequest::new(FILE_BLOCKS_MAX, 1), GROUP),
            None
        );
        assert_eq!(
            Window::of(&FileRequest::new(u64::MAX, u64::MAX), GROUP),
            None
        );
    }

    #[test]
    fn windows_grow_with_the_file() {
        let of = |logical, length| Window::of(&FileRequest::new(logical, length), GROUP);
        assert_eq!(of(0, 1), Some(window(0, 4)));
        assert_eq!(of(4, 1), Some(window(0, 8)));
        assert_eq!(of(200, 56), Some(window(0, 256)));
        assert_eq!(of(600, 1), Some(window(512, 1024)));
        assert_eq!(of(1500, 1), Some(window(1024, 2048)));
        assert_eq!(of(5000, 1), Some(window(4096, 6144)));
    }

    #[test]
    fn the_goal_is_behind_the_left_neighbour_rather_than_before_the_right_one() {
        let before = Mapped {
            logical: 0,
            extent: Extent::new(1000, 4),
        };
        let after = Mapped {
            logical: 8,
            extent: Extent::new(5000, 9),
        };
        let mut request = FileRequest {
            before: Some(before),
            after: Some(after),
            ..FileRequest::new(5, 1)
        };
        let goal = Window::of(&request, GROUP).expect("within a file");
        assert_eq!(goal, window(4, 8));
        assert_eq!(goal.goal(&request), Some(1004));
        request.before = None;
        let goal = Window::of(&request, GROUP).expect("within a file");
        assert_eq!(goal.goal(&request), Some(4992));
    }

    proptest! {
        /// Invariant P6, over all possible requests.
        #[test]
        fn results_lie_in_the_window_and_contain_the_requests_first_block(
            logical in prop_oneof![
                0..5000_u64,
                (1 << 32) - 3000..(1 << 32) + 3000_u64,
                FILE_BLOCKS_MAX - 3000..FILE_BLOCKS_MAX,
            ],
            length in 1..5000_u64,
            size in 0..10_000_u64,
            group_blocks in 16..=GROUP,
            (gap, behind) in (any::<Option<u16>>(), any::<Option<u16>>()),
            found in 1..4000_u64,
        ) {
            let mapped = |logical| Mapped { logical, extent: Extent::new(99_999, 1) };
            let request = FileRequest {
                size,
                before: gap
                    .and_then(|gap| logical.checked_sub(u64::from(gap) + 1))
                    .map(mapped),
                after: behind.map(|behind| mapped(logical + length + u64::from(behind))),
                ..FileRequest::new(logical, length)
            };
            let window = Window::of(&request, group_blocks).expect("within a file");
            prop_assert!(window.start <= logical && logical < window.end, "{:?}", window);
            prop_assert!(window.length() <= group_blocks.max(1));
            prop_assert!(window.end <= FILE_BLOCKS_MAX);
            prop_assert!(request.before.is_none_or(|before| before.end() <= window.start));
            prop_assert!(request.after.is_none_or(|after| window.end <= after.logical));
            let found = found.min(window.length());
            let start = window.place(&request, found);
            prop_assert!(window.start <= start && start + found <= window.end);
            prop_assert!(start <= logical && logical < start + found);
        }
    }
}
