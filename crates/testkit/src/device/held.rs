use holdfast_device::{BlockDevice, ReadRequest, Result, WriteRequest};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// A device on which a chosen call does not return before the test lets it.
///
/// A test holds one read, one call of one thread, every read, or every flush. It waits until the
/// call has begun, checks what other threads can do meanwhile, and releases the call. So no time
/// limit is needed to see which thread waits for which.
#[derive(Debug)]
pub struct HeldDevice {
    inner: Arc<dyn BlockDevice>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The thread that has one call held, and how many of its calls pass before that.
    caller: Option<(ThreadId, usize)>,
    /// Does any call of it count, and not only reads?
    any: bool,
    /// Calls of it that have passed.
    passed: usize,
    /// Are flushes held?
    flushes: bool,
    /// Are the reads of all threads held?
    reads: bool,
    /// Reads so far.
    read: usize,
    /// Calls that are held now.
    held: usize,
}

impl HeldDevice {
    /// Nothing is held at first.
    #[must_use]
    pub fn new(inner: Arc<dyn BlockDevice>) -> Self {
        Self {
            inner,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Holds a read by this thread, after so many others of it.
    pub fn hold_read_of(&self, reader: ThreadId, after: usize) {
        let mut state = self.state.lock();
        (state.caller, state.any, state.passed) = (Some((reader, after)), false, 0);
    }

    /// Holds a read, a write or a flush by this thread, after so many others of it.
    pub fn hold_call_of(&self, caller: ThreadId, after: usize) {
        let mut state = self.state.lock();
        (state.caller, state.any, state.passed) = (Some((caller, after)), true, 0);
    }

    /// How many calls of the thread that is waited for have passed since it was named.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.state.lock().passed
    }

    /// Holds all flushes from now on.
    pub fn hold_flushes(&self) {
        self.state.lock().flushes = true;
    }

    /// Holds all reads from now on.
    pub fn hold_reads(&self) {
        self.state.lock().reads = true;
    }

    /// How many reads were asked for so far.
    #[must_use]
    pub fn reads(&self) -> usize {
        self.state.lock().read
    }

    /// Waits until so many calls are held at once; `false`: they are not, and there was time
    /// enough.
    pub fn holds(&self, calls: usize, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        let mut state = self.state.lock();
        while state.held < calls && Instant::now() < until {
            self.changed.wait_until(&mut state, until);
        }
        state.held >= calls
    }

    /// Waits until a call is held, or `is_over` says that none will be; `false`: none is, and there
    /// was time enough.
    pub fn is_held(&self, is_over: impl Fn() -> bool, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        let mut state = self.state.lock();
        while state.held == 0 && !is_over() && Instant::now() < until {
            self.changed.wait_for(&mut state, Duration::from_millis(1));
        }
        state.held > 0
    }

    /// Lets all calls that are held return, and holds no more.
    pub fn release(&self) {
        let mut state = self.state.lock();
        (state.caller, state.flushes, state.reads) = (None, false, false);
        self.changed.notify_all();
    }

    fn before_read(&self) {
        self.before_call_of_one(true);
        let mut state = self.state.lock();
        state.read += 1;
        self.hold(state, |state| state.reads);
    }

    fn before_write(&self) {
        self.before_call_of_one(false);
    }

    fn before_flush(&self) {
        self.before_call_of_one(false);
        let state = self.state.lock();
        self.hold(state, |state| state.flushes);
    }

    fn before_call_of_one(&self, reads: bool) {
        let me = thread::current().id();
        let mut state = self.state.lock();
        let counts = reads || state.any;
        match &mut state.caller {
            Some((caller, 0)) if *caller == me && counts => {}
            Some((caller, after)) if *caller == me && counts => {
                *after -= 1;
                state.passed += 1;
                return;
            }
            _ => return,
        }
        self.hold(state, |state| state.caller == Some((me, 0)));
    }

    fn hold(&self, mut state: parking_lot::MutexGuard<'_, State>, still: impl Fn(&State) -> bool) {
        if !still(&state) {
            return;
        }
        state.held += 1;
        self.changed.notify_all();
        while still(&state) {
            self.changed.wait(&mut state);
        }
        state.held -= 1;
    }
}

impl BlockDevice for HeldDevice {
    holdfast_device::pass_on!(inner: describe, size, alignment, cache_identity, room, discard, resize);

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.before_read();
        self.inner.read(offset, buf)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.before_write();
        self.inner.write(offset, bytes)
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) -> Result<()> {
        self.before_read();
        self.inner.read_batch(requests)
    }

    fn write_batch(&self, requests: &[WriteRequest<'_>]) -> Result<()> {
        self.before_write();
        self.inner.write_batch(requests)
    }

    fn flush(&self) -> Result<()> {
        self.before_flush();
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_device::MemoryDevice;
    use std::sync::mpsc;

    #[test]
    fn the_chosen_read_waits_and_no_other_does() {
        let device = HeldDevice::new(Arc::new(MemoryDevice::new(1 << 20)));
        let patience = Duration::from_secs(60);
        thread::scope(|scope| {
            let (send, done) = mpsc::channel();
            let held = &device;
            scope.spawn(move || {
                held.hold_read_of(thread::current().id(), 1);
                for number in 0..2 {
                    held.read(0, &mut [0; 512]).unwrap();
                    send.send(number).unwrap();
                }
            });
            assert!(device.is_held(|| false, patience));
            assert_eq!(done.recv().unwrap(), 0);
            assert_eq!(device.passed(), 1);
            device.read(0, &mut [0; 512]).unwrap();
            device.flush().unwrap();
            assert!(done.try_recv().is_err(), "it went on");
            device.release();
            assert_eq!(done.recv().unwrap(), 1);
        });
        assert!(!device.is_held(|| true, patience));
    }
}
