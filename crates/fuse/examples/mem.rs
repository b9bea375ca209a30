//! Mounts an empty file system in memory until it is unmounted:
//! `mem DIR [dev|uring|auto] [OPTIONS]`.

use holdfast_core::{FileSystem, MemoryLimits, Options};
use holdfast_fuse::{Config, TransportChoice, mount::MountOptions, serve};
use std::{error::Error, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let dir = arguments
        .first()
        .ok_or("usage: mem DIR [dev|uring|auto] [OPTIONS]")?;
    let transport = match arguments.get(1).map(String::as_str) {
        Some("dev") => TransportChoice::Dev,
        Some("uring") => TransportChoice::Uring,
        _ => TransportChoice::Auto,
    };
    let mount = MountOptions::parse(arguments.get(2).map_or("", String::as_str))?;
    let fs = FileSystem::memory(MemoryLimits::default(), Options::default());
    let config = Config {
        transport,
        mount,
        ..Config::default()
    };
    let session = serve::mount(&fs, Path::new(dir), &config, None)?;
    let info = session.info();
    println!("mounted over {} ({})", info.transport, info.why);
    session.wait();
    println!("{:?}\n{:?}", session.info().totals, fs.stats());
    Ok(())
}
