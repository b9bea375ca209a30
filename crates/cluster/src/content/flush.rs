//! Flushes: changes that wait go to the database, their pages into objects first.
//!
//! *Order.* An object is stored before a request maps it. Changes that come during a flush wait for
//! the next one. If a flush fails, its changes wait again, below those that came later.

use super::file::{Base, File};
use super::files::Files;
use super::pack::{Pack, Part, distribute};
use super::page::{PAGE, len_of};
use super::plan::{Flight, Plan};
use crate::meta::{Answer, Edit, Extent, Node, Request};
use holdfast_core::interrupt::{self, is_interrupted};
use holdfast_core::store::{InodeRecord, Version};
use holdfast_types::{Errno, Ino, Result};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How often a flush is made anew because others change the same file.
const TRIES: usize = 64;
/// The first and the longest pause before the object store is tried again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));
/// Requests that are on their way at once, so that they travel in few transactions.
const REQUESTS: usize = 16;
/// Objects that are stored at once.
const OBJECTS: u64 = 8;
/// The least bytes of a pack if there are several.
const PACK: u64 = 4 << 20;
/// The longest time between two attempts of the writeback thread.
const LONGEST: Duration = Duration::from_secs(5);

/// What the database has after a flush.
struct Arrived {
    before: Option<Version>,
    node: Node,
    edit: Edit,
}

/// A flight that was sent, with its index. `None`: the content below is another now.
type Sent = ((usize, Flight), Result<Option<Arrived>>);

/// A pack with its number, and whether it is stored.
struct Stored {
    pack: Pack,
    object: u64,
    result: Result<()>,
}

impl Files {
    /// Brings everything that waits for this file into the database.
    ///
    /// # Errors
    /// Those of the object store and of the database; what could not be stored waits still.
    /// `ESTALE`: the file or the session has gone, and with it what waited.
    pub(crate) fn flush(&self, ino: Ino) -> Result<()> {
        match self.table.get(ino) {
            Some(file) => self.flush_file(&file),
            None => Ok(()),
        }
    }

    fn flush_file(&self, file: &Arc<File>) -> Result<()> {
        let flushed = match self.depart(file, true)? {
            Some(flight) => self.send_all(vec![flight]).pop().unwrap_or(Ok(())),
            None => Ok(()),
        };
        self.keep_limits();
        flushed
    }

    /// Brings everything that waits into the database.
    ///
    /// # Errors
    /// The first of those of [`flush`](Self::flush).
    pub(crate) fn sync_all(&self) -> Result<()> {
        let files = self.dirty.files();
        let mut result = Ok(());
        for some in files.chunks(super::dirty::FILES) {
            // A file that another thread flushes is waited for with no flight of one's own.
            let flights = some
                .iter()
                .filter_map(|file| self.depart(file, false).ok()?);
            let flights: Vec<Flight> = flights.collect();
            for flushed in self.send_all(flights) {
                result = result.and(flushed);
            }
        }
        for file in files {
            result = result.and(self.flush_file(&file));
        }
        result
    }

    /// Takes the changes of a file that wait, if there are any and no other thread flushes it;
    /// `waits`: waits for that thread.
    ///
    /// # Errors
    /// `EINTR`: the caller was ended while it waited.
    pub(super) fn depart(&self, file: &Arc<File>, waits: bool) -> Result<Option<Flight>> {
        let mut state = file.state.lock();
        while state.flushing {
            if !waits {
                return Ok(None);
            }
            let waited = file.settled.wait_for(&mut state, interrupt::POLL);
            if waited.timed_out() && is_interrupted() {
                return Err(Errno::EINTR);
            }
        }
        let Some(record) = state.top.clone() else {
            return Ok(None);
        };
        let Some(waiting) = state.waiting.take().map(Arc::new) else {
            return Ok(None);
        };
        state.flight = Some(Arc::clone(&waiting));
        state.flushing = true;
        Ok(Some(Flight {
            file: Arc::clone(file),
            waiting,
            record,
            base: state.base.clone(),
        }))
    }

    /// Ends flights; returns the result of each, in this order.
    pub(super) fn send_all(&self, flights: Vec<Flight>) -> Vec<Result<()>> {
        let mut results: Vec<Result<()>> = flights.iter().map(|_| Err(Errno::EIO)).collect();
        let mut left: Vec<(usize, Flight)> = flights.into_iter().enumerate().collect();
        for round in 0..TRIES {
            let mut refused = Vec::new();
            for ((index, mut flight), sent) in self.send(left, round) {
                let sent = match sent {
                    Ok(None) => match self.renew(&mut flight) {
                        Ok(()) => {
                            refused.push((index, flight));
                            continue;
                        }
                        Err(error) => Err(error),
                    },
                    Ok(Some(arrived)) => Ok(arrived),
                    Err(error) => Err(error),
                };
                results[index] = self.arrive(&flight, sent);
            }
            left = refused;
            if left.is_empty() {
                break;
            }
        }
        for (index, flight) in left {
            results[index] = self.arrive(&flight, Err(Errno::EIO));
        }
        results
    }

    /// Sends flights once.
    fn send(&self, mut left: Vec<(usize, Flight)>, round: usize) -> Vec<Sent> {
        let plans = left.iter_mut().map(|(_, flight)| match self.plan(flight) {
            // An object below has gone, so the content has changed.
            Err(Errno::ENOENT) if round == 0 => Ok(None),
            Err(Errno::ENOENT) => Err(Errno::EIO),
            plan => plan.map(Some),
        });
        let mut plans: Vec<Result<Option<Plan>>> = plans.collect();
        let stored = self.store_packs(&left, &plans);
        for pack in &stored {
            place(pack, &mut plans);
        }
        let tasks: Vec<_> = left.iter().zip(plans).collect();
        let unmapped = stored.iter().filter(|it| it.result.is_ok());
        let unmapped = Mutex::new(unmapped.map(|it| it.object).collect::<BTreeSet<u64>>());
        let sent = at_once("holdfast-flush", REQUESTS, tasks, |((_, flight), plan)| {
            let Some((edit, depends)) = plan?.map(Plan::into_edit) else {
                return Ok(None);
            };
            let request = Request::Flush(flight.request(edit.clone(), depends));
            let answer = self.meta.perform(request);
            if !matches!(answer, Ok(Answer::Refused) | Err(Errno::ESTALE)) {
                let mut unmapped = unmapped.lock();
                for (object, _) in objects(&edit) {
                    unmapped.remove(object);
                }
            }
            arrived(flight, edit, answer?)
        });
        let unmapped: Vec<u64> = unmapped.into_inner().into_iter().collect();
        if !unmapped.is_empty() {
            // What stays is swept when the session has ended.
            let _ = self.objects.delete(&unmapped);
        }
        left.into_iter().zip(sent).collect()
    }

    /// Makes packs of all pages that go into objects, and stores them.
    fn store_packs(&self, left: &[(usize, Flight)], plans: &[Result<Option<Plan>>]) -> Vec<Stored> {
        let parts = left.iter().zip(plans).enumerate();
        let parts = parts.flat_map(|(file, ((_, flight), plan))| {
            let runs = plan
                .as_ref()
                .ok()
                .and_then(Option::as_ref)
                .map_or(&[][..], |it| &it.runs);
            runs.iter().map(move |&(first, pages)| Part {
                file,
                ino: flight.record.ino,
                first,
                pages,
            })
        });
        let parts: Vec<Part> = parts.collect();
        // As many as can be stored at once, unless they are small.
        let bytes = parts.iter().map(|part| part.pages * PAGE).sum::<u64>();
        let most = (bytes / OBJECTS).max(PACK).min(self.limits.pack());
        let packs = distribute(parts.into_iter(), most);
        let page = |part: &Part, page: u64, out: &mut Vec<u8>| {
            if let Ok(Some(plan)) = &plans[part.file] {
                plan.page(&left[part.file].1.waiting.layer, page, out);
            }
        };
        let threads = usize::try_from(self.limits.dirty() / most).unwrap_or(1);
        let threads = threads.clamp(1, OBJECTS as usize);
        // While the store fails, one pack is tried for long, and the others once.
        let failed = AtomicBool::new(false);
        at_once("holdfast-put", threads, packs, |pack| {
            let number = self.numbers.object();
            let result =
                number.and_then(|object| self.put_pack(object, &failed, || pack.bytes(page)));
            Stored {
                object: number.unwrap_or(0),
                pack,
                result,
            }
        })
    }

    /// Stores an object; tries for some time.
    fn put_pack(
        &self,
        object: u64,
        failed: &AtomicBool,
        content: impl Fn() -> Vec<u8>,
    ) -> Result<()> {
        let begun = Instant::now();
        let mut pause = PAUSES.0.min(self.options.retry / 100);
        loop {
            let bytes = content();
            let len = bytes.len() as u64;
            self.limits.packing.fetch_add(len, Relaxed);
            let result = self.objects.put(object, bytes);
            self.limits.packing.fetch_sub(len, Relaxed);
            if result.is_ok() || result == Err(Errno::EINTR) {
                return result;
            }
            if begun.elapsed() > self.options.retry || failed.load(Relaxed) {
                failed.store(true, Relaxed);
                return result;
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(PAUSES.1);
        }
    }

    /// Sends an edit of a flight once. `None`: the content is another now, and nothing happened.
    pub(super) fn send_now(&self, flight: &Flight, edit: Edit) -> Result<Option<InodeRecord>> {
        let answer = self
            .meta
            .perform(Request::Flush(flight.request(edit.clone(), true)));
        let arrived = answer.and_then(|answer| arrived(flight, edit, answer));
        if let Ok(Some(arrived)) = arrived {
            let record = arrived.node.record.clone();
            return self.arrive(flight, Ok(arrived)).map(|()| Some(record));
        }
        let mut state = flight.file.state.lock();
        (state.flight, state.flushing) = (None, false);
        state.base.content = None;
        state.revision += 1;
        state.rebase();
        self.changed(&flight.file, &mut state);
        drop(state);
        flight.file.settled.notify_all();
        arrived.map(|_| None)
    }

    /// A flight ends.
    fn arrive(&self, flight: &Flight, sent: Result<Arrived>) -> Result<()> {
        let file = &flight.file;
        let mut state = file.state.lock();
        state.flight = None;
        state.flushing = false;
        let (result, notice) = match sent {
            Ok(arrived) => (Ok(()), state.land(flight, arrived).then_some(None)),
            Err(error) => (Err(error), state.fail(flight, error).then_some(Some(error))),
        };
        self.changed(file, &mut state);
        drop(state);
        file.settled.notify_all();
        self.dirty.arrived(result.is_ok());
        if let Some(lost) = notice {
            self.notices.add(file.ino, lost);
        }
        result
    }
}

impl super::file::State {
    /// The database has what was on its way. Returns whether it differs from what callers saw.
    fn land(&mut self, flight: &Flight, arrived: Arrived) -> bool {
        let Arrived { before, node, edit } = arrived;
        (self.retry_at, self.failures) = (None, 0);
        let expected = &flight.record;
        let record = &node.record;
        let same = Version::of(record) == Version::of(expected)
            && (record.perm, record.uid, record.gid) == (expected.perm, expected.uid, expected.gid);
        let followed = before == flight.base.record.as_ref().map(Version::of) && !flight.base.moved;
        let known = self.base.record.as_ref();
        if known.is_some_and(|known| known.ctime > record.ctime) {
            // A later state is known already.
            self.rebase();
            return true;
        }
        let exact = followed || matches!(edit, Edit::Replace { .. });
        let content = exact.then(|| flight.content_after(&edit)).flatten();
        let along = node.content.and_then(|it| super::map::checked(it).ok());
        self.base = Base {
            generation: node.generation,
            content: along.or(content).map(Arc::new),
            record: Some(node.record),
            moved: false,
            outdated: false,
        };
        self.revision += 1;
        self.rebase();
        !same || !followed
    }

    /// What was on its way waits as before, or is lost. Returns whether it is lost.
    fn fail(&mut self, flight: &Flight, error: Errno) -> bool {
        if error == Errno::ESTALE {
            // The file has gone, or the session has.
            self.waiting = None;
            self.base = Base::default();
            self.revision += 1;
            (self.top, self.pages) = (None, None);
            return true;
        }
        let mut waiting = super::waiting::Waiting::clone(&flight.waiting);
        if let Some(later) = self.waiting.take() {
            waiting.merge(later);
        }
        self.waiting = Some(waiting);
        if error != Errno::EINTR {
            let pause = Duration::from_secs(1 << self.failures.min(3)).min(LONGEST);
            self.failures += 1;
            self.retry_at = Some(Instant::now() + pause);
        }
        false
    }
}

/// What an answer says of a flight. `None`: it was refused.
fn arrived(flight: &Flight, edit: Edit, answer: Answer) -> Result<Option<Arrived>> {
    let Answer::Done { touched, .. } = answer else {
        return Ok(None);
    };
    let own = touched
        .into_iter()
        .find(|it| it.1.record.ino == flight.record.ino);
    let (before, node) = own.ok_or(Errno::EIO)?;
    Ok(Some(Arrived { before, node, edit }))
}

/// The pages of a pack are in an object, or could not be stored.
fn place(stored: &Stored, plans: &mut [Result<Option<Plan>>]) {
    let Stored {
        pack,
        object,
        result,
    } = stored;
    let mut object_offset = 0;
    for part in &pack.parts {
        let extent = Extent {
            offset: part.first * PAGE,
            len: len_of(part.first, part.pages),
            object: *object,
            object_offset,
        };
        object_offset += part.pages * PAGE;
        match (&mut plans[part.file], result) {
            (Ok(Some(plan)), Ok(())) => plan.place(extent, (*object, pack.len())),
            (plan, Err(error)) => *plan = Err(*error),
            _ => {}
        }
    }
}

/// New objects that an edit maps.
fn objects(edit: &Edit) -> &[(u64, u64)] {
    match edit {
        Edit::Map { objects, .. } | Edit::Replace { objects, .. } => objects,
        Edit::None => &[],
    }
}

/// Does tasks by several threads of this name; returns the results in the order of the tasks.
fn at_once<T: Send, R: Send>(
    name: &str,
    threads: usize,
    tasks: Vec<T>,
    act: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    if tasks.len() < 2 || threads < 2 {
        return tasks.into_iter().map(act).collect();
    }
    let next = AtomicUsize::new(0);
    let tasks: Vec<Mutex<Option<T>>> = tasks.into_iter().map(|it| Mutex::new(Some(it))).collect();
    let results: Vec<Mutex<Option<R>>> = tasks.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while let Some(index) = Some(next.fetch_add(1, Relaxed)).filter(|it| *it < tasks.len()) {
            let task = tasks[index].lock().take();
            *results[index].lock() = task.map(&act);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(tasks.len()) {
            let thread = std::thread::Builder::new().name(name.to_owned());
            let caller = interrupt::current();
            // The calling thread does what no other does.
            let _ = thread.spawn_scoped(scope, || interrupt::during(caller, work));
        }
        work();
    });
    results.into_iter().filter_map(Mutex::into_inner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_done_once_and_results_keep_their_order() {
        let tasks: Vec<u32> = (0..100).collect();
        let done = at_once("holdfast-test", 4, tasks.clone(), |task| task + 1);
        assert_eq!(done, (1..101).collect::<Vec<_>>());
        assert_eq!(at_once("holdfast-test", 1, tasks, |task| task).len(), 100);
    }
}
