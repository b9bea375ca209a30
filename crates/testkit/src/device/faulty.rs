use holdfast_device::{BlockDevice, Cause, DeviceError, Operation, Result, SECTOR};
use holdfast_types::Errno;
use parking_lot::Mutex;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

/// The calls of a device that can fail.
#[expect(missing_docs, reason = "each is the method of its name")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceCall {
    Read,
    Write,
    Flush,
    Discard,
    Resize,
}

/// One fault to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceFault {
    /// The call it strikes; `None`: any.
    pub call: Option<DeviceCall>,
    /// Number of such calls that pass first.
    pub after: u64,
    /// Number of calls it strikes then; `None`: all.
    pub times: Option<u64>,
    /// What it does.
    pub effect: Effect,
}

impl DeviceFault {
    /// `error` at the call that comes after `after` others of its kind, once.
    #[must_use]
    pub const fn once(call: Option<DeviceCall>, after: u64, error: Errno) -> Self {
        Self {
            call,
            after,
            times: Some(1),
            effect: Effect::Error(error),
        }
    }

    /// `error` from that call on.
    #[must_use]
    pub const fn for_ever(call: Option<DeviceCall>, after: u64, error: Errno) -> Self {
        Self {
            times: None,
            ..Self::once(call, after, error)
        }
    }
}

/// What a fault does to a call. Where an effect has no meaning for a call, the call passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing is done, and the call says so.
    Error(Errno),
    /// A write does only so many of its sectors; then it fails, or claims to have done all.
    Torn {
        /// Those that are written.
        sectors: u64,
        /// What it answers.
        error: Option<Errno>,
    },
    /// Anything but a read is acknowledged and not done.
    Lost,
    /// A read or write goes elsewhere, as far as it fits there.
    Misdirected {
        /// The offset it goes to.
        to: u64,
    },
    /// The call takes so many milliseconds more, and passes.
    Slow {
        /// Those.
        millis: u64,
    },
    /// The thread that calls unwinds. No panic hook hears of it.
    Panic,
    /// One bit of what is read or written is inverted on the way.
    Flipped {
        /// Counted from the lowest of the first byte; beyond the last it wraps round.
        bit: u64,
    },
}

/// A fault, and whether it has had its effect on any call.
#[derive(Debug)]
struct Planned {
    fault: DeviceFault,
    struck: bool,
}

#[derive(Debug, Default)]
struct Plan {
    faults: Vec<Planned>,
    counts: [u64; 5],
    /// The error of a flush that failed.
    flushed: Option<Errno>,
}

/// A device that fails as it is told.
///
/// A flush that failed makes all later ones fail, as every device does, until it is healed.
///
/// Each request of a batch is one call, so that a test can try a fault at each of them. The test
/// runs once without a fault, reads [`total`](Self::total), then plans a fault `after` each number
/// below.
#[derive(Debug)]
pub struct FaultyDevice {
    inner: Arc<dyn BlockDevice>,
    plan: Mutex<Plan>,
}

impl FaultyDevice {
    /// No faults at first.
    #[must_use]
    pub fn new(inner: Arc<dyn BlockDevice>) -> Self {
        Self {
            inner,
            plan: Mutex::default(),
        }
    }

    /// Plans a fault, counted from now. Of several that strike at once the first planned has
    /// its effect.
    pub fn plan(&self, fault: DeviceFault) {
        let struck = false;
        self.plan.lock().faults.push(Planned { fault, struck });
    }

    /// Forgets all faults, past ones too: the device is as good as new.
    pub fn heal(&self) {
        let mut plan = self.plan.lock();
        plan.faults.clear();
        plan.flushed = None;
    }

    /// How often a call was made, those that failed included.
    #[must_use]
    pub fn count(&self, call: DeviceCall) -> u64 {
        self.plan.lock().counts[call as usize]
    }

    /// How many calls were made.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.plan.lock().counts.iter().sum()
    }

    /// How many faults have had their effect on a call.
    #[must_use]
    pub fn struck(&self) -> u64 {
        let plan = self.plan.lock();
        plan.faults.iter().filter(|planned| planned.struck).count() as u64
    }

    /// Counts a call, and says what happens to it that the device has to do.
    fn strike(&self, call: DeviceCall) -> Option<Effect> {
        match self.find(call) {
            Some(Effect::Slow { millis }) => {
                std::thread::sleep(Duration::from_millis(millis));
                None
            }
            Some(Effect::Panic) => resume_unwind(Box::new("the device panics, as it was told")),
            effect => effect,
        }
    }

    fn find(&self, call: DeviceCall) -> Option<Effect> {
        let mut plan = self.plan.lock();
        plan.counts[call as usize] += 1;
        let mut effect = None;
        let concerned = |planned: &&mut Planned| planned.fault.call.is_none_or(|it| it == call);
        for planned in plan.faults.iter_mut().filter(concerned) {
            let fault = &mut planned.fault;
            match (&mut fault.after, &mut fault.times) {
                (0, Some(0)) => continue,
                (0, Some(times)) => *times -= 1,
                (0, None) => {}
                (after, _) => {
                    *after -= 1;
                    continue;
                }
            }
            planned.struck |= effect.is_none();
            effect = effect.or(Some(fault.effect));
        }
        effect
    }

    fn error<T>(
        &self,
        operation: Operation,
        offset: u64,
        len: u64,
        cause: impl Into<Cause>,
    ) -> Result<T> {
        let device = self.describe();
        Err(DeviceError::new(
            device,
            operation,
            offset,
            len,
            cause.into(),
        ))
    }

    /// How much of `len` bytes fits at `offset`.
    fn room(&self, offset: u64, len: usize) -> usize {
        self.size().saturating_sub(offset).min(len as u64) as usize
    }
}

fn flip(bytes: &mut [u8], bit: u64) {
    if !bytes.is_empty() {
        bytes[(bit / 8 % bytes.len() as u64) as usize] ^= 1 << (bit % 8);
    }
}

impl BlockDevice for FaultyDevice {
    holdfast_device::pass_on!(inner: describe, size, alignment, cache_identity, room);

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        match self.strike(DeviceCall::Read) {
            Some(Effect::Error(errno)) => {
                self.error(Operation::Read, offset, buf.len() as u64, errno)
            }
            Some(Effect::Misdirected { to }) => {
                let room = self.room(to, buf.len());
                self.inner.read(to, &mut buf[..room])
            }
            Some(Effect::Flipped { bit }) => {
                self.inner.read(offset, buf)?;
                flip(buf, bit);
                Ok(())
            }
            _ => self.inner.read(offset, buf),
        }
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let len = bytes.len() as u64;
        match self.strike(DeviceCall::Write) {
            Some(Effect::Error(errno)) => self.error(Operation::Write, offset, len, errno),
            Some(Effect::Torn { sectors, error }) => {
                let done = sectors.saturating_mul(SECTOR).min(len) / self.alignment();
                let done = (done * self.alignment()) as usize;
                self.inner.write(offset, &bytes[..done])?;
                error.map_or(Ok(()), |errno| {
                    self.error(Operation::Write, offset, len, errno)
                })
            }
            Some(Effect::Lost) => Ok(()),
            Some(Effect::Misdirected { to }) => {
                self.inner.write(to, &bytes[..self.room(to, bytes.len())])
            }
            Some(Effect::Flipped { bit }) => {
                let mut bytes = bytes.to_vec();
                flip(&mut bytes, bit);
                self.inner.write(offset, &bytes)
            }
            None | Some(Effect::Slow { .. } | Effect::Panic) => self.inner.write(offset, bytes),
        }
    }

    fn flush(&self) -> Result<()> {
        let effect = self.strike(DeviceCall::Flush);
        let lost = self.plan.lock().flushed;
        match (effect, lost) {
            (_, Some(errno)) => {
                let cause = Cause::FlushFailed(errno);
                self.error(Operation::Flush, 0, self.size(), cause)
            }
            (Some(Effect::Error(errno)), None) => {
                self.plan.lock().flushed = Some(errno);
                self.error(Operation::Flush, 0, self.size(), errno)
            }
            (Some(Effect::Lost), None) => Ok(()),
            (_, None) => self.inner.flush(),
        }
    }

    fn discard(&self, offset: u64, len: u64) -> Result<bool> {
        match self.strike(DeviceCall::Discard) {
            Some(Effect::Error(errno)) => self.error(Operation::Discard, offset, len, errno),
            Some(Effect::Lost) => Ok(true),
            _ => self.inner.discard(offset, len),
        }
    }

    fn resize(&self, size: u64) -> Result<()> {
        match self.strike(DeviceCall::Resize) {
            Some(Effect::Error(errno)) => self.error(Operation::Resize, size, 0, errno),
            _ => self.inner.resize(size),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_device::{Image, MemoryDevice, ReadRequest, WriteRequest};

    fn device() -> (Arc<MemoryDevice>, FaultyDevice) {
        let memory = Arc::new(MemoryDevice::from_image("disk", Image::new(1 << 16)));
        (Arc::clone(&memory), FaultyDevice::new(memory))
    }

    fn byte(memory: &MemoryDevice, offset: u64) -> u8 {
        let mut seen = [0];
        memory.image().read(offset, &mut seen);
        seen[0]
    }

    #[test]
    fn an_error_can_be_put_at_every_call_in_turn() {
        let work = |device: &FaultyDevice| -> Result<()> {
            let writes = [(0, 1), (4096, 2)].map(|(at, fill)| (at, [fill; 512]));
            let writes = writes.each_ref().map(|(at, it)| WriteRequest::new(*at, it));
            device.write_batch(&writes)?;
            device.flush()?;
            let mut bufs = [[0; 512]; 2];
            let [one, two] = &mut bufs;
            let reads = &mut [ReadRequest::new(0, one), ReadRequest::new(4096, two)];
            device.read_batch(reads)?;
            device.discard(0, 512)?;
            device.resize(1 << 17)
        };
        let (_, whole) = device();
        work(&whole).unwrap();
        assert_eq!((whole.total(), whole.count(DeviceCall::Read)), (7, 2));
        let kinds = (0..whole.total()).map(|after| {
            let (_, device) = device();
            device.plan(DeviceFault::once(None, after, Errno::EIO));
            let error = work(&device).unwrap_err();
            assert_eq!((error.errno(), error.device.as_str()), (Errno::EIO, "disk"));
            assert_eq!(device.total(), after + 1);
            let again = work(&device).map_err(|error| error.cause);
            match error.operation {
                Operation::Flush => assert_eq!(again, Err(Cause::FlushFailed(Errno::EIO))),
                _ => assert_eq!(again, Ok(())),
            }
            device.heal();
            work(&device).unwrap();
            error.operation
        });
        use Operation::{Discard, Flush, Read, Resize, Write};
        let expected = [Write, Write, Flush, Read, Read, Discard, Resize];
        assert_eq!(kinds.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_dead_device_stays_dead_until_healed() {
        let (_, device) = device();
        device.plan(DeviceFault::for_ever(
            Some(DeviceCall::Write),
            1,
            Errno::ENOSPC,
        ));
        device.write(0, &[1; 512]).unwrap();
        for _ in 0..3 {
            assert!(device.write(0, &[2; 512]).unwrap_err().is_no_space());
        }
        device.read(0, &mut [0; 512]).unwrap();
        device.heal();
        device.write(0, &[2; 512]).unwrap();
    }

    #[test]
    fn bad_writes_do_what_they_are_named_for() {
        let effects = [
            (
                Effect::Torn {
                    sectors: 1,
                    error: None,
                },
                [1, 0, 0],
            ),
            (Effect::Lost, [0, 0, 0]),
            (Effect::Misdirected { to: 4096 }, [0, 0, 1]),
            (Effect::Flipped { bit: 513 * 8 + 1 }, [1, 1, 0]),
        ];
        for (effect, expected) in effects {
            let (memory, device) = device();
            let call = Some(DeviceCall::Write);
            let (after, times) = (0, Some(1));
            device.plan(DeviceFault {
                call,
                after,
                times,
                effect,
            });
            device.write(0, &[1; 1024]).unwrap();
            assert_eq!(
                [0, 512, 4096].map(|at| byte(&memory, at)),
                expected,
                "{effect:?}"
            );
            assert_eq!(
                byte(&memory, 513),
                match effect {
                    Effect::Flipped { .. } => 3,
                    _ => expected[1],
                }
            );
        }
        let (memory, device) = device();
        let effect = Effect::Torn {
            sectors: 1,
            error: Some(Errno::EIO),
        };
        device.plan(DeviceFault {
            call: None,
            after: 0,
            times: Some(1),
            effect,
        });
        assert_eq!(device.write(0, &[1; 1024]).unwrap_err().errno(), Errno::EIO);
        assert_eq!([byte(&memory, 0), byte(&memory, 512)], [1, 0]);
    }

    #[test]
    fn a_call_can_be_slow_or_unwind() {
        let (memory, device) = device();
        let fault = |effect| DeviceFault {
            effect,
            ..DeviceFault::once(Some(DeviceCall::Write), 0, Errno::EIO)
        };
        device.plan(fault(Effect::Slow { millis: 20 }));
        let began = std::time::Instant::now();
        device.write(0, &[1; 512]).unwrap();
        assert!(began.elapsed() >= Duration::from_millis(20));
        device.plan(fault(Effect::Panic));
        std::thread::scope(|scope| {
            let call = scope.spawn(|| device.write(0, &[2; 512]));
            assert!(call.join().is_err());
        });
        assert_eq!((byte(&memory, 0), device.struck()), (1, 2));
    }

    #[test]
    fn bad_reads_leave_the_device_as_it_is() {
        let (memory, device) = device();
        memory.write(512, &[8; 512]).unwrap();
        for (effect, first) in [
            (Effect::Misdirected { to: 512 }, 8),
            (Effect::Misdirected { to: 1 << 20 }, 9),
            (Effect::Flipped { bit: 0 }, 1),
            (Effect::Lost, 0),
        ] {
            device.plan(DeviceFault {
                call: None,
                after: 0,
                times: Some(1),
                effect,
            });
            let mut seen = [9; 512];
            device.read(0, &mut seen).ok();
            assert_eq!(seen[0], first, "{effect:?}");
            device.read(0, &mut seen).unwrap();
            assert_eq!(seen, [0; 512]);
        }
    }
}
