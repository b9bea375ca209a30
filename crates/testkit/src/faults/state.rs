//! What the files of one thread are after each of its operations.
//!
//! Files are made of words. Each word names its file and the write of the thread that brought it,
//! so that no bytes of another file or another time pass for it.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a word.
pub(super) const WORD: usize = 8;

/// A word of a file: zero, or its number and that of a write.
pub(super) type Word = u64;

pub(super) fn word(id: u32, write: u32) -> Word {
    u64::from(id) << 32 | u64::from(write)
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct File {
    /// No other file, of this thread or another, ever has it.
    pub(super) id: u32,
    pub(super) words: Arc<Vec<Word>>,
}

/// Files by their paths in the thread's directory.
pub(super) type Files = BTreeMap<String, File>;

/// What is found of them: words by paths.
pub(super) type Found = BTreeMap<String, Vec<Word>>;

/// The files between one operation and the next.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) files: Files,
    /// When the operation that led here began and had ended, by the round's clock.
    pub(super) began: u64,
    pub(super) ended: u64,
}

/// The states of a thread's files in their order.
#[derive(Clone, Debug)]
pub(super) struct States(pub(super) Vec<State>);

impl States {
    /// The states from `first` on that are found, the first and the last of them.
    ///
    /// # Errors
    /// What contradicts the first, if none is.
    pub(super) fn found(&self, first: usize, found: &Found) -> Result<(usize, usize), String> {
        let mut places =
            (first..self.0.len()).filter(|at| self.contradiction(*at, found).is_none());
        match places.next() {
            Some(one) => Ok((one, places.next_back().unwrap_or(one))),
            None => Err(format!(
                "after operation {first} of {} {}",
                self.0.len() - 1,
                self.contradiction(first, found).unwrap_or_default()
            )),
        }
    }

    /// What says that the files that are found are not those of the state at a place.
    fn contradiction(&self, at: usize, found: &Found) -> Option<String> {
        let files = &self.0[at].files;
        if let Some(name) = found.keys().find(|name| !files.contains_key(*name)) {
            return Some(format!("there is no {name}"));
        }
        files.iter().find_map(|(name, file)| {
            let Some(words) = found.get(name) else {
                return Some(format!("{name} is missing"));
            };
            if words.len() != file.words.len() {
                let (found, expected) = (words.len() * WORD, file.words.len() * WORD);
                return Some(format!("{name} has {found} bytes and not {expected}"));
            }
            let mut pairs = (0..).zip(words.iter().zip(&*file.words));
            let differs = pairs.find(|(place, (found, expected))| {
                found != expected && !self.comes_later(at, file.id, *place, **found)
            });
            let (place, (found, expected)) = differs?;
            Some(format!(
                "{name} (file {:x}) has {found:x} and not {expected:x} at byte {}",
                file.id,
                place * WORD
            ))
        })
    }

    /// Has a file this word at a place in a later state? Blocks of files are written in place
    /// before their commit is durable.
    fn comes_later(&self, at: usize, id: u32, place: usize, found: Word) -> bool {
        self.0[at + 1..].iter().any(|later| {
            let mut files = later.files.values();
            let file = files.find(|file| file.id == id);
            file.is_some_and(|file| file.words.get(place).copied().unwrap_or(0) == found)
        })
    }
}

/// Finds words of another file in one: all words of a file that are not zero have one number, and
/// threads have numbers of their own.
pub(super) fn foreign(thread: usize, found: &Found) -> Option<String> {
    found.iter().find_map(|(name, words)| {
        let mut ids = words
            .iter()
            .filter(|word| **word != 0)
            .map(|word| word >> 32);
        let first = ids.next()?;
        let other = std::iter::once(first)
            .chain(ids)
            .find(|id| *id != first || owner(*id as u32) != thread)?;
        Some(format!(
            "thread {thread}: {name} has bytes of another file ({other:x} in {first:x})"
        ))
    })
}

/// The number of a thread's nth file.
pub(super) fn id_of(thread: usize, nth: u32) -> u32 {
    ((thread as u32 + 1) << 20) + nth
}

fn owner(id: u32) -> usize {
    (id >> 20).wrapping_sub(1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(lists: &[&[Word]]) -> States {
        let state = |words: &&[Word]| {
            let (id, words) = (id_of(0, 1), Arc::new(words.to_vec()));
            State {
                files: Files::from([("f".to_owned(), File { id, words })]),
                began: 0,
                ended: 0,
            }
        };
        States(lists.iter().map(state).collect())
    }

    fn found(words: &[Word]) -> Found {
        Found::from([("f".to_owned(), words.to_vec())])
    }

    #[test]
    fn a_state_is_found_and_no_earlier_one() {
        let [one, two] = [1, 2].map(|write| word(id_of(0, 1), write));
        let states = states(&[&[one], &[one, one], &[one, one], &[two, one]]);
        assert_eq!(states.found(0, &found(&[one, one])), Ok((1, 2)));
        assert!(states.found(3, &found(&[one, one])).is_err(), "lost");
        assert_eq!(states.found(1, &found(&[two, one])), Ok((1, 3)), "in place");
        assert!(states.found(0, &found(&[two])).is_ok());
        assert!(states.found(1, &found(&[0, one])).is_err(), "zeros");
        assert!(states.found(0, &Found::new()).is_err(), "missing");
    }

    #[test]
    fn bytes_of_other_files_and_threads_are_foreign() {
        let [own, other] = [1, 2].map(|nth| word(id_of(0, nth), 1));
        assert_eq!(foreign(0, &found(&[0, own, own])), None);
        assert!(foreign(0, &found(&[own, 0, other])).is_some());
        assert!(foreign(1, &found(&[own])).is_some());
    }
}
