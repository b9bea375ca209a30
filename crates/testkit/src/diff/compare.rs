//! What must be equal, and what of times can be judged.

use crate::diff::freedoms;
use crate::diff::host::{AtimeRule, LAST_PAGE};
use crate::diff::op::{Object, Op};
use crate::diff::outcome::Outcome;
use crate::diff::view::{Blocks, Content, Snapshot, Times, View};
use holdfast_types::{Errno, FileType, Result, Time};
use rustix::time::{ClockId, clock_gettime};
use std::collections::{HashMap, HashSet};

/// Where two targets were found to differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The aspect, in a word: shrinking keeps it.
    pub aspect: &'static str,
    /// The object, in words.
    pub object: String,
    /// What the kernel has.
    pub kernel: String,
    /// What the library has.
    pub library: String,
}

impl Difference {
    fn new(aspect: &'static str, object: &str, kernel: String, library: String) -> Box<Self> {
        Box::new(Self {
            aspect,
            object: object.to_owned(),
            kernel,
            library,
        })
    }
}

type Verdict = std::result::Result<(), Box<Difference>>;

/// A look at one object on both sides, before and after an operation.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) object: String,
    pub(super) kernel: (Option<Result<View>>, Result<View>),
    pub(super) library: (Option<Result<View>>, Result<View>),
}

/// Compares, and remembers which inode of one side is which of the other.
#[derive(Debug)]
pub(super) struct Comparer {
    atime: AtimeRule,
    /// Stamps before this moment were set explicitly.
    started: Time,
    /// The kernel's tick when the present step began.
    step_began: Time,
    to_library: HashMap<u64, u64>,
    to_kernel: HashMap<u64, u64>,
    /// The kernel's numbers of files with holes that differ by [`freedoms::Freedom::CopiedHoles`].
    copied: HashSet<u64>,
    /// The kernel's numbers of files that were preallocated: [`freedoms::Freedom::Preallocated`].
    preallocated: HashSet<u64>,
    /// Is the present step one with [`freedoms::Freedom::SameLength`]?
    truncates_by_path: bool,
}

fn tick() -> Time {
    let time = clock_gettime(ClockId::RealtimeCoarse);
    Time::new(time.tv_sec, time.tv_nsec as u32)
}

impl Comparer {
    pub(super) fn new(atime: AtimeRule) -> Self {
        // The roots are a little older than the run; explicit times are years away.
        let now = tick();
        Self {
            atime,
            started: Time(now.0 - 60_000_000_000),
            step_began: now,
            to_library: HashMap::new(),
            to_kernel: HashMap::new(),
            copied: HashSet::new(),
            preallocated: HashSet::new(),
            truncates_by_path: false,
        }
    }

    /// Notes the time at which a step begins, and what it is.
    pub(super) fn begin_step(&mut self, op: &Op) {
        let by_path = matches!(
            op,
            Op::Truncate {
                object: Object::Path(_) | Object::Link(_),
                ..
            }
        );
        self.truncates_by_path = by_path;
        self.step_began = tick();
    }

    /// Notes that a file got bytes by copy_file_range(2).
    pub(super) fn note_copied(&mut self, kernel: &View) {
        self.copied.insert(kernel.ino);
    }

    /// Notes that space was taken for a file.
    pub(super) fn note_preallocated(&mut self, kernel: &View) {
        self.preallocated.insert(kernel.ino);
    }

    /// Have the two sides' files of this look the same holes?
    pub(super) fn same_holes(&self, kernel: &View) -> bool {
        let unlike = self.copied.contains(&kernel.ino) || self.preallocated.contains(&kernel.ino);
        !unlike && kernel.size <= LAST_PAGE
    }

    pub(super) fn outcomes(&mut self, kernel: &Outcome, library: &Outcome) -> Verdict {
        let same = match (kernel, library) {
            (Outcome::Attributes(kernel), Outcome::Attributes(library)) => {
                return self.views("answer", kernel, library);
            }
            (Outcome::Broken(_), _) | (_, Outcome::Broken(_)) => false,
            _ => kernel == library || freedoms::excuses(kernel, library).is_some(),
        };
        if same {
            return Ok(());
        }
        Err(Difference::new(
            "outcome",
            "answer",
            kernel.brief(),
            library.brief(),
        ))
    }

    /// Compares one object's look after a step, and which of its times the step touched.
    pub(super) fn pair(&mut self, pair: &Pair) -> Verdict {
        let object = &pair.object;
        let (kernel, library) = match (&pair.kernel.1, &pair.library.1) {
            (Ok(kernel), Ok(library)) => (kernel, library),
            (kernel, library) => return existence(object, kernel, library),
        };
        self.views(object, kernel, library)?;
        if let (Some(Ok(kernel_before)), Some(Ok(library_before))) =
            (&pair.kernel.0, &pair.library.0)
            && kernel_before.ino == kernel.ino
            && library_before.ino == library.ino
        {
            if self.truncates_by_path && kernel_before.size == kernel.size {
                return Ok(());
            }
            self.touches(
                object,
                (&kernel_before.times, &kernel.times),
                (&library_before.times, &library.times),
            )?;
        }
        Ok(())
    }

    pub(super) fn snapshots(&mut self, kernel: &Snapshot, library: &Snapshot) -> Verdict {
        for (path, view) in kernel {
            let object = format!("tree {path:?}");
            match library.get(path) {
                Some(other) => self.views(&object, view, other)?,
                None => existence(&object, &Ok(view.clone()), &Err(Errno::ENOENT))?,
            }
        }
        for (path, view) in library
            .iter()
            .filter(|(path, _)| !kernel.contains_key(path))
        {
            existence(
                &format!("tree {path:?}"),
                &Err(Errno::ENOENT),
                &Ok(view.clone()),
            )?;
        }
        Ok(())
    }

    fn views(&mut self, object: &str, kernel: &View, library: &View) -> Verdict {
        macro_rules! same {
            ($($field:ident)*) => {
                $(if kernel.$field != library.$field {
                    let (kernel, library) = (&kernel.$field, &library.$field);
                    let (kernel, library) = (format!("{kernel:?}"), format!("{library:?}"));
                    return Err(Difference::new(stringify!($field), object, kernel, library));
                })*
            };
        }
        same!(kind nlink uid gid rdev);
        if kernel.perm != library.perm {
            let (kernel, library) = (
                format!("{:04o}", kernel.perm),
                format!("{:04o}", library.perm),
            );
            return Err(Difference::new("perm", object, kernel, library));
        }
        if kernel.kind != FileType::Directory {
            same!(size);
        }
        if kernel.kind == FileType::Regular && !self.copied.contains(&kernel.ino) {
            same!(blocks);
        }
        if kernel.size == 0 && kernel.blocks == 0 && library.blocks == 0 {
            self.copied.remove(&kernel.ino);
            self.preallocated.remove(&kernel.ino);
        }
        if let (Content::Bytes(mine), Content::Bytes(theirs)) = (&kernel.content, &library.content)
            && let Some(offset) = mine.first_difference(theirs)
        {
            let side = |blocks: &Blocks| format!("{:02x?} at {offset}", blocks.sample(offset));
            return Err(Difference::new("bytes", object, side(mine), side(theirs)));
        }
        same!(content xattrs);
        self.explicit_times(object, &kernel.times, &library.times)?;
        self.numbers(object, kernel.ino, library.ino)
    }

    fn numbers(&mut self, object: &str, kernel: u64, library: u64) -> Verdict {
        let forth = *self.to_library.entry(kernel).or_insert(library);
        let back = *self.to_kernel.entry(library).or_insert(kernel);
        if (forth, back) == (library, kernel) {
            return Ok(());
        }
        let (kernel, library) = (format!("inode {kernel}"), format!("{library}, was {forth}"));
        Err(Difference::new("identity", object, kernel, library))
    }

    /// Stamps of both sides' clocks cannot be equal, those set by a caller must be.
    fn explicit_times(&self, object: &str, kernel: &Times, library: &Times) -> Verdict {
        // The kernel's fine stamps run ahead of the tick, by less than this.
        let horizon = Time(tick().0 + 1_000_000_000);
        for (name, kernel, library) in fields(kernel, library) {
            if name == "atime" && self.atime == AtimeRule::Ignored {
                continue;
            }
            let by_clock = |time: Time| time >= self.started && time <= horizon;
            if kernel != library && !(by_clock(kernel) && by_clock(library)) {
                return Err(Difference::new(name, object, spell(kernel), spell(library)));
            }
        }
        Ok(())
    }

    fn touches(
        &self,
        object: &str,
        kernel: (&Times, &Times),
        library: (&Times, &Times),
    ) -> Verdict {
        let befores = fields(kernel.0, library.0);
        let afters = fields(kernel.1, library.1);
        let relative_split =
            self.atime == AtimeRule::Relative && is_due(kernel.0) != is_due(library.0);
        for ((name, kernel, library), (_, kernel_after, library_after)) in
            befores.into_iter().zip(afters)
        {
            if name == "atime" && (relative_split || self.atime == AtimeRule::Ignored) {
                continue;
            }
            let touched = (
                self.touch(kernel, kernel_after),
                self.touch(library, library_after),
            );
            if let (Some(kernel), Some(library)) = touched
                && kernel != library
            {
                let word = |touched| if touched { "touched" } else { "left alone" };
                let (kernel, library) = (word(kernel).to_owned(), word(library).to_owned());
                return Err(Difference::new(name, object, kernel, library));
            }
        }
        Ok(())
    }

    /// Was the time touched? Unknown if it holds the present tick already.
    fn touch(&self, before: Time, after: Time) -> Option<bool> {
        if before != after {
            return Some(true);
        }
        (after < self.step_began).then_some(false)
    }
}

/// Would relatime record the next access?
fn is_due(times: &Times) -> bool {
    const DAY: i64 = 86_400 * 1_000_000_000;
    times.atime <= times.mtime || times.atime <= times.ctime || tick().0 - times.atime.0 >= DAY
}

fn fields(kernel: &Times, library: &Times) -> [(&'static str, Time, Time); 4] {
    [
        ("atime", kernel.atime, library.atime),
        ("mtime", kernel.mtime, library.mtime),
        ("ctime", kernel.ctime, library.ctime),
        ("btime", kernel.btime, library.btime),
    ]
}

fn spell(time: Time) -> String {
    format!("{}.{:09}", time.secs(), time.subsec_nanos())
}

fn existence(object: &str, kernel: &Result<View>, library: &Result<View>) -> Verdict {
    let word = |side: &Result<View>| match side {
        Ok(view) => format!("a {:?}", view.kind),
        Err(error) => format!("{error:?}"),
    };
    if kernel.is_err() && kernel.as_ref().err() == library.as_ref().err() {
        return Ok(());
    }
    Err(Difference::new(
        "existence",
        object,
        word(kernel),
        word(library),
    ))
}
