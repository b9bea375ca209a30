//! Fills a volume from several threads and reads it back after it was closed.
//!
//! `cargo run -p holdfast-fs --example volume [IMAGE]`: without an image, one in the directory of
//! temporary files, which is removed at the end.

use std::path::{Path, PathBuf};
use std::thread;

use holdfast::{Volume, VolumeError};

const THREADS: usize = 4;
const FILES: usize = 1000;

fn main() -> Result<(), VolumeError> {
    match std::env::args_os().nth(1) {
        Some(image) => run(Path::new(&image)),
        None => {
            let name = format!("holdfast-example-{}.hf", std::process::id());
            let image: PathBuf = std::env::temp_dir().join(name);
            let done = run(&image);
            std::fs::remove_file(&image)?;
            done
        }
    }
}

fn run(image: &Path) -> Result<(), VolumeError> {
    let volume = Volume::builder().size(256 << 20).open_or_create(image)?;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let volume = &volume;
                scope.spawn(move || fill(volume, thread))
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("a thread of this program panicked"))
    })?;
    // All is durable after this call.
    volume.close()?;

    let volume = Volume::open_read_only(image)?;
    let mut bytes = 0;
    for directory in volume.read_dir("/")? {
        for file in volume.read_dir(directory?.path())? {
            bytes += file?.metadata()?.len();
        }
    }
    println!(
        "{} files, {bytes} bytes in {}",
        THREADS * FILES,
        image.display()
    );
    Ok(())
}

/// A directory for each thread: files in different directories are made without waiting.
fn fill(volume: &Volume, thread: usize) -> Result<(), VolumeError> {
    let path = format!("/{thread}");
    volume.create_dir_all(&path)?;
    let directory = volume.open_dir(&path)?;
    for file in 0..FILES {
        directory.write(
            file.to_string(),
            format!("file {file} of thread {thread}\n"),
        )?;
    }
    Ok(())
}
