//! Unpacks a tree into a file system in memory and lists it, as `ls -lR` would.
//!
//! `cargo run -p holdfast-fs --example embed [DIRECTORY]`: the tree is a directory of the host; by
//! default, this crate's sources.

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use holdfast::{Dir, FileSystem, Metadata, Permissions};

fn main() -> io::Result<()> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let source = std::env::args_os()
        .nth(1)
        .map_or(default.into(), PathBuf::from);

    let fs = FileSystem::memory();
    let started = Instant::now();
    unpack(&source, &fs.root_dir())?;
    let took = started.elapsed();

    let mut out = io::stdout().lock();
    list(&fs, Path::new("/"), &mut out)?;
    let stats = fs.stats();
    writeln!(
        out,
        "\n{} inodes, {} names, {} bytes of content held, unpacked in {took:.1?}",
        stats.inodes, stats.names, stats.bytes
    )
}

/// Copies the content of a directory of the host. Going from handle to handle, it looks up each
/// name once.
fn unpack(source: &Path, target: &Dir) -> io::Result<()> {
    for entry in std::fs::read_dir(source)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            target.create_dir(&name)?;
            unpack(&path, &target.open_dir(&name)?)?;
        } else if metadata.is_symlink() {
            target.symlink(std::fs::read_link(&path)?, &name)?;
            continue;
        } else if metadata.is_file() {
            io::copy(&mut std::fs::File::open(&path)?, &mut target.create(&name)?)?;
        } else {
            continue;
        }
        target.set_permissions(&name, Permissions::from_mode(metadata.permissions().mode()))?;
    }
    Ok(())
}

/// Attributes come with the entries of a directory: listing them costs no further call.
fn list(fs: &FileSystem, path: &Path, out: &mut impl Write) -> io::Result<()> {
    let mut entries = fs.read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(holdfast::DirEntry::file_name);
    writeln!(out, "{}:", path.display())?;
    for entry in &entries {
        let metadata = entry.metadata()?;
        let name = entry.file_name();
        writeln!(
            out,
            "{} {:>9} {}",
            mode(&metadata),
            metadata.len(),
            name.display()
        )?;
    }
    for entry in entries
        .iter()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
    {
        writeln!(out)?;
        list(fs, &entry.path(), out)?;
    }
    Ok(())
}

/// `-rw-r--r--` and its like.
fn mode(metadata: &Metadata) -> String {
    let kind = match () {
        () if metadata.is_dir() => 'd',
        () if metadata.is_symlink() => 'l',
        () => '-',
    };
    let bit = |at: u32| match metadata.mode() >> at & 1 {
        0 => '-',
        _ => ['x', 'w', 'r'][at as usize % 3],
    };
    std::iter::once(kind).chain((0..9).rev().map(bit)).collect()
}
