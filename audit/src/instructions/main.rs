//! Carries out one of the core's operations a number of times, for `cargo xtask instructions`.
//!
//! `holdfast-instructions STORE OPERATION COUNT` prepares for [`MOST`] operations, carries out some
//! as a warm-up and then `COUNT` in the function [`counted`]. Only its instructions count.

mod operations;

use anyhow::{Context, Result, bail};
use holdfast_allocator::Allocator;
use holdfast_core::types::Errno;
use operations::{MOST, OPERATIONS, Operation, Place};
use std::ops::Range;

/// The allocator of the `holdfast` command: its instructions count too.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Operations before those that count: they fill free lists and allocate what is allocated once.
const WARM_UP: usize = 50;

const USAGE: &str = "usage: holdfast-instructions mem|volume OPERATION COUNT";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, name, count] = arguments.as_slice() else {
        bail!(USAGE);
    };
    let (_, prepare) = OPERATIONS
        .iter()
        .find(|(known, _)| known == name)
        .with_context(|| format!("no operation is called {name}"))?;
    let count: usize = count.parse().context(USAGE)?;
    if WARM_UP + count > MOST {
        bail!("at most {} operations", MOST - WARM_UP);
    }
    let place = match store.as_str() {
        "mem" => Place::in_memory()?,
        "volume" => Place::on_a_volume()?,
        _ => bail!(USAGE),
    };
    let mut operation = prepare(&place)?;
    (0..WARM_UP).try_for_each(&mut operation)?;
    counted(&mut operation, WARM_UP..WARM_UP + count)?;
    Ok(())
}

/// Callgrind counts between the entry of this function and its return, on this thread.
#[inline(never)]
fn counted(operation: &mut Operation<'_>, numbers: Range<usize>) -> Result<(), Errno> {
    for number in numbers {
        operation(number)?;
    }
    Ok(())
}
