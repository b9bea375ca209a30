//! The smallest file system that answers: an empty file under every name, nothing kept. It shows
//! what an implementation needs, and measures what the transport alone costs:
//!
//! `null DIR [dev|uring] [SECONDS]`: with seconds, every request goes to the daemon (no timeouts),
//! one client per processor asks for that long, and requests per second are printed.

use holdfast_fuse::{
    Config, Context, Opened, Operations, Session, TransportChoice,
    wire::{OpenReply, OpenRequest, ReadRequest, WriteRequest},
};
use holdfast_types::{Attr, FileType, Ino, Result, Time};
use std::{
    error::Error,
    fs::File,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

struct Null;

fn attr(ino: Ino) -> Attr {
    let kind = if ino == Ino::ROOT {
        FileType::Directory
    } else {
        FileType::Regular
    };
    Attr {
        ino,
        kind,
        perm: 0o755,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        size: 1 << 30,
        blocks: 0,
        atime: Time(0),
        mtime: Time(0),
        ctime: Time(0),
        btime: Time(0),
    }
}

impl Operations for Null {
    fn lookup(&self, _: &Context<'_>, _: Ino, _: &[u8]) -> Result<Attr> {
        Ok(attr(Ino(2)))
    }

    fn getattr(&self, _: &Context<'_>, ino: Ino, _: Option<u64>) -> Result<Attr> {
        Ok(attr(ino))
    }

    fn open(&self, _: &Context<'_>, _: Ino, _: &OpenRequest) -> Result<Opened> {
        Ok(Opened {
            fh: 0,
            flags: OpenReply::DIRECT_IO | OpenReply::PARALLEL_DIRECT_WRITES,
            backing: None,
        })
    }

    fn read(&self, _: &Context<'_>, _: Ino, _: &ReadRequest, out: &mut [u8]) -> Result<usize> {
        Ok(out.len())
    }

    fn write(&self, _: &Context<'_>, _: Ino, request: &WriteRequest<'_>) -> Result<usize> {
        Ok(request.data.len())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let dir = arguments
        .first()
        .ok_or("usage: null DIR [dev|uring] [SECONDS]")?;
    let transport = match arguments.get(1).map(String::as_str) {
        Some("dev") => TransportChoice::Dev,
        Some("uring") => TransportChoice::Uring,
        _ => TransportChoice::Auto,
    };
    let mut config = Config {
        transport,
        ..Config::default()
    };
    let Some(seconds) = arguments.get(2) else {
        let session = Session::mount(Arc::new(Null), Path::new(dir), &config)?;
        println!("mounted over {}", session.info().transport);
        session.wait();
        return Ok(());
    };
    config.entry_timeout = Duration::ZERO;
    config.attr_timeout = Duration::ZERO;
    let limit = Duration::from_secs_f64(seconds.parse()?);
    let session = Session::mount(Arc::new(Null), Path::new(dir), &config)?;
    for clients in [1, 2] {
        measure("getattr", clients, limit, || {
            let file = File::open(Path::new(dir).join("file"))?;
            Ok(move || file.metadata().map(drop))
        })?;
        measure("lookup + getattr", clients, limit, || {
            let path = Path::new(dir).join("file");
            Ok(move || path.metadata().map(drop))
        })?;
        for (name, size) in [("pread 4 KiB", 4096), ("pread 1 MiB", 1 << 20)] {
            measure(name, clients, limit, || {
                let file = File::open(Path::new(dir).join("file"))?;
                let mut buffer = vec![0; size];
                Ok(move || file.read_exact_at(&mut buffer, 0))
            })?;
        }
        measure("pwrite 1 MiB", clients, limit, || {
            let file = File::options()
                .write(true)
                .custom_flags(libc::O_DIRECT)
                .open(Path::new(dir).join("file"))?;
            let buffer = vec![0; 1 << 20];
            Ok(move || file.write_all_at(&buffer, 0))
        })?;
    }
    session.unmount(Default::default())?;
    Ok(())
}

/// Runs what `prepare` makes on `clients` threads for `limit`, and prints the rate.
fn measure<F: FnMut() -> std::io::Result<()>>(
    name: &str,
    clients: usize,
    limit: Duration,
    prepare: impl Fn() -> std::io::Result<F> + Sync,
) -> Result<(), Box<dyn Error>> {
    let started = Instant::now();
    let counts = thread::scope(|scope| {
        let client = || -> std::io::Result<u64> {
            let mut step = prepare()?;
            let mut count = 0;
            while started.elapsed() < limit {
                step()?;
                count += 1;
            }
            Ok(count)
        };
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(client)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect::<Result<Vec<_>, _>>()
    })?;
    let rate = counts.iter().sum::<u64>() as f64 / started.elapsed().as_secs_f64();
    println!("{name}, {clients} clients: {rate:.0} a second");
    Ok(())
}
