//! The seam to the database: requests, questions and their answers.
//!
//! [`Meta`] is one session of one client. It has two engines: one in memory, which is the model,
//! and PostgreSQL. Both give the same answers, errors included. A call blocks until it is answered.
//!
//! *Changes* are [requests](Request): each is one transaction, and has happened exactly once when
//! it succeeds, whatever was sent again on the way. Permissions and the form of names were checked
//! by the core.
//!
//! *Times.* The database's clock is the only one. A change moves the `ctime` of each inode that it
//! changes, by one nanosecond at least. So a [`Version`](holdfast_core::store::Version) tells any
//! two states of an inode apart.
//!
//! *Content.* A regular file has a [body](Content::Body) in the database, or
//! [extents](Content::Extents) in objects, never both. [`Node::generation`] changes with each
//! change of the content, and with nothing else.
//!
//! *Numbers* of inodes, cookies and objects come from one space, dealt by [`Meta::deal`], and none
//! is used twice.

mod node;
mod request;
mod session;

pub use node::{Content, Directory, Extent, Found, Node, Pages};
pub use request::{Answer, Change, Edit, Flush, NewInode, Request, Size};
pub use session::{Beat, BeatAnswer, ClientInfo, Epoch, Message, Settings, Staged, Usage};

use holdfast_core::store::{EntryRecord, Rest};
use holdfast_types::{Ino, Result};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// One session with the database of a file system.
///
/// *Topics.* `topics` are directories that the client wants to be told of, in time with the
/// question: a change is either contained in the answer, or comes as a [`Message`] later. A topic
/// covers the names of a directory, and the attributes and content of inodes with it as `parent`.
///
/// *Errors* of all calls: `EIO` when the database did not answer in the time that the mount allows,
/// `EINTR` when a signal ended the wait, `ESTALE` when the session was ended by the others.
pub trait Meta: Send + Sync + 'static {
    /// The settings of the file system, as they were when the session began.
    fn settings(&self) -> Settings;

    /// Performs a change.
    ///
    /// # Errors
    /// Those of the request; nothing happened then.
    fn perform(&self, request: Request) -> Result<Answer>;

    /// Looks names of a directory up, in this order. `None`: the name does not exist.
    ///
    /// # Errors
    /// `ESTALE`: the directory does not exist.
    fn look_up(&self, dir: Ino, names: &[&[u8]], topics: &[Ino]) -> Result<Vec<Option<Found>>>;

    /// Loads inodes by number, in any order; those that do not exist are left out.
    ///
    /// # Errors
    /// None of its own.
    fn load(&self, inos: &[Ino], topics: &[Ino]) -> Result<Vec<Node>>;

    /// Loads targets and extended attributes, in this order.
    ///
    /// # Errors
    /// `ESTALE`: one of them does not exist.
    fn load_rests(&self, inos: &[Ino]) -> Result<Vec<Rest>>;

    /// At most `max` names with cookies greater than `after`, in cookie order.
    ///
    /// # Errors
    /// `ESTALE`: the directory does not exist.
    fn read_names(
        &self,
        dir: Ino,
        after: u64,
        max: usize,
        topics: &[Ino],
    ) -> Result<Vec<EntryRecord>>;

    /// Reads directories of at most `most` names each, in this order. `None`: the directory has
    /// more names, or does not exist.
    ///
    /// # Errors
    /// None of its own.
    fn read_directories(
        &self,
        dirs: &[Ino],
        most: usize,
        inodes: bool,
        topics: &[Ino],
    ) -> Result<Vec<Option<Directory>>>;

    /// The content of a regular file, with its generation.
    ///
    /// # Errors
    /// `ESTALE`: it does not exist.
    fn content(&self, ino: Ino) -> Result<(u64, Content)>;

    /// At most `max` inodes with numbers greater than `after`, by number.
    ///
    /// # Errors
    /// None of its own.
    fn walk(&self, after: Ino, max: usize) -> Result<Vec<Node>>;

    /// Space that is in use.
    ///
    /// # Errors
    /// None of its own.
    fn usage(&self) -> Result<Usage>;

    /// Deals `count` numbers to this session.
    ///
    /// # Errors
    /// None of its own.
    fn deal(&self, count: u64) -> Result<Range<u64>>;

    /// Shows that the session lives, and fetches its messages. The answer proves that the session
    /// was told of all changes up to the moment when the beat was sent.
    ///
    /// # Errors
    /// None of its own.
    fn beat(&self, beat: &Beat) -> Result<BeatAnswer>;

    /// Sets what is called, on any thread, when the next beat is likely to bring messages. It must
    /// not block. An engine need not call it: a beat brings all messages in any case. Called once.
    fn on_message(&self, notified: Arc<dyn Fn() + Send + Sync>) {
        drop(notified);
    }

    /// Ends the session: what only it kept is free. Later calls fail with `ESTALE`.
    ///
    /// # Errors
    /// None of its own.
    fn end(&self) -> Result<()>;

    /// All sessions.
    ///
    /// # Errors
    /// None of its own.
    fn clients(&self) -> Result<Vec<ClientInfo>>;

    /// Ends another session at once. Its requests fail with `ESTALE` from then on.
    ///
    /// # Errors
    /// `ENOENT`: there is no such session.
    fn fence(&self, session: u64) -> Result<()>;

    /// Does one round of what any client does for all: ends sessions that were not heard of for a
    /// minute, and frees at most `max` inodes without names that no session keeps. Returns the
    /// number of inodes freed.
    ///
    /// # Errors
    /// None of its own.
    fn sweep(&self, max: usize) -> Result<u64>;

    /// At most `max` bodies larger than the inline limit that are older than ten seconds, oldest
    /// first: they are to be moved into objects by [`Request::Flush`].
    ///
    /// # Errors
    /// None of its own.
    fn staged(&self, max: usize) -> Result<Vec<Staged>>;

    /// At most `max` objects that may be deleted: those without a mapped byte for the time that the
    /// file system keeps them, and numbers dealt to sessions that have ended, for which no object
    /// was ever mapped, among `listed`.
    ///
    /// # Errors
    /// None of its own.
    fn deletable(&self, listed: &[u64], max: usize) -> Result<Vec<u64>>;

    /// Objects that were deletable are deleted: the database forgets them.
    ///
    /// # Errors
    /// None of its own.
    fn deleted(&self, objects: &[u64]) -> Result<()>;

    /// Checks the invariants of the database, and with `repair` restores what can be. Each finding
    /// is a sentence that names the object.
    ///
    /// # Errors
    /// None of its own.
    fn check(&self, repair: bool) -> Result<Vec<String>>;

    /// Round trips of this session so far, by the function of the database that was called.
    fn trips(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
}
