//! Sessions: what they are interested in, their messages, and their end.

use super::state::{Nameless, Session, State, later_by};
use crate::meta::{Beat, BeatAnswer, ClientInfo, Epoch, Message};
use holdfast_types::{Errno, Ino, Result, Time};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::time::Duration;

/// A session that was silent for so long is ended by the others.
const SILENT_MAX: Duration = Duration::from_secs(60);
/// The most messages of one answer.
const ANSWER_MAX: usize = 1024;
/// The most inodes without names of one answer.
const NAMELESS_MAX: usize = 4096;
/// The most messages that wait for a session. One more, and its interest is struck.
const INBOX_MAX: usize = 65_536;

impl State {
    /// Begins a session.
    pub(super) fn begin(&mut self) -> u64 {
        let number = self.next_session;
        self.next_session += 1;
        let session = Session {
            last_beat: self.clock.now(),
            inbox: VecDeque::new(),
            next_message: 1,
            struck: 0,
            topics: BTreeSet::new(),
            looked_at: self.next_nameless - 1,
        };
        self.sessions.insert(number, session);
        number
    }

    /// A session becomes interested.
    ///
    /// # Errors
    /// `ESTALE`: the session has ended.
    pub(super) fn subscribe(&mut self, session: u64, topics: &[Ino]) -> Result<()> {
        let entry = self.sessions.get_mut(&session).ok_or(Errno::ESTALE)?;
        for topic in topics {
            entry.topics.insert(*topic);
            self.interest.entry(*topic).or_default().insert(session);
        }
        Ok(())
    }

    fn unsubscribe(&mut self, session: u64, topic: Ino) {
        if let Some(sessions) = self.interest.get_mut(&topic) {
            sessions.remove(&session);
            if sessions.is_empty() {
                self.interest.remove(&topic);
            }
        }
    }

    /// Takes all interest from a session, and its messages with it. Its next beat tells it so.
    fn strike(&mut self, number: u64) {
        let Some(session) = self.sessions.get_mut(&number) else {
            return;
        };
        session.inbox.clear();
        session.struck += 1;
        for topic in std::mem::take(&mut session.topics) {
            self.unsubscribe(number, topic);
        }
    }

    /// Sends a message to all other sessions that are interested in one of these topics.
    pub(super) fn send(&mut self, from: u64, topics: &[Ino], message: &Message) {
        let interested = topics.iter().filter_map(|topic| self.interest.get(topic));
        let mut receivers: BTreeSet<u64> = interested.flatten().copied().collect();
        receivers.remove(&from);
        for receiver in receivers {
            let Some(session) = self.sessions.get_mut(&receiver) else {
                continue;
            };
            if session.inbox.len() >= INBOX_MAX {
                self.strike(receiver);
                continue;
            }
            let number = session.next_message;
            session.next_message += 1;
            session.inbox.push_back((number, message.clone()));
        }
    }

    /// # Errors
    /// `ESTALE`: the session has ended.
    pub(super) fn beat(&mut self, number: u64, beat: &Beat) -> Result<BeatAnswer> {
        let now = self.clock.now();
        let starts = self.starts;
        for topic in &beat.unsubscribes {
            self.unsubscribe(number, *topic);
        }
        for ino in &beat.knows {
            if let Some(inode) = self.inodes.get_mut(ino)
                && inode.nameless.is_some()
            {
                inode.keepers.insert(number);
            }
        }
        for ino in &beat.releases {
            if let Some(inode) = self.inodes.get_mut(ino) {
                inode.keepers.remove(&number);
            }
        }
        let session = self.sessions.get_mut(&number).ok_or(Errno::ESTALE)?;
        session.last_beat = now;
        for topic in &beat.unsubscribes {
            session.topics.remove(topic);
        }
        session.inbox.retain(|(number, _)| *number > beat.taken);
        session.looked_at = session
            .looked_at
            .max(beat.looked_at.min(self.next_nameless - 1));
        let nameless = self.nameless.range(session.looked_at + 1..);
        let nameless: Vec<(u64, Ino)> = nameless
            .map(|(since, ino)| (*since, *ino))
            .take(NAMELESS_MAX)
            .collect();
        let upto = match nameless.len() {
            NAMELESS_MAX => nameless.last().map_or(0, |(since, _)| *since),
            _ => self.next_nameless - 1,
        };
        Ok(BeatAnswer {
            now,
            epoch: Epoch(starts, 1, session.struck),
            messages: session.inbox.iter().take(ANSWER_MAX).cloned().collect(),
            more: session.inbox.len() > ANSWER_MAX,
            gone: nameless.into_iter().map(|(_, ino)| ino).collect(),
            gone_upto: upto,
        })
    }

    /// Ends a session: what only it kept is free.
    ///
    /// # Errors
    /// `ENOENT`: there is no such session.
    pub(super) fn end(&mut self, number: u64) -> Result<()> {
        self.strike(number);
        self.sessions.remove(&number).ok_or(Errno::ENOENT)?;
        for inode in self.inodes.values_mut() {
            inode.keepers.remove(&number);
        }
        Ok(())
    }

    /// Deals numbers to a session.
    ///
    /// # Errors
    /// `ENOSPC`: no numbers are left.
    pub(super) fn deal(&mut self, session: u64, count: u64) -> Result<Range<u64>> {
        let first = self.next_number;
        let end = first.checked_add(count).filter(|end| *end >> 63 == 0);
        let range = first..end.ok_or(Errno::ENOSPC)?;
        self.next_number = range.end;
        if count > 0 {
            self.deals.insert(first, (range.clone(), session));
        }
        Ok(range)
    }

    pub(super) fn clients(&self, own: u64) -> Vec<ClientInfo> {
        let now = self.clock.now();
        let info = |(number, session): (&u64, &Session)| ClientInfo {
            session: *number,
            host: "memory".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            silent: since(session.last_beat, now),
            waiting: session.inbox.len() as u64,
            own: *number == own,
        };
        self.sessions.iter().map(info).collect()
    }

    /// Ends silent sessions, and frees inodes. Returns their number.
    pub(super) fn sweep(&mut self, max: usize) -> u64 {
        let now = self.clock.now();
        let silent = |(number, session): (&u64, &Session)| {
            (later_by(session.last_beat, SILENT_MAX) < now).then_some(*number)
        };
        let silent: Vec<u64> = self.sessions.iter().filter_map(silent).collect();
        for number in silent {
            // The session is among them.
            let _ = self.end(number);
        }
        let looked_at = self.sessions.values().map(|session| session.looked_at);
        let looked_at = looked_at.min().unwrap_or(u64::MAX);
        let free = self.inodes.values().filter(|inode| {
            let looked_at = match inode.nameless {
                None => false,
                Some(Nameless::Yet) => true,
                Some(Nameless::Since(since)) => since <= looked_at,
            };
            looked_at && inode.keepers.is_empty()
        });
        let free: Vec<Ino> = free.map(|inode| inode.stored.ino).take(max).collect();
        for ino in &free {
            self.free(*ino, now);
        }
        free.len() as u64
    }

    fn free(&mut self, ino: Ino, now: Time) {
        let Some(inode) = self.inodes.remove(&ino) else {
            return;
        };
        if let Some(Nameless::Since(since)) = inode.nameless {
            self.nameless.remove(&since);
        }
        self.uncount(&inode.content, now);
    }

    /// The database starts anew.
    pub(super) fn restart(&mut self) {
        self.starts += 1;
        self.interest.clear();
        for session in self.sessions.values_mut() {
            session.topics.clear();
            session.inbox.clear();
        }
    }
}

/// The time from one moment to another.
fn since(from: Time, to: Time) -> Duration {
    let nanos =
        |time: Time| i128::from(time.secs()) * 1_000_000_000 + i128::from(time.subsec_nanos());
    let nanos = (nanos(to) - nanos(from)).max(0);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
