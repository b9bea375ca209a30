//! Names and their histories.

use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What a name leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Absent,
    File,
    Link,
    Directory,
    Pipe,
}

/// What is seen of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) kind: Kind,
    /// The content of a file, the target of a link, or the child of a directory.
    pub(super) version: u64,
    pub(super) perm: u32,
    /// The value of an extended attribute; 0: it has none.
    pub(super) label: u64,
    /// Is its content what the host told of? Else only an open file shows it in time.
    pub(super) is_notifying: bool,
}

impl State {
    pub(super) const ABSENT: Self = Self {
        kind: Kind::Absent,
        version: 0,
        perm: 0,
        label: 0,
        is_notifying: true,
    };

    /// Bytes of a file of this version: most files are short, some take several pages.
    pub(super) fn size(self) -> u64 {
        match self.version % 5 {
            0 => 20_000,
            _ => 40,
        }
    }
}

/// A time in which a name had a state.
#[derive(Clone, Copy, Debug)]
struct Period {
    state: State,
    from: Instant,
    /// Before this time the state was being made: a file may have been shorter.
    complete: Instant,
    /// `None`: it still has it.
    until: Option<Instant>,
}

/// A name of a directory that is changed below its mount.
pub(super) struct Name {
    /// In the directory, and in its mount.
    pub(super) path: PathBuf,
    history: Mutex<Vec<Period>>,
}

/// How what was seen relates to the history of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    /// It was so during the look, or as long before it began.
    Was(Duration),
    /// It never was so.
    Never,
}

impl Name {
    pub(super) fn new(path: &Path) -> Self {
        let now = Instant::now();
        Self {
            path: path.into(),
            history: Mutex::new(vec![Period {
                state: State::ABSENT,
                from: now,
                complete: now,
                until: None,
            }]),
        }
    }

    pub(super) fn state(&self) -> State {
        let history = self.history.lock();
        history.last().map_or(State::ABSENT, |last| last.state)
    }

    /// The name is about to have this state. Call [`changed`](Self::changed) when it has.
    pub(super) fn changes(&self, state: State) {
        let now = Instant::now();
        self.history.lock().push(Period {
            state,
            from: now,
            // Until it is complete, which is not known yet.
            complete: now + Duration::from_secs(3600),
            until: None,
        });
    }

    /// The name has its last state, and not the one before any more.
    pub(super) fn changed(&self) {
        let now = Instant::now();
        let mut history = self.history.lock();
        if let [.., before, last] = &mut history[..] {
            before.until = Some(now);
            last.complete = now;
        }
    }

    /// How old is what was seen in this time? `partly` says which states show while they are being
    /// made.
    pub(super) fn age(
        &self,
        (begun, ended): (Instant, Instant),
        partly: impl Fn(State) -> bool,
        seen: impl Fn(State) -> bool,
    ) -> Age {
        let history = self.history.lock();
        let mut age = Age::Never;
        for period in history.iter().rev().filter(|period| period.from <= ended) {
            let until = match (seen(period.state), partly(period.state)) {
                (true, _) => period.until,
                (false, true) => Some(period.complete),
                (false, false) => continue,
            };
            let since = until.map_or(Duration::ZERO, |until| {
                begun.saturating_duration_since(until)
            });
            age = match age {
                Age::Was(known) => Age::Was(known.min(since)),
                Age::Never => Age::Was(since),
            };
            if since.is_zero() {
                break;
            }
        }
        age
    }
}
