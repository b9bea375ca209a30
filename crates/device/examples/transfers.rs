//! How fast image files are, in GiB/s with seconds of processor per GiB: `cargo run --release -p
//! holdfast-device --example transfers -- DIR...`. Each figure is the median of five runs. Cold reads
//! drop the file from the host's cache first.

use holdfast_device::{
    Batches, BlockDevice, Caching, FileDevice, FileOptions, ReadRequest, WriteRequest,
};
use rustix::fs::Advice;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

const SIZE: u64 = 256 << 20;
const NODE: u64 = 16 << 10;
const RUNS: usize = 5;

fn seconds(time: Timespec) -> f64 {
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Median speed of moving `bytes`, with the processor's time of the median run.
fn measured(bytes: u64, mut prepare: impl FnMut(), mut work: impl FnMut()) -> String {
    let mut runs: Vec<(f64, f64)> = (0..RUNS)
        .map(|_| {
            prepare();
            let cpu = seconds(clock_gettime(ClockId::ProcessCPUTime));
            let begun = Instant::now();
            work();
            let took = begun.elapsed().as_secs_f64();
            (took, seconds(clock_gettime(ClockId::ProcessCPUTime)) - cpu)
        })
        .collect();
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let gib = bytes as f64 / f64::from(1 << 30);
    let (took, cpu) = runs[RUNS / 2];
    format!("{:6.2} ({:.2})", gib / took, cpu / gib)
}

struct Image {
    path: PathBuf,
    device: FileDevice,
}

impl Image {
    fn open(path: &Path, caching: Caching, batches: Batches) -> Self {
        let options = FileOptions {
            caching,
            batches,
            ..FileOptions::default()
        };
        let device = FileDevice::open(path, options).expect("the image just made opens");
        assert_eq!(
            device.caching(),
            caching,
            "the host has no direct transfers"
        );
        Self {
            path: path.to_path_buf(),
            device,
        }
    }

    fn drop_cache(&self) {
        self.device.flush().expect("flushed");
        let file = File::open(&self.path).expect("the image opens");
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).expect("dropped");
    }

    fn write(&self, piece: u64) -> String {
        let bytes = vec![7; piece as usize];
        let work = || {
            for at in (0..SIZE).step_by(piece as usize) {
                self.device.write(at, &bytes).expect("written");
            }
            self.device.flush().expect("flushed");
        };
        measured(SIZE, || self.drop_cache(), work)
    }

    /// Nodes gathered into batches of one MiB, as a checkpoint writes them.
    fn write_gathered(&self) -> String {
        let node = vec![7; NODE as usize];
        let work = || {
            for at in (0..SIZE).step_by(1 << 20) {
                let nodes = (at..at + (1 << 20)).step_by(NODE as usize);
                let nodes: Vec<_> = nodes.map(|at| WriteRequest::new(at, &node)).collect();
                self.device.write_batch(&nodes).expect("written");
            }
            self.device.flush().expect("flushed");
        };
        measured(SIZE, || self.drop_cache(), work)
    }

    /// Microseconds for 64 KiB in a written ring and their flush, the median of many.
    fn commit(&self, behind: bool) -> String {
        let bytes = vec![9; 64 << 10];
        let mut took: Vec<f64> = (0..400)
            .map(|turn| {
                let begun = Instant::now();
                let at = turn % 64 * bytes.len() as u64;
                let written = match behind {
                    true => self.device.write_behind(at, &bytes),
                    false => self.device.write(at, &bytes),
                };
                written.and_then(|()| self.device.flush()).expect("written");
                begun.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        took.sort_by(f64::total_cmp);
        format!("{:6.0} µs", took[took.len() / 2])
    }

    fn read(&self) -> String {
        let mut buf = vec![0; 1 << 20];
        let work = || {
            for at in (0..SIZE).step_by(1 << 20) {
                self.device.read(at, &mut buf).expect("read");
            }
        };
        measured(SIZE, || self.drop_cache(), work)
    }

    /// A quarter of all nodes in random order, `at_once` in a batch.
    fn scattered(&self, at_once: usize, cold: bool) -> String {
        let nodes = SIZE / NODE;
        let mut order: Vec<u64> = (0..nodes).map(|it| it * NODE).collect();
        order.sort_by_key(|at| (at / NODE).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20);
        let order = &order[..order.len() / 4];
        let mut bufs = vec![vec![0; NODE as usize]; at_once];
        let prepare = || {
            if cold {
                self.drop_cache();
            }
        };
        let work = || {
            for batch in order.chunks(at_once) {
                let requests = batch.iter().zip(&mut bufs);
                let mut requests: Vec<_> = requests
                    .map(|(&at, buf)| ReadRequest::new(at, buf))
                    .collect();
                self.device.read_batch(&mut requests).expect("read");
            }
        };
        measured(order.len() as u64 * NODE, prepare, work)
    }
}

fn main() {
    for dir in std::env::args_os().skip(1) {
        let path = Path::new(&dir).join("transfers.hf");
        drop(FileDevice::create(&path, SIZE, FileOptions::default()).expect("created"));
        println!("{}", Path::new(&dir).display());
        for caching in [Caching::Buffered, Caching::DropBehind, Caching::Direct] {
            let image = Image::open(&path, caching, Batches::Auto);
            if image.device.caching() != caching {
                println!("  {caching:?}: not to be had here");
                continue;
            }
            println!("  {caching:?}: commit 64 KiB     {}", image.commit(false));
            println!("  {caching:?}: same, behind      {}", image.commit(true));
            println!("  {caching:?}: write 16 KiB      {}", image.write(NODE));
            println!(
                "  {caching:?}: write 64 x 16 KiB {}",
                image.write_gathered()
            );
            println!("  {caching:?}: write 1 MiB       {}", image.write(1 << 20));
            println!("  {caching:?}: cold read 1 MiB   {}", image.read());
            drop(image);
            for batches in [Batches::OneByOne, Batches::Announced, Batches::Ring] {
                let image = Image::open(&path, caching, batches);
                for (at_once, cold) in [(4, true), (32, true), (256, true), (32, false)] {
                    println!(
                        "  {caching:?}: scattered {batches:?} by {at_once}, {} {}",
                        if cold { "cold" } else { "warm" },
                        image.scattered(at_once, cold)
                    );
                }
            }
        }
        std::fs::remove_file(&path).expect("removed");
    }
}
