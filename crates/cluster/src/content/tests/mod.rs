//! Files over the engine in memory.

mod failures;
mod memory;
mod model;
mod racing;
mod seeded;

use super::{FileOptions, Files, Written};
use crate::memory::{Database, MemoryObjects};
use crate::meta::{Answer, Meta, NewInode, Node, Request, Settings};
use crate::numbers::Numbers;
use holdfast_types::{FileType, Ino, Result};
use std::io::IoSlice;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One client.
struct Client {
    meta: Arc<dyn Meta>,
    numbers: Arc<Numbers>,
    files: Arc<Files>,
}

fn settings(staged: u64) -> Settings {
    Settings {
        staged,
        ..Settings::default()
    }
}

fn quick() -> FileOptions {
    FileOptions {
        retry: Duration::from_millis(200),
        ..FileOptions::default()
    }
}

impl Client {
    fn new(database: &Arc<Database>, objects: &Arc<MemoryObjects>, options: FileOptions) -> Self {
        let meta = database.session();
        let numbers = Numbers::new(Arc::clone(&meta));
        let objects = Arc::clone(objects);
        let files = Files::new(Arc::clone(&meta), objects, Arc::clone(&numbers), options);
        Self {
            meta,
            numbers,
            files: files.unwrap(),
        }
    }

    fn make(&self, name: &str) -> Ino {
        let request = Request::Make {
            dir: Ino::ROOT,
            name: name.as_bytes().into(),
            new: NewInode {
                perm: 0o644,
                ..NewInode::new(
                    self.numbers.in_directory(Ino::ROOT).unwrap(),
                    FileType::Regular,
                )
            },
        };
        let Answer::Done { entry, touched, .. } = self.meta.perform(request).unwrap() else {
            panic!("it is made");
        };
        let (ino, _) = entry.unwrap();
        let (_, node) = touched.iter().find(|it| it.1.record.ino == ino).unwrap();
        self.files.open(node);
        ino
    }

    /// What the database says of a file, as the core sees it.
    fn load(&self, ino: Ino) -> Node {
        let mut node = self.meta.load(&[ino], &[]).unwrap().remove(0);
        self.files.seen(&node);
        self.files.lay_over(&mut node.record);
        node
    }

    fn write(&self, ino: Ino, offset: u64, data: &[u8]) -> Result<Written> {
        self.files.write(ino, Some(offset), &[IoSlice::new(data)])
    }

    fn read(&self, ino: Ino, offset: u64, len: usize) -> Vec<u8> {
        let mut buf = vec![0xee; len];
        self.files.read(ino, offset, &mut buf).unwrap();
        buf
    }
}

/// A step of the generator SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < until, "{what} takes too long");
        std::thread::sleep(Duration::from_millis(2));
    }
}
