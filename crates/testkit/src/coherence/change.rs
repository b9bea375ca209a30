//! Changes of names, made in the directory itself.

use super::name::{Kind, Name, State};
use crate::rng::Rng;
use rustix::fs::{
    CWD, FileType, Mode, RenameFlags, XattrFlags, mknodat, removexattr, renameat_with, setxattr,
};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The extended attribute that is set.
pub(super) const LABEL: &str = "user.label";

/// What targets of links begin with, so that they lead nowhere.
pub(super) const TARGET: &str = "version ";

/// Changes names.
pub(super) struct Changer<'v> {
    /// The directory that is mounted.
    pub(super) source: PathBuf,
    /// A directory beside it, of the same file system.
    pub(super) aside: PathBuf,
    pub(super) versions: &'v AtomicU64,
    pub(super) rng: Rng,
}

/// The content of a file of this version.
pub(super) fn content(state: State) -> Vec<u8> {
    let line = format!("{:039}\n", state.version);
    line.repeat(state.size() as usize / line.len()).into_bytes()
}

impl Changer<'_> {
    fn version(&self) -> u64 {
        self.versions.fetch_add(1, Relaxed)
    }

    fn new_state(&mut self) -> State {
        let kinds = [
            Kind::File,
            Kind::File,
            Kind::Link,
            Kind::Directory,
            Kind::Pipe,
        ];
        let kind = *self.rng.pick(&kinds);
        State {
            kind,
            version: self.version(),
            perm: match kind {
                Kind::Link => 0o777,
                _ => 0o700 + self.rng.below(64) as u32,
            },
            ..State::ABSENT
        }
    }

    /// Changes a name once.
    ///
    /// # Errors
    /// What the host answers.
    pub(super) fn change(&mut self, name: &Name) -> io::Result<()> {
        let path = self.source.join(&name.path);
        let was = name.state();
        match (was.kind, self.rng.below(8)) {
            (Kind::Absent, 0..4) => self.make(name, &path),
            (Kind::Absent, _) => self.put(name, &path, RenameFlags::NOREPLACE),
            (_, 0) => self.remove(name, &path, was),
            (_, 1) => self.put(name, &path, RenameFlags::EXCHANGE),
            (Kind::File, 2) => self.replace_file(name, &path),
            (Kind::File, 3) => self.write_anew(name, &path, was),
            (Kind::File, 4) => self.write_by_another_name(name, &path, was),
            (Kind::File, 5) => self.label(name, &path, was),
            (Kind::Directory, 2..5) => self.rename_child(name, &path, was),
            (Kind::Link | Kind::Pipe, 2..5) => self.remove(name, &path, was),
            (Kind::Link, _) => self.put(name, &path, RenameFlags::EXCHANGE),
            _ => self.chmod(name, &path, was),
        }
    }

    /// Makes it in its place.
    fn make(&mut self, name: &Name, path: &Path) -> io::Result<()> {
        let mut state = self.new_state();
        if state.kind == Kind::Directory {
            // Its child would come later.
            state.kind = Kind::Pipe;
        }
        name.changes(state);
        make_at(path, state)?;
        name.changed();
        Ok(())
    }

    /// Makes it elsewhere, and moves it to its place as a whole; what was there goes.
    fn put(&mut self, name: &Name, path: &Path, how: RenameFlags) -> io::Result<()> {
        let state = self.new_state();
        let aside = self.aside.join(format!("{}", state.version));
        make_at(&aside, state)?;
        name.changes(state);
        renameat_with(CWD, &aside, CWD, path, how)?;
        name.changed();
        if how == RenameFlags::EXCHANGE {
            remove_at(&aside)?;
        }
        Ok(())
    }

    fn replace_file(&mut self, name: &Name, path: &Path) -> io::Result<()> {
        let state = State {
            kind: Kind::File,
            perm: 0o640,
            ..self.new_state()
        };
        let aside = self.aside.join(format!("{}", state.version));
        make_at(&aside, state)?;
        name.changes(state);
        fs::rename(&aside, path)?;
        name.changed();
        Ok(())
    }

    fn remove(&mut self, name: &Name, path: &Path, was: State) -> io::Result<()> {
        name.changes(State::ABSENT);
        if was.kind == Kind::Directory {
            let aside = self.aside.join(format!("{}", self.version()));
            fs::rename(path, &aside)?;
            name.changed();
            return remove_at(&aside);
        }
        fs::remove_file(path)?;
        name.changed();
        Ok(())
    }

    fn write_anew(&mut self, name: &Name, path: &Path, was: State) -> io::Result<()> {
        let state = State {
            version: self.version(),
            is_notifying: true,
            ..was
        };
        name.changes(state);
        write_at(path, state, was)?;
        name.changed();
        Ok(())
    }

    /// Writes it by a second name, in a directory that is not watched.
    fn write_by_another_name(&mut self, name: &Name, path: &Path, was: State) -> io::Result<()> {
        let state = State {
            version: self.version(),
            is_notifying: false,
            ..was
        };
        let aside = self.aside.join(format!("{}", state.version));
        name.changes(state);
        fs::hard_link(path, &aside)?;
        write_at(&aside, state, was)?;
        fs::remove_file(&aside)?;
        name.changed();
        Ok(())
    }

    fn label(&mut self, name: &Name, path: &Path, was: State) -> io::Result<()> {
        let label = match was.label {
            0 => self.version(),
            _ => 0,
        };
        name.changes(State { label, ..was });
        match label {
            0 => removexattr(path, LABEL)?,
            _ => setxattr(path, LABEL, &label.to_le_bytes(), XattrFlags::empty())?,
        }
        name.changed();
        Ok(())
    }

    fn rename_child(&mut self, name: &Name, path: &Path, was: State) -> io::Result<()> {
        let state = State {
            version: self.version(),
            ..was
        };
        name.changes(state);
        let child = |state: State| path.join(format!("{}", state.version));
        fs::rename(child(was), child(state))?;
        name.changed();
        Ok(())
    }

    fn chmod(&mut self, name: &Name, path: &Path, was: State) -> io::Result<()> {
        let perm = 0o700 + (was.perm + 1 + self.rng.below(63) as u32) % 64;
        name.changes(State { perm, ..was });
        fs::set_permissions(path, Permissions::from_mode(perm))?;
        name.changed();
        Ok(())
    }
}

fn write_at(path: &Path, state: State, was: State) -> io::Result<()> {
    let mut open = OpenOptions::new();
    let same_size = state.size() == was.size();
    let mut file = open.write(true).truncate(!same_size).open(path)?;
    file.write_all(&content(state))
}

fn make_at(path: &Path, state: State) -> io::Result<()> {
    match state.kind {
        Kind::Absent => return Ok(()),
        Kind::File => File::create_new(path)?.write_all(&content(state))?,
        Kind::Link => return symlink(format!("{TARGET}{}", state.version), path),
        Kind::Directory => {
            fs::create_dir(path)?;
            File::create_new(path.join(format!("{}", state.version)))?;
        }
        Kind::Pipe => mknodat(CWD, path, FileType::Fifo, Mode::RUSR, 0)?,
    }
    fs::set_permissions(path, Permissions::from_mode(state.perm))
}

fn remove_at(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path)?.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    }
}
