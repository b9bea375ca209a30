//! The same small scripts on the host's file system through `std::fs`, and on Holdfast: every
//! answer, every error and the resulting trees must agree.

mod attributes;
mod names;
mod open_files;
mod random;
mod subject;

use std::fmt::Debug;
use std::io::{self, ErrorKind};

use subject::{Host, Subject};

/// A call, and its answer as text; for an error its kind and number.
type Answer = (String, Result<String, (ErrorKind, Option<i32>)>);

/// All answers of a script.
#[derive(Default)]
pub(crate) struct Log(Vec<Answer>);

impl Log {
    /// Notes an answer.
    fn note<T: Debug>(&mut self, what: impl Into<String>, answer: io::Result<T>) -> Option<T> {
        let told = match &answer {
            Ok(value) => Ok(format!("{value:?}")),
            Err(error) => Err((error.kind(), error.raw_os_error())),
        };
        self.0.push((what.into(), told));
        answer.ok()
    }

    /// Notes the success of a call without a value.
    fn note_file<F>(&mut self, what: impl Into<String>, answer: io::Result<F>) -> Option<F> {
        let (file, answer) = match answer {
            Ok(file) => (Some(file), Ok(())),
            Err(error) => (None, Err(error)),
        };
        self.note(what, answer);
        file
    }
}

/// A script, for any subject.
trait Script {
    fn run<S: Subject>(&self, fs: &S, log: &mut Log);
}

/// Notes all names below a directory, with type and content.
fn note_tree<S: Subject>(fs: &S, path: &str, log: &mut Log) {
    for (name, _) in log
        .note(format!("list {path}"), fs.list(path))
        .unwrap_or_default()
    {
        let below = format!("{path}/{}", name.display());
        let look = log.note(format!("lstat {below}"), fs.lstat(&below));
        match look.map(|look| look.0 >> 12) {
            Some(0o4) => note_tree(fs, &below, log),
            Some(0o10) => drop(log.note(format!("read {below}"), fs.read(&below))),
            Some(0o12) => drop(log.note(format!("readlink {below}"), fs.read_link(&below))),
            _ => {}
        }
    }
}

/// Runs a script on both and compares.
fn compare(script: &impl Script) {
    let host = Host::new();
    let ours = host.twin();
    let mut logs = [Log::default(), Log::default()];
    script.run(&host, &mut logs[0]);
    script.run(&ours, &mut logs[1]);
    note_tree(&host, ".", &mut logs[0]);
    note_tree(&ours, ".", &mut logs[1]);
    let [theirs, ours] = logs;
    assert!(theirs.0.len() > 3, "the script did something");
    for (step, (theirs, ours)) in theirs.0.iter().zip(&ours.0).enumerate() {
        assert_eq!(theirs.0, ours.0, "both take step {step}");
        let agree = match (&theirs.1, &ours.1) {
            // An error made by the standard library itself has no number.
            (Err((kind, None)), Err((other, _))) => kind == other,
            (theirs, ours) => theirs == ours,
        };
        assert!(
            agree,
            "step {step}, {}: host {:?}, ours {:?}",
            theirs.0, theirs.1, ours.1
        );
    }
    assert_eq!(theirs.0.len(), ours.0.len());
}
