use super::history::{History, NEVER, Op, What};
use holdfast_device::{BlockDevice, Image, MemoryDevice, Result};
use parking_lot::Mutex;
use std::sync::Arc;

/// A device that remembers every change and every flush, in order.
///
/// The history is for [`CrashStates`](super::CrashStates). A batch is remembered as single writes,
/// because that is what the contract promises of it.
#[derive(Debug)]
pub struct RecordingDevice {
    inner: Arc<dyn BlockDevice>,
    history: Mutex<History>,
}

impl RecordingDevice {
    /// Remembers what happens to a device from now on. Reads all of it first.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn new(inner: Arc<dyn BlockDevice>) -> Result<Self> {
        const STEP: usize = 1 << 20;
        let mut start = Image::new(inner.size());
        let mut buf = vec![0; STEP];
        for offset in (0..inner.size()).step_by(STEP) {
            let buf = &mut buf[..(inner.size() - offset).min(STEP as u64) as usize];
            inner.read(offset, buf)?;
            for (page, at) in buf.chunks(4096).zip((offset..).step_by(4096)) {
                if page.iter().any(|&byte| byte != 0) {
                    start.write(at, page);
                }
            }
        }
        Ok(Self::with_start(inner, start))
    }

    /// A device in memory with this content, and what happens to it.
    #[must_use]
    pub fn from_image(image: Image) -> Self {
        Self::over(MemoryDevice::from_image("memory", image))
    }

    /// What happens to a device in memory.
    #[must_use]
    pub fn over(memory: MemoryDevice) -> Self {
        let image = memory.image();
        Self::with_start(Arc::new(memory), image)
    }

    fn with_start(inner: Arc<dyn BlockDevice>, start: Image) -> Self {
        Self {
            inner,
            history: Mutex::new(History::new(start)),
        }
    }

    /// Remembers that the test has come to a point, such as "the fsync of file 7 has returned".
    pub fn mark(&self, mark: u64) {
        let mut history = self.history.lock();
        let time = history.tick();
        history.marks.push((time, mark));
    }

    /// What has happened so far.
    #[must_use]
    pub fn history(&self) -> History {
        self.history.lock().clone()
    }

    fn during<T>(&self, what: What, call: impl FnOnce() -> Result<T>) -> Result<T> {
        let index = {
            let mut history = self.history.lock();
            let began = history.tick();
            let ended = NEVER;
            history.ops.push(Op { began, ended, what });
            history.ops.len() - 1
        };
        let result = call()?;
        let mut history = self.history.lock();
        history.ops[index].ended = history.tick();
        Ok(result)
    }
}

impl BlockDevice for RecordingDevice {
    holdfast_device::pass_on!(inner: describe, size, alignment, cache_identity, room, read, read_batch);

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        // What the device refuses is no part of the history.
        holdfast_device::check_range(
            self,
            holdfast_device::Operation::Write,
            offset,
            bytes.len() as u64,
        )?;
        self.during(What::write(offset, bytes), || {
            self.inner.write(offset, bytes)
        })
    }

    fn flush(&self) -> Result<()> {
        self.during(What::Flush, || self.inner.flush())
    }

    fn discard(&self, offset: u64, len: u64) -> Result<bool> {
        holdfast_device::check_range(self, holdfast_device::Operation::Discard, offset, len)?;
        self.during(What::Discard { offset, len }, || {
            self.inner.discard(offset, len)
        })
    }

    fn resize(&self, size: u64) -> Result<()> {
        self.during(What::Resize { size }, || self.inner.resize(size))
    }
}
