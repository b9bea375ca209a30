//! A run: operations on both sides, compared step by step.

use crate::diff::compare::{Comparer, Difference, Pair};
use crate::diff::freedoms;
use crate::diff::generate::Generator;
use crate::diff::host::AtimeRule;
use crate::diff::op::{Bytes, Object, Op};
use crate::diff::outcome::Outcome;
use crate::diff::target::{SLOTS, Target};
use crate::diff::view::{Detail, View};
use holdfast_types::{Caller, Errno, FileType, Result};
use std::collections::BTreeMap;
use std::fmt;

/// The two sides of a run.
pub struct Sides {
    /// The kernel's.
    pub kernel: Box<dyn Target>,
    /// The library's.
    pub library: Box<dyn Target>,
}

impl fmt::Debug for Sides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sides")
    }
}

/// What a run is to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The callers.
    pub cast: Vec<Caller>,
    /// How access times are kept on both sides.
    pub atime: AtimeRule,
    /// Is the other side a mount, and does its kernel open files by itself?
    pub opens_local: bool,
    /// Seed of the operations.
    pub seed: u64,
    /// Number of operations.
    pub steps: usize,
    /// Operations between two comparisons of the whole tree.
    pub between_snapshots: usize,
    /// Go on after an operation that failed on both sides with different errors (nothing has
    /// changed then), and collect the kinds of such differences.
    pub collect: bool,
    /// CPU to stay on: a hand-over between two threads of one CPU needs no interrupt.
    pub cpu: Option<usize>,
}

/// What a run without a difference did.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Operations run.
    pub steps: usize,
    /// Operations that succeeded.
    pub succeeded: usize,
    /// Operations left out on both sides, by freedom.
    pub skipped: usize,
    /// By kind of operation: how many succeeded, how many failed.
    pub kinds: BTreeMap<String, (usize, usize)>,
    /// Differences between errors, where the plan collects them: by kind of operation and both
    /// errors, how often, and the first operation.
    pub errors: BTreeMap<String, (usize, String)>,
}

/// A recorded sequence: operations, each with the number of its caller.
pub type Script = Vec<(usize, Op)>;

/// A difference, and how it was reached.
#[derive(Debug)]
pub struct Failure {
    /// What differs.
    pub difference: Difference,
    /// All operations up to the one that showed it, which is the last.
    pub script: Script,
    /// The outcomes of the last operation: the kernel's and the library's.
    pub outcomes: Option<(Outcome, Outcome)>,
    /// What the run had done until then.
    pub summary: Summary,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference {
            aspect,
            object,
            kernel,
            library,
        } = &self.difference;
        writeln!(
            f,
            "difference in {aspect} of {object} at step {}",
            self.script.len()
        )?;
        writeln!(f, "  kernel:  {kernel}\n  library: {library}")?;
        if let Some((kernel, library)) = &self.outcomes {
            writeln!(
                f,
                "  outcomes: kernel {}, library {}",
                kernel.brief(),
                library.brief()
            )?;
        }
        let first = self.script.len().saturating_sub(20);
        for (number, (caller, op)) in self.script.iter().enumerate().skip(first) {
            writeln!(f, "  {:>6} caller {caller}: {op:?}", number + 1)?;
        }
        Ok(())
    }
}

/// Runs `job` on a thread of its own: the host target changes its thread's root directory.
///
/// # Panics
/// If the job does.
pub fn on_own_thread<R: Send>(job: impl FnOnce() -> R + Send) -> R {
    freedoms::prepare();
    std::thread::scope(|scope| match scope.spawn(job).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Runs generated operations.
///
/// # Errors
/// The first difference.
pub fn generated(sides: Sides, plan: &Plan) -> std::result::Result<Summary, Box<Failure>> {
    let mut generator = Generator::new(plan.seed, plan.cast.len());
    let mut run = Run::new(sides, plan);
    let mut script = Script::new();
    for step in 1..=plan.steps {
        let (caller, op) = generator.next_op();
        script.push((caller, op));
        let (caller, op) = &script[step - 1];
        let result = run.step(*caller, op);
        match (&result, &run.outcomes) {
            (Ok(true), _) => generator.note(*caller, op),
            (_, Some((Outcome::Failed(Errno::ENOENT | Errno::ENOTDIR), _))) => {
                generator.note_missing(op);
            }
            _ => {}
        }
        let result = result.and_then(|_| {
            if step % plan.between_snapshots == 0 || step == plan.steps {
                generator.learn(&run.compare_trees()?);
            }
            Ok(())
        });
        if let Err(difference) = result {
            return Err(Box::new(run.failure(*difference, script)));
        }
    }
    Ok(run.summary)
}

/// Runs a recorded sequence, and compares the whole trees at its end. With `pause`, waits for
/// the clock to tick before each operation, so that no change of a time is hidden.
///
/// # Errors
/// The first difference.
pub fn replayed(
    sides: Sides,
    plan: &Plan,
    script: &[(usize, Op)],
    pause: bool,
) -> std::result::Result<Summary, Box<Failure>> {
    let mut run = Run::new(sides, plan);
    for (step, (caller, op)) in script.iter().enumerate() {
        if pause {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        if let Err(difference) = run.step(*caller, op) {
            return Err(Box::new(run.failure(*difference, script[..=step].to_vec())));
        }
    }
    match run.compare_trees() {
        Ok(_) => Ok(run.summary),
        Err(difference) => Err(Box::new(run.failure(*difference, script.to_vec()))),
    }
}

struct Run<'a> {
    sides: Sides,
    plan: &'a Plan,
    comparer: Comparer,
    summary: Summary,
    outcomes: Option<(Outcome, Outcome)>,
    /// By which path each caller's open files were opened.
    opened: Vec<[Option<Bytes>; SLOTS]>,
}

/// A place to look at before and after an operation.
struct Place {
    path: Bytes,
    follow: bool,
    detail: Detail,
}

type Verdict<T> = std::result::Result<T, Box<Difference>>;

impl<'a> Run<'a> {
    fn new(sides: Sides, plan: &'a Plan) -> Self {
        if let Some(cpu) = plan.cpu {
            let mut only = rustix::thread::CpuSet::new();
            only.set(cpu);
            // Only speed is lost where the CPU is not ours to choose.
            let _ = rustix::thread::sched_setaffinity(None, &only);
        }
        Self {
            sides,
            plan,
            comparer: Comparer::new(plan.atime),
            summary: Summary::default(),
            outcomes: None,
            opened: plan.cast.iter().map(|_| Default::default()).collect(),
        }
    }

    fn failure(&mut self, difference: Difference, script: Script) -> Failure {
        let summary = std::mem::take(&mut self.summary);
        Failure {
            difference,
            script,
            outcomes: self.outcomes.take(),
            summary,
        }
    }

    /// Runs one operation on both sides. Answers whether it succeeded.
    fn step(&mut self, caller: usize, op: &Op) -> Verdict<bool> {
        self.comparer.begin_step(op);
        let places = self.places(caller, op);
        let befores = self.look_at(&places, true);
        let kernel_side = befores
            .iter()
            .map(|(kernel, _)| kernel.as_ref().ok().cloned());
        let mut found: Vec<Option<View>> = kernel_side.collect();
        if let Op::LinkOpen { slot, .. } = op {
            let look = Op::Stat {
                object: Object::File(*slot),
            };
            if let Outcome::Attributes(view) = self.sides.kernel.run(caller, &look, &[]).outcome {
                found.push(Some(view));
            }
        }
        self.summary.steps += 1;
        let opens_local = self.plan.opens_local;
        if freedoms::skips(op, &self.plan.cast[caller], &found, opens_local).is_some() {
            self.summary.skipped += 1;
            return Ok(false);
        }
        let slots = op.slots();
        let kernel = self.sides.kernel.run(caller, op, &slots);
        let library = self.sides.library.run(caller, op, &slots);
        let succeeded = kernel.outcome.succeeded();
        let verdict = match (op, kernel.after.last()) {
            (Op::Seek { .. }, Some(Ok(file))) if !self.comparer.same_holes(file) => Ok(()),
            // Freedom::DirectoryHoles: on a mount, which alone ignores access times.
            (Op::Seek { .. }, Some(Ok(file)))
                if file.kind == FileType::Directory && self.plan.atime == AtimeRule::Ignored =>
            {
                Ok(())
            }
            _ => self.comparer.outcomes(&kernel.outcome, &library.outcome),
        };
        if let (Op::Fallocate { .. }, Some(Ok(file))) = (op, kernel.after.last()) {
            self.comparer.note_preallocated(file);
        }
        if let (Op::CopyRange { .. }, Some(Ok(target))) = (op, kernel.after.last()) {
            self.comparer.note_copied(target);
        }
        self.count(op, succeeded);
        let verdict = self.collected(op, caller, &kernel.outcome, &library.outcome, verdict);
        self.outcomes = Some((kernel.outcome, library.outcome));
        verdict?;
        self.note_opened(caller, op, succeeded);
        // Looking into an object takes a while: only at what may have changed.
        let afters = self.look_at(&places, !succeeded);
        for ((place, before), after) in places.into_iter().zip(befores).zip(afters) {
            let object = format!(
                "{:?}{}",
                place.path,
                if place.follow { " (followed)" } else { "" }
            );
            let (kernel, library) = ((Some(before.0), after.0), (Some(before.1), after.1));
            self.comparer.pair(&Pair {
                object,
                kernel,
                library,
            })?;
        }
        let kernel = kernel.before.into_iter().zip(kernel.after);
        let library = library.before.into_iter().zip(library.after);
        for ((slot, kernel), library) in slots.into_iter().zip(kernel).zip(library) {
            let (kernel, library) = ((Some(kernel.0), kernel.1), (Some(library.0), library.1));
            self.comparer.pair(&Pair {
                object: format!("slot {slot}"),
                kernel,
                library,
            })?;
        }
        Ok(succeeded)
    }

    /// Takes a difference between two errors aside, if that is the plan.
    fn collected(
        &mut self,
        op: &Op,
        caller: usize,
        kernel: &Outcome,
        library: &Outcome,
        verdict: Verdict<()>,
    ) -> Verdict<()> {
        match (kernel, library) {
            (Outcome::Failed(kernel), Outcome::Failed(library)) if self.plan.collect => {
                if verdict.is_err() {
                    let key = format!("{}: kernel {kernel:?}, library {library:?}", op.name());
                    let first = || (0, format!("caller {caller}: {op:?}"));
                    self.summary.errors.entry(key).or_insert_with(first).0 += 1;
                }
                Ok(())
            }
            _ => verdict,
        }
    }

    fn look_at(&mut self, places: &[Place], shallow: bool) -> Vec<(Result<View>, Result<View>)> {
        let mut looks = Vec::with_capacity(places.len());
        for Place {
            path,
            follow,
            detail,
        } in places
        {
            let detail = if shallow { Detail::ATTRIBUTES } else { *detail };
            looks.push((
                self.sides.kernel.look(path, *follow, detail),
                self.sides.library.look(path, *follow, detail),
            ));
        }
        looks
    }

    /// What an operation may affect: what it names, their directories, what its open file was
    /// opened by.
    fn places(&self, caller: usize, op: &Op) -> Vec<Place> {
        let inside = Detail {
            content: op.changes_bytes() || op.changes_names(),
            target: false,
            xattrs: op.changes_xattrs(),
        };
        let mut places = Vec::new();
        for path in op.paths() {
            let path = path.clone();
            let follow = !freedoms::spares_last_link(op);
            if follow {
                places.push(Place {
                    path: path.clone(),
                    follow,
                    detail: inside,
                });
            }
            if op.changes_names()
                && let Some(parent) = parent(&path)
            {
                places.push(Place {
                    path: parent,
                    follow: true,
                    detail: inside,
                });
            }
            places.push(Place {
                path,
                follow: false,
                detail: inside,
            });
        }
        if op.changes_bytes() || matches!(op.object(), Some(Object::File(_))) {
            for slot in op.slots() {
                if let Some(path) = self.opened[caller].get(slot).and_then(Option::as_ref) {
                    places.push(Place {
                        path: path.clone(),
                        follow: true,
                        detail: inside,
                    });
                }
            }
        }
        places
    }

    fn note_opened(&mut self, caller: usize, op: &Op, succeeded: bool) {
        match op {
            Op::Open { path, slot, .. } => {
                self.opened[caller][*slot] = succeeded.then(|| path.clone());
            }
            Op::Close { slot } => self.opened[caller][*slot] = None,
            _ => {}
        }
    }

    fn count(&mut self, op: &Op, succeeded: bool) {
        self.summary.succeeded += usize::from(succeeded);
        let counts = self.summary.kinds.entry(op.name()).or_default();
        if succeeded {
            counts.0 += 1
        } else {
            counts.1 += 1
        }
    }

    fn compare_trees(&mut self) -> Verdict<crate::diff::view::Snapshot> {
        self.outcomes = None;
        let trees = (self.sides.kernel.snapshot(), self.sides.library.snapshot());
        match trees {
            (Ok(kernel), Ok(library)) => {
                self.comparer.snapshots(&kernel, &library)?;
                Ok(kernel)
            }
            (kernel, library) => Err(Box::new(Difference {
                aspect: "snapshot",
                object: "the whole tree".into(),
                kernel: format!("{:?}", kernel.err()),
                library: format!("{:?}", library.err()),
            })),
        }
    }
}

/// The directory of a path's last component, as far as the spelling tells.
fn parent(path: &Bytes) -> Option<Bytes> {
    let end = path.0.iter().rposition(|&byte| byte != b'/')? + 1;
    let trimmed = &path.0[..end];
    let start = trimmed.iter().rposition(|&byte| byte == b'/');
    Some(Bytes(match start {
        Some(0) => b"/".to_vec(),
        Some(slash) => trimmed[..slash].to_vec(),
        None => b".".to_vec(),
    }))
}
