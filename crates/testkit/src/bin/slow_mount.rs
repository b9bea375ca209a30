//! Mounts a volume on a device that can be made slow: `slow_mount DIR [--transport auto|uring|dev]`.
//!
//! The volume, in memory, has files `cold0` to `cold99` of 64 KiB and `large` of 64 MiB, none of
//! which is in the cache. Once it says `ready` it takes lines: `read MS`, `write MS` and `flush MS`
//! say how long each such call of the device takes from now on, `forget` has everything forgotten
//! that can be read again. It ends with the mount.

use holdfast_core::{FileSystem, Options};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_fuse::{Config, TransportChoice, serve};
use holdfast_testkit::device::{Call, SlowDevice};
use holdfast_types::{Caller, OpenFlags};
use holdfast_volume::{FormatOptions, OpenOptions, VolumeStore, format};
use std::{
    error::Error,
    io::{self, BufRead},
    path::Path,
    sync::Arc,
    thread,
    time::Duration,
};

const SIZE: u64 = 256 << 20;
const OPTIONS: OpenOptions = OpenOptions {
    cache: 64 << 20,
    commit_every: Some(Duration::from_secs(5)),
    ..OpenOptions::DEFAULT
};

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: slow_mount DIR [--transport auto|uring|dev]";
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (dir, transport) = match words[..] {
        [dir] | [dir, "--transport", "auto"] => (dir, TransportChoice::Auto),
        [dir, "--transport", "uring"] => (dir, TransportChoice::Uring),
        [dir, "--transport", "dev"] => (dir, TransportChoice::Dev),
        _ => return Err(usage.into()),
    };
    let memory: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(SIZE));
    fill(&memory)?;
    let slow = Arc::new(SlowDevice::new(
        memory,
        Duration::ZERO,
        Duration::ZERO,
        Duration::ZERO,
    ));
    let store = Arc::new(VolumeStore::open(slow.clone(), &OPTIONS)?);
    let fs = FileSystem::new(store, Options::default())?;
    let config = Config {
        transport,
        ..Config::default()
    };
    let session = serve::mount(&fs, Path::new(dir), &config, None)?;
    let own = fs.clone();
    thread::spawn(move || take_orders(&slow, &own));
    println!("ready over {}", session.info().transport);
    session.wait();
    if let Some(reason) = session.failure() {
        return Err(reason.into());
    }
    fs.close()?;
    Ok(())
}

/// Makes the volume and its files, and closes it, so that nothing of them is in memory.
fn fill(device: &Arc<dyn BlockDevice>) -> Result<(), Box<dyn Error>> {
    format(device, &FormatOptions::default())?;
    let store = Arc::new(VolumeStore::open(device.clone(), &OPTIONS)?);
    let fs = FileSystem::new(store, Options::default())?;
    let who = Caller::root().with_umask(0);
    for number in 0..100 {
        let name = format!("cold{number}");
        let flags = OpenFlags::WRITE_ONLY;
        let file = fs.create(&who, &fs.root(), name.as_bytes(), 0o644, flags)?;
        fs.write(&who, &file, 0, &vec![number; 64 << 10])?;
    }
    let file = fs.create(&who, &fs.root(), b"large", 0o644, OpenFlags::WRITE_ONLY)?;
    for part in 0..64 {
        fs.write(&who, &file, part << 20, &vec![1; 1 << 20])?;
    }
    drop(file);
    fs.close()?;
    Ok(())
}

fn take_orders(device: &SlowDevice, fs: &FileSystem) {
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        if line == "forget" {
            if let Err(error) = fs.drop_caches() {
                eprintln!("forget: {error:?}");
            }
            continue;
        }
        let order = line.split_once(' ').and_then(|(call, millis)| {
            let call = match call {
                "read" => Call::Read,
                "write" => Call::Write,
                "flush" => Call::Flush,
                _ => return None,
            };
            Some((call, Duration::from_millis(millis.parse().ok()?)))
        });
        match order {
            Some((call, latency)) => device.set_latency(call, latency),
            None => eprintln!("not understood: {line}; try `read 4000`"),
        }
    }
}
