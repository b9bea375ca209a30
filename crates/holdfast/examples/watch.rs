//! One thread watches a directory in which another works.
//!
//! `cargo run -p holdfast-fs --example watch`

use std::io::{self, Write};
use std::thread;

use holdfast::{EventMask, FileSystem};

fn main() -> io::Result<()> {
    let fs = FileSystem::memory();
    fs.create_dir("/spool")?;
    let mask = EventMask::CREATE
        | EventMask::CLOSE_WRITE
        | EventMask::MOVE
        | EventMask::DELETE
        | EventMask::DELETE_SELF;
    let watcher = fs.watch("/spool", mask)?;
    let worker = thread::spawn(move || work(&fs));

    // Ends after the last event, when the directory is removed.
    let mut out = io::stdout().lock();
    for event in watcher {
        let joined = match event.cookie {
            0 => String::new(),
            cookie => format!(" (rename {cookie})"),
        };
        let names = event.mask.iter_names().map(|(name, _)| name);
        let names = names.collect::<Vec<_>>().join("|");
        writeln!(out, "{names:>16}  {}{joined}", event.path.display())?;
    }
    worker.join().expect("the worker does not panic")
}

fn work(fs: &FileSystem) -> io::Result<()> {
    for job in ["invoice", "letter"] {
        let draft = format!("/spool/{job}.tmp");
        fs.write(&draft, format!("the {job}"))?;
        fs.rename(&draft, format!("/spool/{job}"))?;
    }
    fs.remove_file("/spool/invoice")?;
    fs.remove_dir_all("/spool")
}
