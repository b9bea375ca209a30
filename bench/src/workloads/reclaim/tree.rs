//! A volume with a working set and a tree to walk over: what files there are, in which order, and
//! how one is looked at.

use crate::chance::mixed;
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use holdfast_core::{FileSystem, Node};
use holdfast_types::{Caller, OpenFlags};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Files of a directory of the working set, and of one that is walked.
pub(super) const USED_EACH: u32 = 100;
pub(super) const WALKED_EACH: u32 = 500;

/// What an inode takes at least with its name: no more of them fit than this allows.
const INODE_BYTES_MIN: u64 = 200;

/// Bytes of a file that has any.
pub(super) const FILE_BYTES: usize = 4096;

/// What is to stay in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, ValueEnum)]
pub(super) enum Of {
    /// Inodes with their names: each is looked up and asked for its attributes
    Inodes,
    /// Files of 4 KiB: each is opened and read
    Content,
}

/// The order in which directories are walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, ValueEnum)]
pub(super) enum Order {
    /// As they were made, which is that of their numbers
    Number,
    /// None
    Mixed,
}

impl fmt::Display for Of {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inodes => "inodes",
            Self::Content => "content",
        })
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number => "number",
            Self::Mixed => "mixed",
        })
    }
}

/// How many files there are. Objects are numbered: first those of the working set, then the others,
/// as they were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Tree {
    pub(super) of: Of,
    pub(super) used: u32,
    pub(super) walked: u32,
}

impl Tree {
    /// Enough files for a budget of so many bytes. The working set is at most a tenth of what fits.
    /// The walk and the reads before it need eleven times what fits.
    ///
    /// # Errors
    /// If that is more than can be numbered.
    pub(super) fn for_budget(of: Of, bytes: u64) -> Result<Self> {
        let fit = match of {
            // Content takes nothing.
            Of::Inodes => bytes / INODE_BYTES_MIN,
            Of::Content => bytes / FILE_BYTES as u64,
        };
        ensure!(
            fit < 1 << 26,
            "the budget is too large for this workload: 16g at most"
        );
        let fit = fit as u32;
        Ok(Self {
            of,
            used: (fit / 10).next_multiple_of(USED_EACH),
            walked: (fit * 11).next_multiple_of(WALKED_EACH),
        })
    }

    pub(super) fn objects(&self) -> usize {
        self.used as usize + self.walked as usize
    }

    /// Bytes of an image that they fit in.
    pub(super) fn image_bytes(&self) -> u64 {
        let each = match self.of {
            Of::Inodes => 1 << 10,
            Of::Content => 6 << 10,
        };
        (1 << 30) + self.objects() as u64 * each
    }

    /// The first so many walked objects, directory by directory in this order.
    pub(super) fn walk(&self, objects: u32, order: Order) -> impl Iterator<Item = u32> + use<> {
        let mut dirs: Vec<u32> = (0..objects / WALKED_EACH).collect();
        if order == Order::Mixed {
            dirs.sort_by_key(|&dir| mixed(u64::from(dir)));
        }
        let first = self.used;
        dirs.into_iter()
            .flat_map(move |dir| (0..WALKED_EACH).map(move |file| first + dir * WALKED_EACH + file))
    }
}

/// A number below this one for each number below it, neighbours far from each other: a reader that
/// goes through them has nothing brought ahead.
pub(super) fn scattered(number: u64, end: u64) -> u64 {
    // Primes: one of them at least divides no number of files that there can be.
    let stride = [100_003, 99_991]
        .into_iter()
        .find(|prime| !end.is_multiple_of(*prime));
    (number % end) * stride.unwrap_or(1) % end
}

/// One thread's way to the files.
pub(super) struct Visitor<'v> {
    fs: &'v FileSystem,
    root: Node,
    who: Caller,
    tree: Tree,
    path: Vec<u8>,
    buffer: Vec<u8>,
}

/// Where digits are in a path, and how it looks: names of 24 bytes.
const PATH: &[u8] = b"/u0000000/file-0000000000000000000";
const KIND: usize = 1;
const DIR_END: usize = 9;
const DIR_DIGITS: usize = 7;
const FILE_DIGITS: usize = 3;

fn put(digits: &mut [u8], mut number: u32) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

impl<'v> Visitor<'v> {
    pub(super) fn new(fs: &'v FileSystem, tree: Tree) -> Self {
        Self {
            fs,
            root: fs.root(),
            who: Caller::root(),
            tree,
            path: PATH.to_vec(),
            buffer: vec![0; FILE_BYTES],
        }
    }

    /// Puts the path of an object.
    fn point_to(&mut self, object: u32) {
        let (kind, number, each) = match object.checked_sub(self.tree.used) {
            None => (b'u', object, USED_EACH),
            Some(number) => (b'w', number, WALKED_EACH),
        };
        self.path[KIND] = kind;
        put(&mut self.path[DIR_END - DIR_DIGITS..DIR_END], number / each);
        let end = self.path.len();
        put(&mut self.path[end - FILE_DIGITS..], number % each);
    }

    /// Looks at an object, as a program does that needs it.
    ///
    /// # Errors
    /// If it is not there, or not what it was.
    pub(super) fn look(&mut self, object: u32) -> Result<()> {
        match self.tree.of {
            Of::Inodes => self.stat(object),
            Of::Content => self.read(object),
        }
    }

    /// Asks for the attributes of an object.
    ///
    /// # Errors
    /// If it is not there.
    pub(super) fn stat(&mut self, object: u32) -> Result<()> {
        self.point_to(object);
        let attr = self.fs.stat_at(&self.who, &self.root, &self.path, true);
        attr.map(drop).with_context(|| self.describe("stat"))
    }

    /// Reads all of an object.
    ///
    /// # Errors
    /// If it is not there, or not what it was.
    pub(super) fn read(&mut self, object: u32) -> Result<()> {
        self.point_to(object);
        let flags = OpenFlags::empty();
        let file = self.fs.open_at(&self.who, &self.root, &self.path, flags, 0);
        let file = file.with_context(|| self.describe("open"))?;
        let length = self.fs.read(&file, 0, &mut self.buffer);
        let length = length.with_context(|| self.describe("read"))?;
        ensure!(
            length == FILE_BYTES,
            "{}: {length} bytes",
            self.describe("read")
        );
        Ok(())
    }

    fn describe(&self, what: &str) -> String {
        format!("{what} {}", String::from_utf8_lossy(&self.path))
    }

    /// Makes all files.
    ///
    /// # Errors
    /// Those of the file system; a signal to end.
    pub(super) fn make_all(&mut self) -> Result<u64> {
        let objects = u32::try_from(self.tree.objects())?;
        for object in 0..objects {
            let number = object.checked_sub(self.tree.used);
            let each = number.map_or(USED_EACH, |_| WALKED_EACH);
            self.point_to(object);
            if number.unwrap_or(object) % each == 0 {
                ensure!(!crate::sys::end_asked(), "interrupted");
                let dir = &self.path[..DIR_END];
                let made = self.fs.mkdir_at(&self.who, &self.root, dir, 0o755);
                made.map(drop).with_context(|| self.describe("mkdir"))?;
            }
            let flags = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::WRITE_ONLY;
            let file = self
                .fs
                .open_at(&self.who, &self.root, &self.path, flags, 0o644);
            let file = file.with_context(|| self.describe("create"))?;
            if self.tree.of == Of::Content {
                let written = self.fs.write(&self.who, &file, 0, &[1; FILE_BYTES]);
                written.with_context(|| self.describe("write"))?;
            }
        }
        Ok(u64::from(objects))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_core::{MemoryLimits, Options};

    #[test]
    fn every_object_has_a_file_and_walks_meet_each_once() {
        let fs = FileSystem::memory(MemoryLimits::default(), Options::default());
        let tree = Tree {
            of: Of::Content,
            used: 200,
            walked: 1500,
        };
        let mut visitor = Visitor::new(&fs, tree);
        assert_eq!(visitor.make_all().expect("made"), 1700);
        assert_eq!(fs.stats().pages, 1700);
        for object in 0..1700 {
            visitor.look(object).expect("read");
            visitor.stat(object).expect("there");
        }
        let error = visitor.stat(1700).expect_err("no such file").to_string();
        assert_eq!(error, "stat /w0000003/file-0000000000000000000");
        let number: Vec<u32> = tree.walk(1500, Order::Number).collect();
        assert_eq!(number, (200..1700).collect::<Vec<_>>());
        let mut mixed: Vec<u32> = tree.walk(1500, Order::Mixed).collect();
        assert_ne!(mixed, number);
        assert!(mixed.chunks(500).all(|dir| dir[499] - dir[0] == 499));
        mixed.sort_unstable();
        assert_eq!(mixed, number);
        assert_eq!(tree.walk(1000, Order::Mixed).count(), 1000);
    }

    #[test]
    fn scattered_numbers_are_all_there_and_no_neighbours() {
        for end in [100, 7800, 100_003, 100_003 * 500] {
            let mut met = vec![false; end as usize];
            (0..end).for_each(|number| met[scattered(number, end) as usize] = true);
            assert!(met.iter().all(|&met| met), "{end}");
            let far = scattered(1, end).abs_diff(scattered(2, end));
            assert!(far > 1 && scattered(end, end) == 0, "{end}");
        }
    }

    #[test]
    fn a_tree_is_large_enough_for_its_budget() {
        let tree = Tree::for_budget(Of::Inodes, 64 << 20).expect("a tree");
        let fit = (64 << 20) / 400;
        assert!(u64::from(tree.used) >= fit / 10 && u64::from(tree.walked) >= 10 * fit);
        assert_eq!((tree.used % USED_EACH, tree.walked % WALKED_EACH), (0, 0));
        let large = Tree::for_budget(Of::Inodes, 1 << 40).expect_err("too large");
        assert!(large.to_string().contains("16g"));
    }
}
