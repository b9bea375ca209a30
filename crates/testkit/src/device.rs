//! Wrappers round any block device: one that records, one that fails, one that runs full, one with
//! latency, one that waits for the test. And the states that a crash may leave.
//!
//! Wrappers stack: a faulty device over a recording one shows what a crash leaves of writes that
//! were acknowledged and never done.

mod crash;
mod damage;
mod faulty;
mod held;
mod history;
mod recording;
mod slow;
mod sparse;

pub use crash::{CrashState, CrashStates};
pub use damage::{flip_bit, swap, zero};
pub use faulty::{DeviceCall, DeviceFault, Effect, FaultyDevice};
pub use held::HeldDevice;
pub use history::History;
pub use recording::RecordingDevice;
pub use slow::SlowDevice;
pub use sparse::SparseDevice;
