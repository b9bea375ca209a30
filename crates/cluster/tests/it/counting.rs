//! A session with the database that counts its calls: each is a round trip.

use holdfast_cluster::meta::{
    Answer, Beat, BeatAnswer, ClientInfo, Content, Directory, Found, Meta, Node, Request, Settings,
    Staged, Usage,
};
use holdfast_core::store::{EntryRecord, Rest};
use holdfast_testkit::rng::Rng;
use holdfast_types::{Ino, Result};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts of calls, by the names of the requests and of the questions.
pub(crate) type Trips = BTreeMap<&'static str, u64>;

pub(crate) struct Counting {
    below: Arc<dyn Meta>,
    trips: Mutex<Trips>,
    /// Answers take up to so many microseconds, so that they overtake each other.
    delay: AtomicU64,
    random: Mutex<Rng>,
}

impl Counting {
    pub(crate) fn new(below: Arc<dyn Meta>) -> Arc<Self> {
        Arc::new(Self {
            below,
            trips: Mutex::default(),
            delay: AtomicU64::new(0),
            random: Mutex::new(Rng::new(1)),
        })
    }

    /// From now on, answers take up to so many microseconds.
    pub(crate) fn set_delay(&self, micros: u64) {
        self.delay.store(micros, Ordering::Relaxed);
    }

    /// An answer is under way.
    fn answered<T>(&self, answer: T) -> T {
        let delay = self.delay.load(Ordering::Relaxed);
        if delay > 0 {
            let micros = self.random.lock().below(delay);
            std::thread::sleep(Duration::from_micros(micros));
        }
        answer
    }

    /// The calls that callers waited for since the last time.
    pub(crate) fn take(&self) -> Trips {
        std::mem::take(&mut self.trips.lock())
    }

    fn count(&self, call: &'static str) -> &dyn Meta {
        *self.trips.lock().entry(call).or_default() += 1;
        &*self.below
    }
}

fn name(request: &Request) -> &'static str {
    match request {
        Request::Make { .. } => "make",
        Request::MakeUnnamed { .. } => "make unnamed",
        Request::Link { .. } => "link",
        Request::Remove { .. } => "remove",
        Request::Rename { .. } => "rename",
        Request::SetAttributes { .. } => "set attributes",
        Request::SetXattr { .. } => "set xattr",
        Request::RemoveXattr { .. } => "remove xattr",
        Request::Flush(_) => "flush",
    }
}

impl Meta for Counting {
    fn settings(&self) -> Settings {
        self.below.settings()
    }

    fn perform(&self, request: Request) -> Result<Answer> {
        let answer = self.count(name(&request)).perform(request);
        self.answered(answer)
    }

    fn look_up(&self, dir: Ino, names: &[&[u8]], topics: &[Ino]) -> Result<Vec<Option<Found>>> {
        let answer = self.count("look up").look_up(dir, names, topics);
        self.answered(answer)
    }

    fn load(&self, inos: &[Ino], topics: &[Ino]) -> Result<Vec<Node>> {
        let answer = self.count("load").load(inos, topics);
        self.answered(answer)
    }

    fn load_rests(&self, inos: &[Ino]) -> Result<Vec<Rest>> {
        self.count("load rests").load_rests(inos)
    }

    fn read_names(
        &self,
        dir: Ino,
        after: u64,
        max: usize,
        topics: &[Ino],
    ) -> Result<Vec<EntryRecord>> {
        self.count("read names").read_names(dir, after, max, topics)
    }

    fn read_directories(
        &self,
        dirs: &[Ino],
        most: usize,
        inodes: bool,
        topics: &[Ino],
    ) -> Result<Vec<Option<Directory>>> {
        let below = self.count("read directories");
        let answer = below.read_directories(dirs, most, inodes, topics);
        self.answered(answer)
    }

    fn content(&self, ino: Ino) -> Result<(u64, Content)> {
        self.count("content").content(ino)
    }

    fn walk(&self, after: Ino, max: usize) -> Result<Vec<Node>> {
        self.count("walk").walk(after, max)
    }

    fn usage(&self) -> Result<Usage> {
        self.count("usage").usage()
    }

    // Most ranges are fetched by the beat thread, which nothing waits for.
    fn deal(&self, count: u64) -> Result<Range<u64>> {
        self.below.deal(count)
    }

    fn beat(&self, beat: &Beat) -> Result<BeatAnswer> {
        self.below.beat(beat)
    }

    fn end(&self) -> Result<()> {
        self.below.end()
    }

    fn clients(&self) -> Result<Vec<ClientInfo>> {
        self.below.clients()
    }

    fn fence(&self, session: u64) -> Result<()> {
        self.below.fence(session)
    }

    fn sweep(&self, max: usize) -> Result<u64> {
        self.below.sweep(max)
    }

    fn staged(&self, max: usize) -> Result<Vec<Staged>> {
        self.below.staged(max)
    }

    fn deletable(&self, listed: &[u64], max: usize) -> Result<Vec<u64>> {
        self.below.deletable(listed, max)
    }

    fn deleted(&self, objects: &[u64]) -> Result<()> {
        self.below.deleted(objects)
    }

    fn check(&self, repair: bool) -> Result<Vec<String>> {
        self.below.check(repair)
    }
}
