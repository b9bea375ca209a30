//! A client that believes what it was answered until a message says otherwise.

use holdfast_cluster::meta::{Answer, Beat, Epoch, Message, Meta};
use holdfast_core::store::Version;
use holdfast_types::Ino;
use std::collections::{BTreeMap, BTreeSet};

/// What one client believes.
#[derive(Default)]
pub(crate) struct Receiver {
    topics: BTreeSet<Ino>,
    names: BTreeMap<(Ino, Box<[u8]>), Option<Ino>>,
    /// With the topic that covers it.
    versions: BTreeMap<Ino, (Ino, Version)>,
    taken: u64,
    epoch: Epoch,
    pub(crate) looked_at: u64,
}

impl Receiver {
    /// Asks for a name, and believes the answer.
    pub(crate) fn ask(&mut self, meta: &dyn Meta, dir: Ino, name: &[u8]) {
        let Ok(found) = meta.look_up(dir, &[name], &[dir]) else {
            return;
        };
        self.topics.insert(dir);
        let found = found.into_iter().next().flatten();
        let ino = found.as_ref().map(|it| it.entry.ino);
        self.names.insert((dir, name.into()), ino);
        if let Some(node) = found.and_then(|it| it.node)
            && self.topics.contains(&node.record.parent)
        {
            let believed = (node.record.parent, Version::of(&node.record));
            self.versions.insert(node.record.ino, believed);
        }
    }

    /// A change by this client itself.
    pub(crate) fn did(&mut self, names: &[(Ino, Box<[u8]>)], answer: &Answer) {
        for place in names {
            self.names.remove(place);
        }
        if let Answer::Done { touched, .. } = answer {
            for (_, node) in touched {
                self.versions.remove(&node.record.ino);
            }
        }
    }

    /// A topic is given back.
    pub(crate) fn forget(&mut self, topic: Ino) -> Option<Ino> {
        self.topics.remove(&topic).then_some(topic)?;
        self.names.retain(|(dir, _), _| *dir != topic);
        self.versions.retain(|_, (parent, _)| *parent != topic);
        Some(topic)
    }

    /// Takes messages in, and returns inodes that this client is asked for.
    pub(crate) fn beat(&mut self, meta: &dyn Meta, mut beat: Beat) -> Vec<Ino> {
        beat.looked_at = self.looked_at;
        let mut gone = Vec::new();
        loop {
            beat.taken = self.taken;
            let answer = meta.beat(&beat).expect("the session lives");
            beat.unsubscribes.clear();
            if answer.epoch != std::mem::replace(&mut self.epoch, answer.epoch) {
                self.topics.clear();
                self.names.clear();
                self.versions.clear();
            }
            for (number, message) in answer.messages {
                assert!(number > self.taken, "messages come once");
                self.taken = number;
                match message {
                    Message::Entry(dir, name) => drop(self.names.remove(&(dir, name))),
                    Message::Inode(ino, _) => drop(self.versions.remove(&ino)),
                }
            }
            gone.extend(answer.gone);
            self.looked_at = answer.gone_upto;
            if !answer.more {
                return gone;
            }
        }
    }

    /// Is everything that it believes true?
    pub(crate) fn is_right(&self, meta: &dyn Meta) {
        for ((dir, name), ino) in &self.names {
            // A directory that was freed has no names.
            let found = meta.look_up(*dir, &[name], &[]).unwrap_or_default();
            let found = found.first().and_then(|it| Some(it.as_ref()?.entry.ino));
            assert_eq!(found, *ino, "name {} of {dir}", name.escape_ascii());
        }
        for (ino, (_, version)) in &self.versions {
            let found = meta.load(&[*ino], &[]).expect("the session lives");
            // That an inode without names is freed is no news.
            if let Some(node) = found.first() {
                assert_eq!(Version::of(&node.record), *version, "inode {ino}");
            }
        }
    }
}
