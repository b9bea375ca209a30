//! The engine in memory by itself: two sessions, and a clock that stands still.

mod content;
mod names;
mod sessions;

use super::Database;
use crate::meta::{Answer, Beat, BeatAnswer, Message, Meta, NewInode, Node, Request, Settings};
use holdfast_core::store::Version;
use holdfast_types::{FileType, Ino, RenameFlags, Result, Time};
use std::sync::Arc;
use std::time::Duration;

const ROOT: Ino = Ino::ROOT;

/// Two sessions with one database.
struct Two {
    database: Arc<Database>,
    a: Arc<dyn Meta>,
    b: Arc<dyn Meta>,
}

impl Two {
    fn new() -> Self {
        let database = Database::new(Settings::default());
        database.stop_clock(Time::new(1000, 0));
        Self {
            a: database.session(),
            b: database.session(),
            database,
        }
    }

    fn pass(&self, secs: u64) {
        self.database.pass(Duration::from_secs(secs));
    }

    fn number(&self) -> u64 {
        self.a.deal(1).unwrap().start
    }

    fn new_inode(&self, kind: FileType) -> NewInode {
        NewInode {
            perm: 0o644,
            uid: 7,
            gid: 8,
            ..NewInode::new(Ino(self.number()), kind)
        }
    }

    fn try_make(&self, dir: Ino, name: &str, kind: FileType) -> Result<Ino> {
        let new = self.new_inode(kind);
        let ino = new.ino;
        let (name, meta) = (bytes(name), &self.a);
        meta.perform(Request::Make { dir, name, new }).map(|_| ino)
    }

    fn make(&self, dir: Ino, name: &str, kind: FileType) -> Ino {
        self.try_make(dir, name, kind).unwrap()
    }

    fn file(&self, dir: Ino, name: &str) -> Ino {
        self.make(dir, name, FileType::Regular)
    }

    fn directory(&self, dir: Ino, name: &str) -> Ino {
        self.make(dir, name, FileType::Directory)
    }

    fn link(&self, ino: Ino, dir: Ino, name: &str) -> Result<Answer> {
        self.a.perform(Request::Link {
            ino,
            dir,
            name: bytes(name),
            cookie: self.number(),
        })
    }

    fn remove(&self, dir: Ino, name: &str, directory: bool) -> Result<Answer> {
        let name = bytes(name);
        self.a.perform(Request::Remove {
            dir,
            name,
            directory,
        })
    }

    fn rename(&self, from: (Ino, &str), to: (Ino, &str), flags: RenameFlags) -> Result<Answer> {
        let whiteout = flags.contains(RenameFlags::WHITEOUT);
        let cookie = self.a.deal(2).unwrap().start;
        self.a.perform(Request::Rename {
            from: (from.0, bytes(from.1)),
            to: (to.0, bytes(to.1)),
            flags,
            cookie,
            whiteout: whiteout.then(|| self.new_inode(FileType::CharDevice)),
        })
    }

    fn node(&self, ino: Ino) -> Node {
        self.a.load(&[ino], &[]).unwrap().remove(0)
    }

    fn nlink(&self, ino: Ino) -> u32 {
        self.node(ino).record.nlink
    }

    fn names(&self, dir: Ino) -> Vec<(String, Ino)> {
        let names = self.a.read_names(dir, 0, usize::MAX, &[]).unwrap();
        let name = |name: &[u8]| String::from_utf8(name.into()).unwrap();
        let names = names.iter().map(|entry| (name(&entry.name), entry.ino));
        names.collect()
    }

    /// The messages that wait for the second session.
    fn messages(&self) -> Vec<Message> {
        let answer = self.b.beat(&Beat::default()).unwrap();
        let taken = answer.messages.last().map_or(0, |(number, _)| *number);
        let beat = Beat {
            taken,
            ..Beat::default()
        };
        assert!(self.b.beat(&beat).unwrap().messages.is_empty());
        answer.messages.into_iter().map(|it| it.1).collect()
    }

    fn is_clean(&self) {
        assert_eq!(self.a.check(false).unwrap(), Vec::<String>::new());
    }
}

fn bytes(name: &str) -> Box<[u8]> {
    name.as_bytes().into()
}

/// What a request that succeeded touched.
fn touched(answer: Answer) -> Vec<(Option<Version>, Node)> {
    match answer {
        Answer::Done { touched, .. } => touched,
        Answer::Refused => panic!("refused"),
    }
}

/// A beat of a session that uses none of the inodes it is asked for.
fn beat(meta: &dyn Meta, looked_at: u64) -> BeatAnswer {
    let beat = Beat {
        looked_at,
        ..Beat::default()
    };
    meta.beat(&beat).unwrap()
}
