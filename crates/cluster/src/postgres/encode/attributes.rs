//! New inodes and changes of attributes.

use super::words::Encoder;
use crate::meta::{Change, NewInode};
use holdfast_types::{SetTime, Time};

impl Encoder {
    /// What `new_node` takes.
    pub(super) fn push_inode(&mut self, new: &NewInode) {
        self.push_number(new.ino.0);
        self.words.push(new.kind.dirent_type().into());
        self.words.push(new.perm.into());
        self.push_wrapped(new.uid);
        self.push_wrapped(new.gid);
        self.words.push(new.rdev.cast_signed());
        self.push_wrapped(new.flags.bits());
        self.push_wrapped(new.project);
        self.words.push(new.target.is_some().into());
        self.words.push(new.xattrs.len() as i64);
        new.target.iter().for_each(|target| self.push_blob(target));
        for (name, value) in &new.xattrs {
            self.push_blob(name);
            self.push_blob(value);
        }
    }

    /// What `with_attributes` takes.
    pub(super) fn push_change(&mut self, change: &Change) {
        let time = |time: Option<SetTime>, at: i64, now: i64| match time {
            None => (0, 0),
            Some(SetTime::At(Time(time))) => (at, time),
            Some(SetTime::Now) => (now, 0),
        };
        let (atime_bit, atime) = time(change.atime, 8, 16);
        let (mtime_bit, mtime) = time(change.mtime, 32, 64);
        let bit = |set: bool, bit: i64| if set { bit } else { 0 };
        self.words.push(
            bit(change.perm.is_some(), 1)
                | bit(change.uid.is_some(), 2)
                | bit(change.gid.is_some(), 4)
                | atime_bit
                | mtime_bit
                | bit(change.flags.is_some(), 128)
                | bit(change.project.is_some(), 256)
                | bit(change.acl.is_some(), 512)
                | bit(change.drops_capability, 1024),
        );
        self.words.push(change.perm.unwrap_or(0).into());
        self.push_wrapped(change.uid.unwrap_or(0));
        self.push_wrapped(change.gid.unwrap_or(0));
        self.words.extend([atime, mtime]);
        self.push_wrapped(change.flags.map_or(0, |flags| flags.bits()));
        self.push_wrapped(change.project.unwrap_or(0));
        change.acl.iter().for_each(|acl| self.push_blob(acl));
    }
}
