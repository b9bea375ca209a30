//! Sessions, their beats, and what concerns a file system as a whole.

use super::Content;
use holdfast_types::{Ino, Time};
use std::time::Duration;

/// The settings of a file system, which its database keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Identifies the file system.
    pub uuid: [u8; 16],
    /// Raised when the database is restored from a backup; part of the names of objects.
    pub incarnation: u64,
    /// The bucket's URL; empty if it has none.
    pub bucket: String,
    /// The endpoint of the bucket; empty for the default.
    pub endpoint: String,
    /// The region of the bucket; empty for the default.
    pub region: String,
    /// Are clients told of each other's changes? If not, answers are valid for `lease`.
    pub notifies: bool,
    /// How long answers stay valid without a beat.
    pub lease: Duration,
    /// Bodies up to this length stay in the database, in bytes.
    pub inline: u64,
    /// Files up to this length are written as bodies, in bytes; at most 256 KiB.
    pub staged: u64,
    /// How long an object without a mapped byte is kept.
    pub keep: Duration,
}

impl Default for Settings {
    /// Those of a file system that is made without options, without a bucket.
    fn default() -> Self {
        Self {
            uuid: [0; 16],
            incarnation: 1,
            bucket: String::new(),
            endpoint: String::new(),
            region: String::new(),
            notifies: true,
            lease: Duration::from_secs(1),
            inline: 4096,
            staged: 64 << 10,
            keep: Duration::from_secs(3600),
        }
    }
}

/// What a session says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beat {
    /// The last message that was taken in; those up to it are removed.
    pub taken: u64,
    /// Of the inodes in the last [`BeatAnswer::gone`], those that this client uses still.
    pub knows: Vec<Ino>,
    /// Inodes that it kept and uses no more.
    pub releases: Vec<Ino>,
    /// Everything in the last [`BeatAnswer::gone`] up to here was looked at.
    pub looked_at: u64,
    /// Topics of which this client wants to hear no more.
    pub unsubscribes: Vec<Ino>,
}

/// What a beat brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeatAnswer {
    /// The time of the database.
    pub now: Time,
    /// Changes when messages may have been lost.
    pub epoch: Epoch,
    /// Changes by others, with growing numbers. The answer may leave some for the next beat: then
    /// `more`.
    pub messages: Vec<(u64, Message)>,
    /// Are there more messages? Then the answer is no proof of having been told all.
    pub more: bool,
    /// Inodes that lost their last name, and for which this session was not asked yet.
    pub gone: Vec<Ino>,
    /// Pass this as [`Beat::looked_at`].
    pub gone_upto: u64,
}

/// Identifies a life of the database's unlogged memory: its start, its timeline, and a number that
/// is raised when a session's interest was struck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epoch(pub u64, pub u64, pub u64);

/// A change by another client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A name was added, removed, or leads to another inode.
    Entry(Ino, Box<[u8]>),
    /// Attributes of an inode changed; with `true`, its content as well.
    Inode(Ino, bool),
}

/// A client of the file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientInfo {
    /// The number of its session.
    pub session: u64,
    /// The name of its machine.
    pub host: String,
    /// The version of its program.
    pub version: String,
    /// The time since its last beat.
    pub silent: Duration,
    /// Messages that it has not taken in yet.
    pub waiting: u64,
    /// Is it this session?
    pub own: bool,
}

/// A body that is to be moved into an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staged {
    /// The file.
    pub ino: Ino,
    /// Its generation.
    pub generation: u64,
    /// The body.
    pub content: Content,
}

/// Space that is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Inodes.
    pub inodes: u64,
    /// Pages of 4 KiB that files take.
    pub pages: u64,
    /// Bytes of bodies that wait for being moved into objects.
    pub staged: u64,
    /// Objects.
    pub objects: u64,
    /// Bytes of objects.
    pub object_bytes: u64,
    /// Bytes of objects that are mapped.
    pub live_bytes: u64,
    /// Objects without a mapped byte that wait for deletion.
    pub unmapped: u64,
}
