//! `holdfast bench`: what a directory's file system does in a minute, beside another one.
//!
//! All other benchmarks are in the package `holdfast-bench`, which is not installed.

use crate::info::units::{bytes, number};
use crate::message::{Failure, Result};
use crate::output::print_json;
use crate::warm::catch_stops;
use serde_json::json;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Bytes of a small file.
const SMALL: usize = 1024;
/// Bytes of the large file, and of a read or write of it.
const LARGE: u64 = 64 << 20;
const CHUNK: usize = 1 << 20;
/// Small files in a directory.
const IN_A_DIRECTORY: u64 = 100;
/// Longest time of one measurement: six of them in two directories take less than a minute.
const LONGEST: Duration = Duration::from_millis(4500);

/// Measure small files, listing, reads and writes in a directory
///
/// One thread measures six things, one after the other, each for at most 4.5 seconds. It makes
/// files of 1 KiB, lists them with their attributes as `ls -lR`, and reads them. It writes a file
/// of 64 MiB and makes it durable by fsync(2), reads it, and removes the small files. Reads are
/// answered from caches, as they are for a program that has just written. Small files are not made
/// durable one by one. With --beside each measurement is done in the other directory right after,
/// and the ratio is that of DIR to the other: 2.00 is twice as fast. Single runs differ by some
/// percent.
///
/// All files are made in a new directory below DIR, which is removed at the end, also after SIGINT
/// and SIGTERM.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A directory in the file system to measure
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// A directory in another file system, measured at the same time
    #[arg(long, value_name = "DIR")]
    beside: Option<PathBuf>,

    /// Most small files
    #[arg(long, value_name = "NUMBER", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    files: u64,

    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// A directory that is filled, and removed at the end.
struct Scratch {
    top: PathBuf,
    files: u64,
    stop: Arc<AtomicUsize>,
}

/// What is measured: a key, the text, the unit and the work, which gives files or bytes.
type Measurement = (&'static str, &'static str, &'static str, Work);
type Work = fn(&mut Scratch) -> io::Result<u64>;

const MEASUREMENTS: [Measurement; 6] = [
    ("create", "make files of 1 KiB", FILES, Scratch::create),
    ("list", "list them with attributes", FILES, Scratch::list),
    ("read", "read them", FILES, Scratch::read),
    ("write_large", "write 64 MiB, durable", BYTES, Scratch::fill),
    ("read_large", "read 64 MiB", BYTES, Scratch::read_large),
    ("remove", "remove the small files", FILES, Scratch::remove),
];
const FILES: &str = "files";
const BYTES: &str = "bytes";

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let stop = catch_stops().map_err(|error| Failure::of(&error).about("signals"))?;
    let dirs = [Some(&arguments.dir), arguments.beside.as_ref()];
    let begin = |dir: &PathBuf| Scratch::below(dir, arguments.files, Arc::clone(&stop));
    let places = dirs.into_iter().flatten().map(begin);
    let mut places = places.collect::<Result<Vec<_>>>()?;
    let mut results = Vec::new();
    if !arguments.json && arguments.beside.is_some() {
        anstream::println!("{:>44}{:>16}{:>8}", "DIR", "BESIDE", "RATIO");
    }
    for (name, text, unit, work) in MEASUREMENTS {
        let rates = places.iter_mut().map(|place| place.rate(text, work));
        let rates = rates.collect::<Result<Vec<f64>>>()?;
        let ratio = rates.get(1).map(|beside| rates[0] / beside);
        if arguments.json {
            results.push(json!({
                "name": name,
                "unit": unit,
                "per_second": rates[0],
                "beside_per_second": rates.get(1),
                "ratio": ratio,
            }));
            continue;
        }
        let mut line = format!("{text:28}");
        for rate in rates {
            let shown = [number, bytes][usize::from(unit == BYTES)];
            line += &format!("{:>16}", shown(rate as u64) + "/s");
        }
        let ratio = ratio.map(|ratio| format!("{ratio:>8.2}"));
        writeln!(anstream::stdout(), "{line}{}", ratio.unwrap_or_default())?;
    }
    for place in &places {
        fs::remove_dir_all(&place.top).map_err(|error| Failure::of(&error).at(&place.top))?;
    }
    match arguments.json {
        true => print_json(&json!({ "results": results })),
        false => Ok(()),
    }
}

impl Scratch {
    fn below(dir: &Path, files: u64, stop: Arc<AtomicUsize>) -> Result<Self> {
        let top = dir.join(format!("holdfast-bench-{}", std::process::id()));
        fs::create_dir(&top).map_err(|error| {
            let failure = Failure::new(error).at(dir);
            failure.hint("name a directory that is there, and that this user may write to")
        })?;
        Ok(Self { top, files, stop })
    }

    /// Files or bytes a second.
    fn rate(&mut self, text: &str, work: Work) -> Result<f64> {
        let begun = Instant::now();
        let about = format!("{}: {text}", self.top.display());
        let done = work(self).map_err(|error| Failure::of(&error).about(about))?;
        Ok(done as f64 / begun.elapsed().as_secs_f64())
    }

    /// Does one thing for each of `times`, as long as there is time; gives how many were done.
    fn each(&self, times: u64, mut one: impl FnMut(u64) -> io::Result<()>) -> io::Result<u64> {
        let begun = Instant::now();
        for index in 0..times {
            if self.stop.load(Ordering::Relaxed) > 0 {
                return Err(io::Error::other("stopped by a signal"));
            }
            if begun.elapsed() > LONGEST {
                return Ok(index);
            }
            one(index)?;
        }
        Ok(times)
    }

    /// The directory of a small file, and its path.
    fn file(&self, index: u64) -> (PathBuf, PathBuf) {
        let dir = self.top.join((index / IN_A_DIRECTORY).to_string());
        let file = dir.join(index.to_string());
        (dir, file)
    }

    fn create(&mut self) -> io::Result<u64> {
        let made = self.each(self.files, |index| {
            let (dir, file) = self.file(index);
            if index % IN_A_DIRECTORY == 0 {
                fs::create_dir(dir)?;
            }
            fs::write(file, [index as u8; SMALL])
        });
        self.files = made?;
        Ok(self.files)
    }

    fn list(&mut self) -> io::Result<u64> {
        let mut listed = 0;
        self.each(self.files.div_ceil(IN_A_DIRECTORY), |directory| {
            for entry in fs::read_dir(self.file(directory * IN_A_DIRECTORY).0)? {
                listed += u64::from(entry?.metadata()?.is_file());
            }
            Ok(())
        })?;
        Ok(listed)
    }

    fn read(&mut self) -> io::Result<u64> {
        self.each(self.files, |index| {
            match fs::read(self.file(index).1)?.len() {
                SMALL => Ok(()),
                _ => Err(io::ErrorKind::UnexpectedEof.into()),
            }
        })
    }

    fn fill(&mut self) -> io::Result<u64> {
        let mut file = File::create(self.top.join("large"))?;
        let chunk = vec![1; CHUNK];
        let written = self.each(LARGE / CHUNK as u64, |_| file.write_all(&chunk))?;
        file.sync_all()?;
        Ok(written * CHUNK as u64)
    }

    fn read_large(&mut self) -> io::Result<u64> {
        let mut file = File::open(self.top.join("large"))?;
        let (size, mut chunk) = (file.metadata()?.len(), vec![0; CHUNK]);
        let read = self.each(size / CHUNK as u64, |_| file.read_exact(&mut chunk))?;
        Ok(read * CHUNK as u64)
    }

    fn remove(&mut self) -> io::Result<u64> {
        self.each(self.files, |index| fs::remove_file(self.file(index).1))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It is gone already, unless a failure is reported.
        let _ = fs::remove_dir_all(&self.top);
    }
}
