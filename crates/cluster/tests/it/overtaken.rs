//! Answers that overtake each other: threads of one mount change one directory, and each sees what
//! it did itself.

use crate::{Client, Cluster};
use holdfast_cluster::meta::Settings;
use holdfast_core::Node;
use holdfast_core::types::{Caller, Errno, OpenFlags, RenameFlags, SetAttr};
use holdfast_testkit::rng::Rng;
use holdfast_testkit::{effort, seed};
use std::collections::BTreeMap;
use std::time::Duration;

const THREADS: u64 = 6;
/// Microseconds that an answer may take.
const DELAY: u64 = 300;

/// The files of a thread, with their permission bits and content.
type Files = BTreeMap<Vec<u8>, (u16, Vec<u8>)>;

struct Worker<'c> {
    client: &'c Client,
    dir: Node,
    thread: u64,
    random: Rng,
    files: Files,
}

impl Worker<'_> {
    fn name(&mut self) -> Vec<u8> {
        format!("{}-{}", self.thread, self.random.below(6)).into_bytes()
    }

    fn step(&mut self) {
        let (fs, who) = (&self.client.fs, Caller::root());
        let (name, other) = (self.name(), self.name());
        let before = fs.attributes(&self.dir).unwrap();
        let mut changes = true;
        match (self.random.below(6), self.files.contains_key(&name)) {
            (0 | 1, false) => {
                let flags = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::WRITE_ONLY;
                let file = fs.create(&who, &self.dir, &name, 0o644, flags).unwrap();
                let content = vec![self.random.below(256) as u8; self.random.index(9000)];
                fs.write(&who, &file, 0, &content).unwrap();
                fs.flush(&file).unwrap();
                self.files.insert(name.clone(), (0o644, content));
            }
            (2, true) => {
                fs.unlink(&who, &self.dir, &name).unwrap();
                self.files.remove(&name);
            }
            (3, true) => {
                let flags = RenameFlags::empty();
                let renamed = fs.rename(&who, &self.dir, &name, &self.dir, &other, flags);
                assert_eq!(renamed, Ok(()));
                let moved = self.files.remove(&name).unwrap();
                self.files.insert(other.clone(), moved);
                changes = name != other;
            }
            (4, true) => {
                let node = fs.lookup(&who, &self.dir, &name).unwrap();
                let perm = self.random.below(0o1000) as u16;
                let set = SetAttr {
                    perm: Some(perm),
                    ..SetAttr::default()
                };
                fs.setattr(&who, &node, &set, None).unwrap();
                assert_eq!(fs.attributes(&node).unwrap().perm, perm);
                self.files.get_mut(&name).unwrap().0 = perm;
                changes = false;
            }
            _ => changes = false,
        }
        let after = fs.attributes(&self.dir).unwrap();
        assert!(after.ctime >= before.ctime, "time goes forward");
        assert!(
            !changes || after.mtime > before.mtime,
            "a change of a name is seen"
        );
        self.look(&name);
        self.look(&other);
        if self.random.below(10) == 0 {
            self.list();
        }
    }

    /// A name is as this thread left it.
    fn look(&self, name: &[u8]) {
        let (fs, who) = (&self.client.fs, Caller::root());
        let found = fs.lookup(&who, &self.dir, name);
        let Some((perm, content)) = self.files.get(name) else {
            return assert_eq!(found.map(drop), Err(Errno::ENOENT), "{name:?}");
        };
        let node = found.unwrap_or_else(|error| panic!("{name:?}: {error}"));
        let attributes = fs.attributes(&node).unwrap();
        assert_eq!(attributes.perm, *perm);
        assert_eq!(attributes.size, content.len() as u64);
        let file = fs.open(&who, &node, OpenFlags::empty()).unwrap();
        let mut read = vec![0; content.len() + 1];
        let count = fs.read(&file, 0, &mut read).unwrap();
        assert!(read[..count] == content[..], "{name:?}");
    }

    /// The names of this thread are all in a listing, and no others.
    fn list(&self) {
        let fs = &self.client.fs;
        let open = fs
            .open(&Caller::root(), &self.dir, OpenFlags::DIRECTORY)
            .unwrap();
        let mut names = Vec::new();
        let prefix = format!("{}-", self.thread);
        let all = fs.read_dir(&open, 0, &mut |entry| {
            if entry.name.starts_with(prefix.as_bytes()) {
                names.push(entry.name.to_vec());
            }
            true
        });
        all.unwrap();
        names.sort();
        let own: Vec<Vec<u8>> = self.files.keys().cloned().collect();
        assert_eq!(names, own);
    }
}

#[test]
fn each_thread_sees_its_own_changes() {
    for notifies in [false, true] {
        let cluster = Cluster::with(Settings {
            lease: Duration::from_secs(3600),
            notifies,
            ..Settings::default()
        });
        let client = cluster.client();
        client.meta.set_delay(DELAY);
        let who = Caller::root();
        let dir = client
            .fs
            .mkdir(&who, &client.fs.root(), b"dir", 0o755)
            .unwrap();
        let seed = seed(1);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let mut worker = Worker {
                    client: &client,
                    dir: dir.clone(),
                    thread,
                    random: Rng::new(seed * 100 + thread),
                    files: Files::new(),
                };
                scope.spawn(move || {
                    for _ in 0..effort().of(300, 10_000) {
                        worker.step();
                    }
                });
            }
        });
    }
}
