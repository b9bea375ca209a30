//! How old an answer may be while another machine changes files: no reader goes back in time, none
//! sees what was replaced a lease ago, and after a beat all see what was there before it.

use crate::{Client, Cluster};
use holdfast_cluster::meta::Settings;
use holdfast_core::types::{Caller, OpenFlags, RenameFlags};
use holdfast_testkit::effort;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

const LEASE: Duration = Duration::from_secs(1);
/// Microseconds that an answer may take.
const DELAY: u64 = 500;

/// The numbers that a file held, with the moments when they were there for all.
struct History {
    name: &'static [u8],
    numbers: Mutex<Vec<(Instant, u64)>>,
}

impl History {
    fn new(name: &'static [u8], client: &Client) -> Self {
        client.put(name, 1);
        let numbers = Mutex::new(vec![(Instant::now(), 1)]);
        Self { name, numbers }
    }

    fn note(&self, number: u64) {
        self.numbers.lock().unwrap().push((Instant::now(), number));
    }

    /// The number that was there at a moment.
    fn at(&self, moment: Instant) -> u64 {
        let numbers = self.numbers.lock().unwrap();
        let before = numbers.partition_point(|(at, _)| *at <= moment);
        before.checked_sub(1).map_or(0, |last| numbers[last].1)
    }
}

impl Client {
    /// Writes a number over a file's content.
    fn put(&self, name: &[u8], number: u64) {
        let (who, root) = (Caller::root(), self.fs.root());
        let flags = OpenFlags::CREATE | OpenFlags::WRITE_ONLY;
        let file = self.fs.open_at(&who, &root, name, flags, 0o644).unwrap();
        let bytes = number.to_le_bytes();
        self.fs.write(&who, &file, 0, &bytes).unwrap();
        self.fs.flush(&file).unwrap();
    }

    /// Replaces a file by another one.
    fn replace(&self, name: &[u8], number: u64) {
        let (who, root) = (Caller::root(), self.fs.root());
        self.put(b"dir/new", number);
        let flags = RenameFlags::empty();
        let renamed = self
            .fs
            .rename_at(&who, &root, b"dir/new", &root, name, flags);
        renamed.unwrap();
    }

    fn number(&self, name: &[u8]) -> u64 {
        let (who, root) = (Caller::root(), self.fs.root());
        let flags = OpenFlags::empty();
        let file = self.fs.open_at(&who, &root, name, flags, 0).unwrap();
        let mut bytes = [0; 8];
        assert_eq!(self.fs.read(&file, 0, &mut bytes), Ok(8));
        u64::from_le_bytes(bytes)
    }
}

/// Reads a file until the end. With `beats`, a beat comes before each reading.
fn reads(client: &Client, history: &History, beats: bool, stops: &AtomicBool) -> u64 {
    let (mut last, mut readings) = (0, 0);
    while !stops.load(Ordering::SeqCst) {
        let begun = Instant::now();
        let least = match beats {
            true => {
                client.store.beat().unwrap();
                history.at(begun)
            }
            false => history.at(begun - LEASE),
        };
        let number = client.number(history.name);
        let name = history.name.escape_ascii();
        assert!(number >= least, "{name}: {number} for {least}");
        assert!(number >= last, "{name}: {number} after {last}");
        last = number;
        readings += 1;
    }
    readings
}

#[test]
fn no_answer_is_older_than_promised() {
    let cluster = Cluster::with(Settings {
        lease: LEASE,
        ..Settings::default()
    });
    let (one, other) = (cluster.client(), cluster.client());
    one.fs
        .mkdir(&Caller::root(), &one.fs.root(), b"dir", 0o755)
        .unwrap();
    let written = History::new(b"dir/written", &one);
    let moved = History::new(b"dir/moved", &one);
    // The other machine watches the directory from its second use on.
    for _ in 0..3 {
        assert_eq!(
            (other.number(written.name), other.number(moved.name)),
            (1, 1)
        );
        sleep(LEASE + LEASE / 5);
    }
    one.meta.set_delay(DELAY);
    other.meta.set_delay(DELAY);
    let stops = AtomicBool::new(false);
    let readings = scope(|scope| {
        let readers: Vec<_> = [
            (&written, true),
            (&written, false),
            (&moved, true),
            (&moved, false),
        ]
        .into_iter()
        .map(|(history, beats)| {
            let (other, stops) = (&other, &stops);
            scope.spawn(move || reads(other, history, beats, stops))
        })
        .collect();
        let writer = scope.spawn(|| writes(&written, &|number| one.put(written.name, number)));
        writes(&moved, &|number| one.replace(moved.name, number));
        writer.join().unwrap();
        stops.store(true, Ordering::SeqCst);
        readers
            .into_iter()
            .map(|it| it.join().unwrap())
            .collect::<Vec<_>>()
    });
    println!("{readings:?} readings");
    assert!(
        readings.iter().all(|readings| *readings > 10),
        "{readings:?}"
    );
    other.store.beat().unwrap();
    for history in [&written, &moved] {
        assert_eq!(other.number(history.name), history.at(Instant::now()));
    }
}

/// Writes numbers one after the other, and notes each when all may see it.
fn writes(history: &History, write: &dyn Fn(u64)) {
    let begun = Instant::now();
    let mut number = 1;
    while begun.elapsed() < effort().of(LEASE * 3, LEASE * 60) {
        number += 1;
        write(number);
        history.note(number);
        sleep(Duration::from_micros(number % 7 * 300));
    }
}
