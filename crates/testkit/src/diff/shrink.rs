//! The shrinker: replays a failing sequence with operations dropped, until none can be.

use crate::diff::compare::Difference;
use crate::diff::op::Op;
use crate::diff::run::{Failure, Plan, Script, Sides, on_own_thread, replayed};
use holdfast_types::Result;
use std::time::{Duration, Instant};

/// Makes fresh sides for one replay.
pub type Make<'a> = dyn Fn() -> Result<Sides> + Sync + 'a;

/// Runs a sequence; answers a failure of the kind that is sought.
type Replay<'a> = dyn Fn(&[(usize, Op)]) -> Option<Box<Failure>> + 'a;

/// A shorter sequence that shows a difference of the same aspect, and that difference; the
/// failure itself if no replay shows it again. Stops when nothing can be dropped or after
/// `patience`.
#[must_use]
pub fn shrink(failure: Failure, plan: &Plan, make: &Make<'_>, patience: Duration) -> Failure {
    let deadline = Instant::now() + patience;
    let original = failure.difference.clone();
    let is_time = original.aspect.ends_with("time");
    let replay = |script: &[(usize, Op)]| {
        let pause = is_time && script.len() < 200;
        let result = on_own_thread(|| {
            let sides = make().ok()?;
            replayed(sides, plan, script, pause).err()
        });
        result.filter(|found| same(&found.difference, &original))
    };
    let Some(mut best) = replay(&failure.script) else {
        return failure;
    };
    let mut chunk = (best.script.len() / 2).max(1);
    loop {
        let before = best.script.len();
        best = drop_chunks(*best, chunk, deadline, &replay);
        if Instant::now() > deadline || (chunk == 1 && best.script.len() == before) {
            return *best;
        }
        chunk = (chunk / 2).clamp(1, best.script.len().max(1));
    }
}

/// Is it the same kind of difference? Outcomes must be the same too, unless they hold data.
fn same(found: &Difference, original: &Difference) -> bool {
    let failed = |side: &str| side.starts_with("Failed");
    let outcome =
        |found: &str, original: &str| found == original || (!failed(found) && !failed(original));
    found.aspect == original.aspect
        && (original.aspect != "outcome"
            || (outcome(&found.kernel, &original.kernel)
                && outcome(&found.library, &original.library)))
}

/// Tries to drop each run of `chunk` operations, from the end to the beginning: late
/// operations depend on early ones.
fn drop_chunks(
    failure: Failure,
    chunk: usize,
    deadline: Instant,
    replay: &Replay<'_>,
) -> Box<Failure> {
    let mut best = Box::new(failure);
    // The last operation shows the difference: it stays.
    let mut end = best.script.len().saturating_sub(1);
    while end > 0 && Instant::now() < deadline {
        let start = end.saturating_sub(chunk);
        let candidate: Script = [&best.script[..start], &best.script[end..]].concat();
        if let Some(found) = replay(&candidate) {
            best = found;
        }
        end = start.min(best.script.len().saturating_sub(1));
    }
    best
}
