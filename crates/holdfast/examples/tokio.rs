//! Serves a file system in memory to the tasks of a tokio program.
//!
//! `cargo run -p holdfast-fs --example tokio`

use std::io;

use holdfast::FileSystem;
use tokio::task::{JoinSet, spawn_blocking};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tokio::runtime::Builder::new_current_thread()
        .build()?
        .block_on(serve())
}

async fn serve() -> Result<(), Box<dyn std::error::Error>> {
    let fs = FileSystem::memory();
    let mut tasks = JoinSet::new();
    for client in 0..100 {
        let fs = fs.clone();
        tasks.spawn(async move { store(&fs, client).await });
    }
    while let Some(stored) = tasks.join_next().await {
        stored??;
    }
    let names = spawn_blocking(move || fs.read_dir("/").map(Iterator::count)).await??;
    println!("{names} clients have stored a file");
    Ok(())
}

/// A call that can wait runs on a thread of the runtime's pool for such calls.
async fn store(fs: &FileSystem, client: u32) -> io::Result<()> {
    let fs = fs.clone();
    let stored = spawn_blocking(move || fs.write(format!("/{client}"), "hello")).await;
    stored.map_err(io::Error::other)?
}
