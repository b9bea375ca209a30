use holdfast_device::{Image, SECTOR};

/// What happened to a device, with the order of beginnings and ends.
///
/// Time is a count of events. A change that ended before a flush began is durable when that flush
/// has ended; every other change that has begun may be there or not, sector by sector.
#[derive(Clone, Debug)]
pub struct History {
    pub(super) start: Image,
    /// In order of their beginnings.
    pub(super) ops: Vec<Op>,
    /// What the test set, with its time.
    pub(super) marks: Vec<(u64, u64)>,
    pub(super) now: u64,
}

/// One call.
#[derive(Clone, Debug)]
pub(super) struct Op {
    pub(super) began: u64,
    /// [`NEVER`] while it runs, and if it failed.
    pub(super) ended: u64,
    pub(super) what: What,
}

/// After everything.
pub(super) const NEVER: u64 = u64::MAX;

#[derive(Clone, Debug)]
pub(super) enum What {
    /// The bytes lie in an image at the place where they belong, so that states share them.
    Write {
        offset: u64,
        len: u64,
        image: Image,
    },
    Discard {
        offset: u64,
        len: u64,
    },
    Resize {
        size: u64,
    },
    Flush,
}

impl History {
    pub(super) const fn new(start: Image) -> Self {
        Self {
            start,
            ops: Vec::new(),
            marks: Vec::new(),
            now: 1,
        }
    }

    pub(super) const fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// Calls other than reads so far.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether nothing but reads has happened.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Flushes that succeeded.
    #[must_use]
    pub fn flushes(&self) -> usize {
        self.ops
            .iter()
            .filter(|op| op.is_flush() && op.ended != NEVER)
            .count()
    }

    /// Bytes written.
    #[must_use]
    pub fn written(&self) -> u64 {
        let bytes = |op: &Op| match &op.what {
            What::Write { len, .. } => *len,
            _ => 0,
        };
        self.ops.iter().map(bytes).sum()
    }

    /// The content when recording began.
    #[must_use]
    pub const fn start(&self) -> &Image {
        &self.start
    }

    /// The content if nothing is lost.
    #[must_use]
    pub fn last(&self) -> Image {
        let mut image = self.start.clone();
        for op in &self.ops {
            op.apply(&mut image);
        }
        image
    }
}

impl What {
    pub(super) fn write(offset: u64, bytes: &[u8]) -> Self {
        let len = bytes.len() as u64;
        let mut image = Image::new(offset + len);
        image.write(offset, bytes);
        Self::Write { offset, len, image }
    }
}

impl Op {
    pub(super) const fn is_flush(&self) -> bool {
        matches!(self.what, What::Flush)
    }

    /// Where it changes bytes, as offset and length.
    pub(super) fn range(&self) -> (u64, u64) {
        match &self.what {
            What::Write { offset, len, .. } | What::Discard { offset, len } => (*offset, *len),
            What::Resize { .. } | What::Flush => (0, 0),
        }
    }

    /// How many sectors it changes; one for what is done or not done as a whole.
    pub(super) fn sectors(&self) -> usize {
        match self.what {
            What::Resize { .. } => 1,
            _ => (self.range().1 / SECTOR) as usize,
        }
    }

    /// Does it whole.
    pub(super) fn apply(&self, image: &mut Image) {
        if let What::Resize { size } = self.what {
            image.resize(size.max(image.size()));
        } else {
            self.apply_sectors(image, 0..self.sectors());
        }
    }

    /// Does some of its sectors, as far as the device reaches: it may have come back smaller.
    pub(super) fn apply_sectors(&self, into: &mut Image, sectors: std::ops::Range<usize>) {
        let (offset, _) = self.range();
        let (from, to) = (sectors.start as u64 * SECTOR, sectors.end as u64 * SECTOR);
        let room = into.size().saturating_sub(offset);
        let (from, to) = (from.min(room), to.min(room));
        match &self.what {
            What::Write { image, .. } => {
                into.copy_from(image, offset + from, (to - from) as usize);
            }
            What::Discard { .. } => into.clear(offset + from, to - from),
            What::Resize { .. } | What::Flush => {}
        }
    }
}
