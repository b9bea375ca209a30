//! One change: what it touches, and which messages it sends.
//!
//! A request checks everything before it touches anything, so that an error changes nothing.

use super::state::{Inode, Named, Nameless, State, later_by};
use crate::meta::{Answer, Message};
use holdfast_core::store::Version;
use holdfast_types::{Errno, FileType, Ino, Result, Time};
use std::time::Duration;

/// A change by a session.
pub(super) struct Transaction<'a> {
    pub(super) state: &'a mut State,
    pub(super) session: u64,
    pub(super) now: Time,
    touched: Vec<Touched>,
    /// Names that were added or removed, or lead elsewhere.
    changed_names: Vec<(Ino, Box<[u8]>)>,
}

/// An inode that a change touches.
struct Touched {
    ino: Ino,
    before: Option<Version>,
    /// The `parent` before.
    parent: Ino,
    content: bool,
    /// Did only the place of the bytes change?
    moved: bool,
}

impl<'a> Transaction<'a> {
    pub(super) fn new(state: &'a mut State, session: u64) -> Self {
        let now = state.clock.now();
        Self {
            state,
            session,
            now,
            touched: Vec::new(),
            changed_names: Vec::new(),
        }
    }

    /// Notes the version before the first change of an inode, which exists.
    fn note(&mut self, ino: Ino, moved: bool) -> Option<(&mut Inode, bool)> {
        let inode = self.state.inodes.get_mut(&ino)?;
        let new = self.touched.iter().all(|it| it.ino != ino);
        if new {
            self.touched.push(Touched {
                ino,
                before: Some(inode.version()),
                parent: inode.stored.parent,
                content: false,
                moved,
            });
        }
        Some((inode, new))
    }

    /// Changes an inode. Its `ctime` grows, to at least this time.
    ///
    /// # Errors
    /// `ESTALE`: it does not exist.
    pub(super) fn touch_at(&mut self, ino: Ino, at: Time) -> Result<&mut Inode> {
        let (inode, new) = self.note(ino, false).ok_or(Errno::ESTALE)?;
        if new {
            let next = later_by(inode.stored.ctime, Duration::from_nanos(1));
            inode.stored.ctime = at.max(next);
        }
        Ok(inode)
    }

    /// Changes an inode now.
    ///
    /// # Errors
    /// `ESTALE`: it does not exist.
    pub(super) fn touch(&mut self, ino: Ino) -> Result<&mut Inode> {
        self.touch_at(ino, self.now)
    }

    /// Changes an inode without a change of its times.
    ///
    /// # Errors
    /// `ESTALE`: it does not exist.
    pub(super) fn touch_quietly(&mut self, ino: Ino) -> Result<&mut Inode> {
        let noted = self.note(ino, true);
        noted.map(|(inode, _)| inode).ok_or(Errno::ESTALE)
    }

    /// The content of an inode that is touched changes.
    pub(super) fn changes_content(&mut self, ino: Ino) {
        for touched in &mut self.touched {
            touched.content |= touched.ino == ino;
        }
    }

    /// Adds an inode.
    pub(super) fn add(&mut self, inode: Inode) {
        let (ino, parent) = (inode.stored.ino, inode.stored.parent);
        self.touched.push(Touched {
            ino,
            before: None,
            parent,
            content: false,
            moved: false,
        });
        self.state.inodes.insert(ino, inode);
    }

    /// The names of a directory change: this one does.
    fn touch_name(&mut self, dir: Ino, name: &[u8]) -> Result<&mut Inode> {
        self.changed_names.push((dir, name.into()));
        let inode = self.touch(dir)?;
        inode.stored.mtime = inode.stored.ctime;
        Ok(inode)
    }

    /// A free name leads to an inode, which has it counted already.
    ///
    /// # Errors
    /// `ESTALE`: the directory does not exist.
    pub(super) fn put_name(&mut self, dir: Ino, name: &[u8], named: Named) -> Result<()> {
        self.touch_name(dir, name)?.insert(name, named);
        Ok(())
    }

    /// A name leads nowhere any more. The inode has it counted still.
    ///
    /// # Errors
    /// `ESTALE`: the directory does not exist.
    pub(super) fn take_name(&mut self, dir: Ino, name: &[u8]) -> Result<()> {
        self.touch_name(dir, name)?.remove(name);
        Ok(())
    }

    /// An inode lost a name in a directory.
    ///
    /// # Errors
    /// `ESTALE`: one of them does not exist.
    pub(super) fn uncount_name(&mut self, ino: Ino, dir: Ino) -> Result<()> {
        let inode = self.touch(ino)?;
        inode.stored.nlink = match inode.is_dir() {
            true => 0,
            false => inode.stored.nlink.saturating_sub(1),
        };
        let (is_dir, nlink) = (inode.is_dir(), inode.stored.nlink);
        if is_dir {
            self.count_directory(dir, false)?;
        }
        if nlink == 0 {
            let since = self.state.next_nameless;
            self.state.next_nameless += 1;
            self.state.nameless.insert(since, ino);
            self.touch(ino)?.nameless = Some(Nameless::Since(since));
        }
        Ok(())
    }

    /// A directory has one directory more, or one less.
    ///
    /// # Errors
    /// `ESTALE`: it does not exist.
    pub(super) fn count_directory(&mut self, dir: Ino, more: bool) -> Result<()> {
        let nlink = &mut self.touch(dir)?.stored.nlink;
        *nlink = match more {
            true => nlink.saturating_add(1),
            false => nlink.saturating_sub(1),
        };
        Ok(())
    }

    /// Ends the change: messages to the others, and the answer.
    pub(super) fn done(
        self,
        entry: Option<(Ino, FileType)>,
        other: Option<(Ino, FileType)>,
    ) -> Answer {
        let (state, session) = (self.state, self.session);
        for (dir, name) in self.changed_names {
            state.send(session, &[dir], &Message::Entry(dir, name));
        }
        let mut touched = Vec::with_capacity(self.touched.len());
        for it in self.touched {
            let Some(node) = state.node(it.ino) else {
                continue;
            };
            if it.before.is_some() && !it.moved {
                let topics = [it.parent, node.record.parent];
                let topics = &topics[usize::from(topics[0] == topics[1])..];
                state.send(session, topics, &Message::Inode(it.ino, it.content));
            }
            touched.push((it.before, node));
        }
        Answer::Done {
            entry,
            other,
            touched,
        }
    }
}
