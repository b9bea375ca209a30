//! Many empty files on a volume: makes them, unmounts, mounts, walks, asks for all attributes,
//! deletes, and says what each took.
//!
//! ```console
//! $ cargo run --release -p holdfast-bench --example many -- IMAGE [FILES] [DIRECTORIES] [in-order|random]
//! ```
//!
//! In random order each file goes to a directory of chance, and is deleted in that order too.

use holdfast_core::{Bulkstat, FileSystem, Options, Visit};
use holdfast_device::{BlockDevice, FileDevice, FileOptions};
use holdfast_types::{Caller, OpenFlags};
use holdfast_volume::{FormatOptions, OpenOptions, VolumeStore, format};
use std::error::Error;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// As in the program that is measured.
#[global_allocator]
static ALLOCATOR: holdfast_allocator::Allocator = holdfast_allocator::Allocator;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const SIZE: u64 = 64 << 30;

struct Many {
    path: PathBuf,
    files: u64,
    directories: u64,
    random: bool,
    who: Caller,
}

struct Mounted {
    store: Arc<VolumeStore>,
    fs: FileSystem,
}

impl Mounted {
    fn unmount(self) -> Result<()> {
        self.fs.close()?;
        Ok(self.store.close()?)
    }
}

/// Numbers that look like chance, each time the same.
fn mix(number: u64) -> u64 {
    let mixed = (number ^ number >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 17
}

impl Many {
    fn mount(&self) -> Result<Mounted> {
        let device = FileDevice::open(&self.path, FileOptions::default())?;
        let store = Arc::new(VolumeStore::open(
            Arc::new(device),
            &OpenOptions::default(),
        )?);
        let fs = FileSystem::new(store.clone(), Options::default())?;
        Ok(Mounted { store, fs })
    }

    /// The path of a file; names have 24 bytes.
    fn path_of(&self, number: u64) -> String {
        let directory = if self.random {
            mix(number) % self.directories
        } else {
            number / self.files.div_ceil(self.directories)
        };
        format!("/directory-{directory:05}/file-{number:019}")
    }

    fn make(&self, fs: &FileSystem) -> Result<()> {
        let root = fs.root();
        for directory in 0..self.directories {
            let path = format!("/directory-{directory:05}");
            fs.mkdir_at(&self.who, &root, path.as_bytes(), 0o755)?;
        }
        let flags = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::WRITE_ONLY;
        for number in 0..self.files {
            let path = self.path_of(number);
            fs.open_at(&self.who, &root, path.as_bytes(), flags, 0o644)?;
        }
        Ok(fs.sync()?)
    }

    fn walk(&self, fs: &FileSystem) -> Result<u64> {
        let (root, mut met) = (fs.root(), 0);
        for directory in 0..self.directories {
            let path = format!("/directory-{directory:05}");
            let flags = OpenFlags::DIRECTORY;
            let dir = fs.open_at(&self.who, &root, path.as_bytes(), flags, 0)?;
            fs.read_dir_plus(&dir, 0, &mut |entry, _| {
                met += u64::from(entry.name.starts_with(b"file-"));
                true
            })?;
        }
        Ok(met)
    }

    fn scan(fs: &FileSystem) -> Result<u64> {
        let mut met = 0;
        fs.bulkstat_attributes(&mut Bulkstat::new(), |_| {
            met += 1;
            Ok(Visit::Continue)
        })?;
        Ok(met)
    }

    fn delete(&self, fs: &FileSystem) -> Result<()> {
        let root = fs.root();
        for number in 0..self.files {
            fs.unlink_at(&self.who, &root, self.path_of(number).as_bytes())?;
        }
        Ok(fs.sync()?)
    }

    /// Bytes that the image takes.
    fn image(&self) -> Result<u64> {
        Ok(std::fs::metadata(&self.path)?.blocks() * 512)
    }

    fn tell(&self, what: &str, figure: f64, unit: &str) {
        let each = figure / self.files as f64;
        println!("{what:24} {each:>10.1} {unit} a file");
    }

    fn timed<T>(&self, what: &str, call: impl FnOnce() -> Result<T>) -> Result<T> {
        let start = Instant::now();
        let result = call()?;
        let took = start.elapsed();
        self.tell(what, took.as_nanos() as f64, "ns");
        println!("{:24} {:>10.3} s", "", took.as_secs_f64());
        Ok(result)
    }

    fn run(&self) -> Result<()> {
        let device = FileDevice::create(&self.path, SIZE, FileOptions::default())?;
        let device: Arc<dyn BlockDevice> = Arc::new(device);
        format(&device, &FormatOptions::default())?;
        drop(device);
        let empty = self.image()?;
        let space = |what| -> Result<()> {
            self.tell(what, (self.image()? - empty) as f64, "bytes");
            Ok(())
        };
        let mounted = self.mount()?;
        let before = memory("VmRSS")?;
        self.timed("create", || self.make(&mounted.fs))?;
        self.tell("memory", memory("VmRSS")? - before, "bytes");
        self.tell("memory at the peak", memory("VmHWM")? - before, "bytes");
        self.timed("unmount", || mounted.unmount())?;
        space("space")?;
        let mounted = self.timed("mount", || self.mount())?;
        let walked = self.timed("walk", || self.walk(&mounted.fs))?;
        assert_eq!(walked, self.files);
        mounted.unmount()?;
        let mounted = self.mount()?;
        let met = self.timed("bulkstat", || Self::scan(&mounted.fs))?;
        assert_eq!(met, self.files + self.directories + 1);
        self.timed("delete", || self.delete(&mounted.fs))?;
        self.timed("unmount", || mounted.unmount())?;
        space("space at the peak")?;
        Ok(std::fs::remove_file(&self.path)?)
    }
}

/// A figure of the process's memory, in bytes.
fn memory(what: &str) -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(what));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(kib.ok_or("no such figure")?.parse::<f64>()? * 1024.0)
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which image?")?;
    let mut number = |otherwise: u64| -> Result<u64> {
        let text = arguments.next();
        Ok(text
            .map(|text| text.parse())
            .transpose()?
            .unwrap_or(otherwise))
    };
    let (files, directories) = (number(10_000_000)?, number(1000)?);
    let many = Many {
        path: Path::new(&path).to_owned(),
        files: files.max(1),
        directories: directories.max(1),
        random: arguments.next().is_some_and(|order| order == "random"),
        who: Caller::root(),
    };
    many.run()
}
