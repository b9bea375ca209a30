//! Two threads on one processor that wake each other in turn: the least that a request costs, since
//! its client and server do the same.

use crate::process;
use anyhow::{Context, Result};
use rustix::io::{read, write};
use rustix::pipe::{PipeFlags, pipe_with};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

/// Exchanges between two looks at the clock.
const BATCH: u64 = 500;

/// Ball here, ball there, ball here, for so long; gives the number of such exchanges and their
/// time.
///
/// # Errors
/// If a thread cannot be started or pinned, or there is no pipe.
pub(super) fn exchanges(processor: usize, wanted: Duration) -> Result<(u64, Duration)> {
    let (there, from_here) = pipe_with(PipeFlags::CLOEXEC).context("pipe")?;
    let (here, from_there) = pipe_with(PipeFlags::CLOEXEC).context("pipe")?;
    thread::scope(|scope| {
        let partner = scope.spawn(move || -> Result<()> {
            process::pin(processor)?;
            while pass(&there, &from_there)? {}
            Ok(())
        });
        let server = scope.spawn(move || -> Result<(u64, Duration)> {
            process::pin(processor)?;
            let (mut count, mut time) = (0, Duration::ZERO);
            while time < wanted {
                let begun = Instant::now();
                for _ in 0..BATCH {
                    write(&from_here, b"x")?;
                    read(&here, &mut [0_u8; 1][..])?;
                }
                time += begun.elapsed();
                count += BATCH;
            }
            // The partner ends with the pipe that it reads.
            drop(from_here);
            Ok((count, time))
        });
        let served = server.join().ok().context("a thread panicked")?;
        partner.join().ok().context("a thread panicked")??;
        served
    })
}

/// Takes the ball and gives it back; false if there will be none any more.
fn pass(from: &OwnedFd, to: &OwnedFd) -> rustix::io::Result<bool> {
    if read(from, &mut [0_u8; 1][..])? == 0 {
        return Ok(false);
    }
    write(to, b"x")?;
    Ok(true)
}
