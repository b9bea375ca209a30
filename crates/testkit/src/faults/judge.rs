//! What must hold of a volume after a crash.

use std::sync::Arc;

use holdfast_core::{FileSystem, Options};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_types::{Caller, OpenFlags, Result};
use holdfast_volume::{CheckOptions, OpenOptions, VolumeStore, check};

use super::state::{Found, States, WORD, foreign};
use crate::device::CrashState;

const CHECK: CheckOptions = CheckOptions {
    jobs: 1,
    findings_max: 20,
};

/// Opens a crash state and compares it with what the threads did and were promised.
///
/// # Errors
/// What is wrong.
pub(super) fn judge(
    crash: CrashState,
    states: &[States],
    promises: &[Vec<usize>],
) -> std::result::Result<(), String> {
    let mut least = vec![0; states.len()];
    for mark in crash.reached() {
        for (least, promised) in least.iter_mut().zip(&promises[mark as usize]) {
            *least = (*least).max(*promised);
        }
    }
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::from_image("crash", crash.image));
    let report = check(&device, &CHECK, &|_, _, _| {});
    if !report.is_clean() {
        let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        return Err(format!("it is unsound: {}", findings.join(" | ")));
    }
    let options = OpenOptions {
        commit_every: None,
        ..OpenOptions::default()
    };
    let store = VolumeStore::open(device, &options);
    let store = Arc::new(store.map_err(|error| format!("it does not open: {error}"))?);
    let fs = FileSystem::new(store, Options::default()).map_err(|error| error.to_string())?;
    let mut places = Vec::new();
    for (thread, (states, least)) in states.iter().zip(&least).enumerate() {
        let found = files(&fs, thread);
        let found = found.map_err(|error| format!("thread {thread}: cannot be read: {error}"))?;
        if let Some(trouble) = foreign(thread, &found) {
            return Err(trouble);
        }
        let place = states.found(*least, &found);
        places.push(place.map_err(|trouble| format!("thread {thread}: promised, {trouble}"))?);
    }
    one_moment(states, &places)
}

/// If an operation is there, each one that had ended before it began must be. `places`: the first
/// and the last state that each thread's files can be in.
fn one_moment(states: &[States], places: &[(usize, usize)]) -> std::result::Result<(), String> {
    for (one, (_, last)) in places.iter().enumerate() {
        let Some(missing) = states[one].0.get(last + 1) else {
            continue;
        };
        for (other, (first, _)) in places.iter().enumerate() {
            let there = &states[other].0[*first];
            if missing.ended < there.began {
                return Err(format!(
                    "operation {first} of thread {other} is there, and operation {} of thread {one}, which had ended before \
                     it began, is not",
                    last + 1
                ));
            }
        }
    }
    Ok(())
}

/// The files of a thread.
///
/// # Errors
/// What the file system answers.
pub(super) fn files(fs: &FileSystem, thread: usize) -> Result<Found> {
    let (who, root) = (Caller::root(), fs.root());
    let mut found = Found::new();
    for dir in ["a", "b"] {
        let path = format!("{thread}/{dir}");
        let node = fs.resolve(&who, &root, path.as_bytes(), false)?;
        let listing = fs.open(&who, &node, OpenFlags::NOATIME)?;
        let mut names = Vec::new();
        fs.read_dir(&listing, 0, &mut |entry| {
            if entry.name != b"." && entry.name != b".." {
                names.push(String::from_utf8_lossy(entry.name).into_owned());
            }
            true
        })?;
        for name in names {
            let path = format!("{path}/{name}");
            let file = fs.open_at(&who, &root, path.as_bytes(), OpenFlags::NOATIME, 0)?;
            let mut bytes = vec![0; fs.getattr(file.node()).size as usize];
            let read = fs.read(&file, 0, &mut bytes)?;
            let (words, rest) = bytes[..read].as_chunks::<WORD>();
            let mut words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
            // No file has a part of a word: as one that none has.
            if !rest.is_empty() || read < bytes.len() {
                words.push(u64::MAX);
            }
            found.insert(format!("{dir}/{name}"), words);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::state::{Files, State};
    use super::*;

    #[test]
    fn what_had_ended_before_something_that_is_there_began_is_there() {
        let states = |times: &[(u64, u64)]| {
            let state = |&(began, ended): &(u64, u64)| State {
                files: Files::new(),
                began,
                ended,
            };
            States(times.iter().map(state).collect())
        };
        let both = [
            states(&[(0, 0), (1, 2), (5, 8)]),
            states(&[(0, 0), (3, 4), (6, 7)]),
        ];
        assert_eq!(one_moment(&both, &[(1, 1), (1, 1)]), Ok(()));
        assert_eq!(
            one_moment(&both, &[(1, 1), (2, 2)]),
            Ok(()),
            "they were beside each other"
        );
        assert!(one_moment(&both, &[(0, 0), (1, 1)]).is_err());
        assert_eq!(one_moment(&both, &[(0, 1), (1, 1)]), Ok(()));
    }
}
