//! What one thread does in a round.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use holdfast_core::OpenFile;
use holdfast_types::{Errno, OpenFlags, RenameFlags, Result, SetAttr};

use super::round::World;
use super::state::{File, Files, State, States, WORD, id_of, word};
use crate::rng::Rng;

/// Operations of a thread in a round, at most.
const OPERATIONS: u32 = 50;
/// A thread gives up after so many errors in a row.
const ERRORS: u32 = 6;
/// Names in each directory of a thread.
const NAMES: u64 = 4;
/// Words of a file, at most.
const WORDS: u64 = 3000;

/// What an operation may answer beside a device that fails.
fn is_allowed(error: Errno) -> bool {
    matches!(error, Errno::EIO | Errno::ENOSPC | Errno::EROFS)
}

/// A thread at work.
pub(super) struct Worker<'w> {
    world: &'w World,
    thread: usize,
    rng: Rng,
    files: Files,
    made: u32,
    states: Vec<State>,
}

impl<'w> Worker<'w> {
    pub(super) fn new(world: &'w World, thread: usize, seed: u64) -> Self {
        let first = State {
            files: Files::new(),
            began: 0,
            ended: 0,
        };
        Self {
            world,
            thread,
            rng: Rng::new(seed ^ (thread as u64 + 1) << 56),
            files: Files::new(),
            made: 0,
            states: vec![first],
        }
    }

    /// Does its operations; returns the states of its files.
    ///
    /// # Errors
    /// If an operation answers what it must not.
    pub(super) fn run(mut self) -> std::result::Result<States, String> {
        let mut errors = 0;
        for number in 1..=OPERATIONS {
            let began = self.world.tick();
            // A device that panics does so in its caller.
            let call = AssertUnwindSafe(|| self.step(number));
            let outcome = catch_unwind(call).unwrap_or(Err(Errno::EIO));
            match outcome {
                Ok(()) => {
                    errors = 0;
                    let (files, ended) = (self.files.clone(), self.world.tick());
                    self.states.push(State {
                        files,
                        began,
                        ended,
                    });
                    self.world.done(self.thread, self.states.len() - 1);
                }
                // Memory is ahead of a store that failed: a name may be gone although its removal
                // failed.
                Err(error) if is_allowed(error) || self.world.has_failed() => {
                    // Nothing of it happened, but for a file that was made.
                    self.files = self
                        .states
                        .last()
                        .map_or_else(Files::new, |last| last.files.clone());
                    errors += 1;
                }
                Err(error) => return Err(format!("thread {}: {error}", self.thread)),
            }
            if errors == ERRORS {
                break;
            }
        }
        Ok(States(self.states))
    }

    fn step(&mut self, number: u32) -> Result<()> {
        match self.rng.below(20) {
            0..9 => self.write(number),
            9..11 => self.truncate(),
            11..13 => self.rename(),
            13..15 => self.unlink(),
            15..18 => self.fsync(),
            18 => self.world.promised(|world| world.fs.sync()),
            _ => self.world.promised(World::checkpoint),
        }
    }

    fn name(&mut self) -> String {
        let dir = self.rng.pick(&["a", "b"]);
        format!("{dir}/{}", self.rng.below(NAMES))
    }

    /// A name that is in use, if there are any.
    fn used(&mut self) -> Option<String> {
        let place = self.rng.index(self.files.len());
        self.files.keys().nth(place).cloned()
    }

    fn open(&self, name: &str, flags: OpenFlags) -> Result<OpenFile> {
        let World { fs, who, .. } = self.world;
        let path = format!("{}/{name}", self.thread);
        let flags = flags | OpenFlags::READ_WRITE;
        fs.open_at(who, &fs.root(), path.as_bytes(), flags, 0o644)
    }

    fn write(&mut self, number: u32) -> Result<()> {
        let name = self.name();
        let (file, opened) = match self.files.get(&name) {
            Some(file) => (file.clone(), self.open(&name, OpenFlags::empty())?),
            None => {
                let began = self.world.tick();
                let flags = OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
                let opened = self.open(&name, flags)?;
                self.made += 1;
                let id = id_of(self.thread, self.made);
                let file = File {
                    id,
                    words: Arc::default(),
                };
                // It is made, whatever becomes of what is written to it.
                self.files.insert(name.clone(), file.clone());
                let ended = self.world.tick();
                self.states.push(State {
                    files: self.files.clone(),
                    began,
                    ended,
                });
                self.world.done(self.thread, self.states.len() - 1);
                (file, opened)
            }
        };
        let len = file.words.len() as u64;
        let at = match self.rng.below(4) {
            0 | 1 => len,
            2 => self.rng.below(len + 1),
            _ => self.rng.below(WORDS / 2),
        };
        let most = *self.rng.pick(&[20, 200, 600, WORDS]);
        let count = 1 + self.rng.below(most);
        let count = count.min(WORDS.saturating_sub(at)).max(1);
        let own = word(file.id, number);
        let bytes = own.to_le_bytes().repeat(count as usize);
        let World { fs, who, .. } = self.world;
        let done = fs.write(who, &opened, at * WORD as u64, &bytes)?;
        if done % WORD != 0 {
            // A part of it that no word tells: the rest is written, or the round ends here.
            return Err(Errno::EINVAL);
        }
        let mut words = Vec::clone(&file.words);
        let end = at as usize + done / WORD;
        if words.len() < end {
            words.resize(end, 0);
        }
        words[at as usize..end].fill(own);
        self.put(name, file.id, words);
        Ok(())
    }

    fn put(&mut self, name: String, id: u32, words: Vec<u64>) {
        let words = Arc::new(words);
        self.files.insert(name, File { id, words });
    }

    fn truncate(&mut self) -> Result<()> {
        let Some(name) = self.used() else {
            return Ok(());
        };
        let size = self.rng.below(WORDS);
        let opened = self.open(&name, OpenFlags::empty())?;
        let set = SetAttr {
            size: Some(size * WORD as u64),
            ..SetAttr::default()
        };
        let World { fs, who, .. } = self.world;
        fs.setattr(who, opened.node(), &set, Some(&opened))?;
        let file = &self.files[&name];
        let mut words = Vec::clone(&file.words);
        words.resize(size as usize, 0);
        self.put(name, file.id, words);
        Ok(())
    }

    fn rename(&mut self) -> Result<()> {
        let (Some(from), to) = (self.used(), self.name()) else {
            return Ok(());
        };
        let World { fs, who, .. } = self.world;
        let path = |name: &str| format!("{}/{name}", self.thread).into_bytes();
        let (root, flags) = (fs.root(), RenameFlags::empty());
        fs.rename_at(who, &root, &path(&from), &root, &path(&to), flags)?;
        if let Some(file) = self.files.remove(&from) {
            self.files.insert(to, file);
        }
        Ok(())
    }

    fn unlink(&mut self) -> Result<()> {
        let Some(name) = self.used() else {
            return Ok(());
        };
        let World { fs, who, .. } = self.world;
        let path = format!("{}/{name}", self.thread);
        fs.unlink_at(who, &fs.root(), path.as_bytes())?;
        self.files.remove(&name);
        Ok(())
    }

    fn fsync(&mut self) -> Result<()> {
        let Some(name) = self.used() else {
            return Ok(());
        };
        let opened = self.open(&name, OpenFlags::empty())?;
        self.world.promised(|world| world.fs.fsync(&opened, false))
    }
}
