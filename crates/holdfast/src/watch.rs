use std::cell::Cell;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_core::Watch;

use crate::EventMask;
use crate::dir::{Dir, os_str};
use crate::types::Access;

/// An event of a watched inode, or of a name in a watched directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The path given to `watch`, joined with the name in the directory if the event has one.
    pub path: PathBuf,
    /// The kind of event. [`EventMask::ISDIR`]: the object is a directory.
    pub mask: EventMask,
    /// Joins the two events of a rename; 0 for others.
    pub cookie: u32,
    /// Is the event about a name in the watched directory, not about the watched inode itself?
    pub is_name: bool,
}

impl Event {
    /// The name in the watched directory that this is about.
    #[must_use]
    pub fn name(&self) -> Option<&OsStr> {
        self.path.file_name().filter(|_| self.is_name)
    }
}

/// Receives the events of one watched inode; begun by
/// [`Dir::watch`](crate::Dir::watch), ended when dropped.
///
/// The queue holds 16,384 events; [`EventMask::Q_OVERFLOW`] means that some were lost.
/// [`EventMask::IGNORED`] is the last event of an inode that was removed: the iterators end after
/// it.
///
/// ```
/// use holdfast::{EventMask, FileSystem};
/// use std::time::Duration;
///
/// let fs = FileSystem::memory();
/// fs.create_dir("/inbox")?;
/// let watcher = fs.watch("/inbox", EventMask::CREATE | EventMask::CLOSE_WRITE)?;
/// fs.write("/inbox/letter", "Dear Ada")?;
///
/// let event = watcher.recv_timeout(Duration::from_secs(1)).expect("a name was made");
/// assert_eq!((event.mask, event.path.to_str()), (EventMask::CREATE, Some("/inbox/letter")));
/// let rest: Vec<_> = watcher.try_iter().map(|event| event.mask).collect();
/// assert_eq!(rest, [EventMask::CLOSE_WRITE]);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Watcher {
    watch: Watch,
    path: PathBuf,
    /// Has `IGNORED` been received? No event follows it.
    ended: Cell<bool>,
}

impl Dir {
    /// Watches what a path leads to, as inotify(7): a directory's watch also hears of the names
    /// in it, and of the files they lead to. Needs permission to read.
    ///
    /// ```
    /// use holdfast::{EventMask, FileSystem};
    ///
    /// let fs = FileSystem::memory();
    /// let watcher = fs.watch("/", EventMask::MOVE)?;
    /// fs.write("/draft", "")?;
    /// fs.rename("/draft", "/final")?;
    /// let names: Vec<_> = watcher.try_iter().map(|event| event.path).collect();
    /// assert_eq!(names, ["/draft", "/final"].map(std::path::PathBuf::from));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// `EINVAL` for a mask without an event; `EACCES` without permission to read.
    pub fn watch(&self, path: impl AsRef<Path>, mask: EventMask) -> io::Result<Watcher> {
        let path = path.as_ref();
        let node = self.resolve(path, true)?;
        self.view.core.access(&self.view.who, &node, Access::READ)?;
        Ok(Watcher {
            watch: self.view.core.watch(&node, mask)?,
            path: path.to_owned(),
            ended: Cell::new(false),
        })
    }
}

impl Watcher {
    /// The path that is watched, as it was given; the inode may have moved since.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next event, if one has come.
    pub fn try_recv(&self) -> Option<Event> {
        self.taken(self.watch.try_next())
    }

    /// Waits for the next event; `None` once the watch has ended.
    pub fn recv(&self) -> Option<Event> {
        self.recv_timeout(Duration::MAX)
    }

    /// Waits for the next event for `timeout`; `None` also once the watch has ended.
    pub fn recv_timeout(&self, timeout: Duration) -> Option<Event> {
        if self.ended.get() {
            return None;
        }
        self.taken(self.watch.next_timeout(timeout))
    }

    /// All events to come, waiting for each, until the watch ends.
    pub fn iter(&self) -> impl Iterator<Item = Event> + '_ {
        std::iter::from_fn(|| self.recv())
    }

    /// The events that have come.
    pub fn try_iter(&self) -> impl Iterator<Item = Event> + '_ {
        std::iter::from_fn(|| self.try_recv())
    }

    fn taken(&self, event: Option<holdfast_core::Event>) -> Option<Event> {
        let event = event?;
        if event.mask.contains(EventMask::IGNORED) {
            self.ended.set(true);
        }
        let path = match &event.name {
            Some(name) => self.path.join(os_str(name)),
            None => self.path.clone(),
        };
        Some(Event {
            path,
            mask: event.mask,
            cookie: event.cookie,
            is_name: event.name.is_some(),
        })
    }
}

impl IntoIterator for Watcher {
    type Item = Event;
    type IntoIter = Events;

    fn into_iter(self) -> Events {
        Events(self)
    }
}

/// The events of a [`Watcher`], which waits for each until the watch ends.
#[derive(Debug)]
pub struct Events(Watcher);

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        self.0.recv()
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher")
            .field("path", &self.path)
            .field("watch", &self.watch)
            .finish_non_exhaustive()
    }
}
