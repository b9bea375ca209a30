//! A session of the engine PostgreSQL beside one of the engine in memory: each call goes to both,
//! and the answers have to be equal but for times, epochs and generations.

use holdfast_cluster::meta::{
    Answer, Beat, BeatAnswer, ClientInfo, Content, Directory, Found, Meta, Node, Request, Settings,
    Staged, Usage,
};
use holdfast_core::store::{EntryRecord, Rest};
use holdfast_types::{Ino, Result, Time};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Both sessions. Answers are those of PostgreSQL.
pub(super) struct Beside {
    pub(super) postgres: Arc<dyn Meta>,
    pub(super) memory: Arc<dyn Meta>,
}

/// The inode without times, and without its generation.
fn plain(node: &Node) -> Node {
    let mut node = node.clone();
    let record = &mut node.record;
    (record.atime, record.mtime) = (Time(0), Time(0));
    (record.ctime, record.btime) = (Time(0), Time(0));
    // An answer to a change brings no body along.
    (node.generation, node.content) = (0, None);
    node
}

/// Inodes by number.
fn by_number<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> BTreeMap<Ino, Node> {
    let nodes = nodes.into_iter();
    nodes.map(|node| (node.record.ino, plain(node))).collect()
}

impl Beside {
    /// Calls both.
    fn both<T>(&self, call: impl Fn(&dyn Meta) -> T) -> (T, T) {
        (call(&*self.postgres), call(&*self.memory))
    }

    fn same<T: PartialEq + std::fmt::Debug>(&self, call: impl Fn(&dyn Meta) -> T) -> T {
        let (postgres, memory) = self.both(call);
        assert_eq!(postgres, memory);
        postgres
    }
}

/// The request for the other engine: its generations are other numbers.
fn with_generation(request: &Request, postgres: &dyn Meta, memory: &dyn Meta) -> Request {
    let mut request = request.clone();
    if let Request::Flush(flush) = &mut request
        && flush.generation != 0
        && let (Ok((ours, _)), Ok((theirs, _))) =
            (postgres.content(flush.ino), memory.content(flush.ino))
    {
        flush.generation = (theirs + flush.generation).wrapping_sub(ours);
    }
    request
}

impl Meta for Beside {
    fn settings(&self) -> Settings {
        self.postgres.settings()
    }

    fn perform(&self, request: Request) -> Result<Answer> {
        let other = with_generation(&request, &*self.postgres, &*self.memory);
        let shown = format!("{request:?}");
        let answers = (self.postgres.perform(request), self.memory.perform(other));
        match &answers {
            (
                Ok(Answer::Done {
                    entry,
                    other,
                    touched,
                }),
                Ok(Answer::Done {
                    entry: entry_beside,
                    other: other_beside,
                    touched: touched_beside,
                }),
            ) => {
                assert_eq!((entry, other), (entry_beside, other_beside), "{shown}");
                let nodes = by_number(touched.iter().map(|(_, node)| node));
                let beside = by_number(touched_beside.iter().map(|(_, node)| node));
                assert_eq!(nodes, beside, "{shown}");
                assert_eq!(nodes.len(), touched.len(), "each once: {shown}");
            }
            // Where several errors apply, either engine may choose.
            (Err(_), Err(_)) | (Ok(Answer::Refused), Ok(Answer::Refused)) => {}
            _ => panic!("{answers:?}: {shown}"),
        }
        answers.0
    }

    fn look_up(&self, dir: Ino, names: &[&[u8]], topics: &[Ino]) -> Result<Vec<Option<Found>>> {
        let (postgres, memory) = self.both(|meta| meta.look_up(dir, names, topics));
        let plain = |found: &Result<Vec<Option<Found>>>| {
            let found = found.as_ref().map(|found| {
                let found = found.iter().map(|found| {
                    let found = found.as_ref()?;
                    Some((found.entry.clone(), found.node.as_ref().map(plain)))
                });
                found.collect::<Vec<_>>()
            });
            found.map_err(|error| *error)
        };
        assert_eq!(plain(&postgres), plain(&memory));
        postgres
    }

    fn load(&self, inos: &[Ino], topics: &[Ino]) -> Result<Vec<Node>> {
        let (postgres, memory) = self.both(|meta| meta.load(inos, topics));
        let postgres = postgres?;
        assert_eq!(by_number(&postgres), by_number(&memory?));
        Ok(postgres)
    }

    fn load_rests(&self, inos: &[Ino]) -> Result<Vec<Rest>> {
        self.same(|meta| meta.load_rests(inos))
    }

    fn read_names(
        &self,
        dir: Ino,
        after: u64,
        max: usize,
        topics: &[Ino],
    ) -> Result<Vec<EntryRecord>> {
        let directories = |meta: &dyn Meta| {
            let found = meta.read_directories(&[dir, Ino(0)], max.min(100), true, topics);
            let found = found.unwrap().into_iter().map(|found| {
                let Directory {
                    node,
                    names,
                    inodes,
                } = found?;
                Some((plain(&node), names, by_number(&inodes), inodes.len()))
            });
            found.collect::<Vec<_>>()
        };
        self.same(directories);
        // A page that ends before the names do.
        let _ = self.same(|meta| meta.read_names(dir, after, 2, topics));
        self.same(|meta| meta.read_names(dir, after, max, topics))
    }

    fn read_directories(
        &self,
        dirs: &[Ino],
        most: usize,
        inodes: bool,
        topics: &[Ino],
    ) -> Result<Vec<Option<Directory>>> {
        self.postgres.read_directories(dirs, most, inodes, topics)
    }

    fn content(&self, ino: Ino) -> Result<(u64, Content)> {
        let (postgres, memory) = self.both(|meta| meta.content(ino));
        let content = |answer: &Result<(u64, Content)>| answer.clone().map(|(_, content)| content);
        assert_eq!(content(&postgres), content(&memory));
        postgres
    }

    fn walk(&self, after: Ino, max: usize) -> Result<Vec<Node>> {
        let (postgres, memory) = self.both(|meta| meta.walk(after, max));
        let postgres = postgres?;
        assert_eq!(by_number(&postgres), by_number(&memory?));
        self.same(Meta::usage).map(|_| postgres)
    }

    fn usage(&self) -> Result<Usage> {
        self.same(Meta::usage)
    }

    fn deal(&self, count: u64) -> Result<Range<u64>> {
        self.same(|meta| meta.deal(count))
    }

    fn beat(&self, beat: &Beat) -> Result<BeatAnswer> {
        // Messages have other numbers there: the receiver proves those of PostgreSQL.
        let mut other = beat.clone();
        (other.taken, other.looked_at) = (u64::MAX, 0);
        let asked = self.memory.beat(&other)?.gone_upto;
        if beat.looked_at > 0 {
            other.looked_at = asked;
            self.memory.beat(&other)?;
        }
        self.postgres.beat(beat)
    }

    fn end(&self) -> Result<()> {
        self.same(Meta::end)
    }

    fn clients(&self) -> Result<Vec<ClientInfo>> {
        self.postgres.clients()
    }

    fn fence(&self, session: u64) -> Result<()> {
        self.postgres.fence(session)
    }

    fn sweep(&self, max: usize) -> Result<u64> {
        self.same(|meta| meta.sweep(max))
    }

    fn staged(&self, max: usize) -> Result<Vec<Staged>> {
        self.postgres.staged(max)
    }

    fn deletable(&self, listed: &[u64], max: usize) -> Result<Vec<u64>> {
        self.postgres.deletable(listed, max)
    }

    fn deleted(&self, objects: &[u64]) -> Result<()> {
        self.postgres.deleted(objects)
    }

    fn check(&self, repair: bool) -> Result<Vec<String>> {
        self.same(|meta| meta.check(repair))
    }
}
