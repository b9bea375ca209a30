//! `holdfast bench`: what a directory's file system does in a minute, beside another one.
//!
//! All other benchmarks are in the package `holdfast-bench`, which is not installed.

use crate::info::units::{bytes, number};
use crate::message::{Failure, Result};
use crate::output::print_json;
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
/// One thread measures six things, one after the other, each for at most 4.5 seconds: it makes
/// files of 1 KiB, lists them with their attributes as `ls -lR`, reads them, writes a file of 64
/// MiB and makes it durable by fsync(2), reads it, and removes the small files. Reads are answered
/// from caches, as they are for a program that has just written. Small files are not made durable
/// one by one. With --beside each measurement is done in the other directory right after, and the
/// ratio is that of DIR to the other: 2.00 is twice as fast. Single runs differ by some percent.
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
    stop: Arc<AtomicBool>,
}

/// What is measured: a key, the text, and whether the work is counted in bytes.
type Measurement = (
    &'static str,
    &'static str,
    bool,
    fn(&mut Scratch) -> io::Result<u64>,
);

const MEASUREMENTS: [Measurement; 6] = [
    ("create", "make files of 1 KiB", false, Scratch::create),
    ("list", "list them with attributes", false, Scratch::list),
    ("read", "read them", false, Scratch::read),
    ("write_large", "write 64 MiB, durable", true, Scratch::fill),
    ("read_large", "read it", true, Scratch::read_large),
    ("remove", "remove the small files", false, Scratch::remove),
];

#[derive(Serialize)]
struct Report<'r> {
    dir: &'r Path,
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<&'r Path>,
    results: Vec<Measured>,
}

/// Files or bytes a second.
#[derive(Serialize)]
struct Measured {
    name: &'static str,
    unit: &'static str,
    per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    beside_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let caught = flag::register(signal, Arc::clone(&stop));
        caught.map_err(|error| Failure::new(error).about("the handler of signals"))?;
    }
    let dirs = [Some(&arguments.dir), arguments.beside.as_ref()];
    let mut places = Vec::new();
    for dir in dirs.into_iter().flatten() {
        let scratch = Scratch::below(dir, arguments.files, Arc::clone(&stop))?;
        places.push((dir, scratch));
    }
    let mut report = Report {
        dir: &arguments.dir,
        beside: arguments.beside.as_deref(),
        results: Vec::new(),
    };
    let show = |line: &str| match arguments.json {
        true => Ok(()),
        false => writeln!(anstream::stdout(), "{}", line.trim_end()),
    };
    show(&format!("DIR: {}", report.dir.display()))?;
    if let Some(beside) = report.beside {
        show(&format!("BESIDE: {}", beside.display()))?;
        show(&format!("{:>44}{:>16}{:>8}", "DIR", "BESIDE", "RATIO"))?;
    }
    for measurement in &MEASUREMENTS {
        let mut rates = Vec::new();
        for (dir, scratch) in &mut places {
            let failed = |error: io::Error| {
                let failure = Failure::new(format!("{}: {error}", measurement.1)).at(dir);
                failure.hint("it takes 100m of space, and the right to write there")
            };
            rates.push(scratch.rate(measurement.3).map_err(failed)?);
        }
        let measured = Measured::of(measurement, &rates);
        show(&measured.line(measurement))?;
        report.results.push(measured);
    }
    for (dir, scratch) in &places {
        fs::remove_dir_all(&scratch.top).map_err(|error| Failure::of(&error).at(dir))?;
    }
    match arguments.json {
        true => print_json(&report),
        false => Ok(()),
    }
}

impl Scratch {
    fn below(dir: &Path, files: u64, stop: Arc<AtomicBool>) -> Result<Self> {
        let top = dir.join(format!("holdfast-bench-{}", std::process::id()));
        fs::create_dir(&top).map_err(|error| {
            let failure = Failure::new(error).at(dir);
            failure.hint("name a directory that is there, and that this user may write to")
        })?;
        Ok(Self { top, files, stop })
    }

    /// Files or bytes a second.
    fn rate(&mut self, work: fn(&mut Self) -> io::Result<u64>) -> io::Result<f64> {
        let begun = Instant::now();
        let done = work(self)?;
        Ok(done as f64 / begun.elapsed().as_secs_f64().max(1e-9))
    }

    /// Does one thing for each of `times`, as long as there is time; gives how many were done.
    fn each(&self, times: u64, mut one: impl FnMut(u64) -> io::Result<()>) -> io::Result<u64> {
        let begun = Instant::now();
        for index in 0..times {
            if self.stop.load(Ordering::Relaxed) {
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

impl Measured {
    fn of((name, _, is_bytes, _): &Measurement, rates: &[f64]) -> Self {
        let beside_per_second = rates.get(1).copied();
        Self {
            name,
            unit: if *is_bytes { "bytes" } else { "files" },
            per_second: rates[0],
            beside_per_second,
            ratio: beside_per_second.map(|beside| rates[0] / beside.max(1e-9)),
        }
    }

    fn line(&self, (_, text, is_bytes, _): &Measurement) -> String {
        let shown = |rate: f64| match is_bytes {
            true => format!("{}/s", bytes(rate as u64)),
            false => format!("{}/s", number(rate as u64)),
        };
        let (own, beside) = (shown(self.per_second), self.beside_per_second.map(shown));
        let ratio = self.ratio.map(|ratio| format!("{ratio:.2}"));
        let (beside, ratio) = (beside.unwrap_or_default(), ratio.unwrap_or_default());
        format!("{text:28}{own:>16}{beside:>16}{ratio:>8}")
    }
}
