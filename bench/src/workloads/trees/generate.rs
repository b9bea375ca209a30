//! A tree like `node_modules`, the same in every run. Packages have few files or many, some have
//! packages of their own, dot files and links to programs. Most files are below 4 KiB, few above
//! 64.

use crate::chance::Chance;
use anyhow::Result;
use std::io::{self, Read, Write};
use tar::{Builder, EntryType, Header};

/// Directories for so many files: 6,000 for 50,000.
const DIRECTORIES: u64 = 3;
const FILES: u64 = 25;

/// How deep directories of one package are within each other.
const DEPTH_MAX: usize = 5;

/// Bytes that content is taken from.
const POOL_BYTES: usize = 1 << 20;

/// Files have content of 2^6 to 2^16 bytes, most of them about 2^11; of so many, one has sixteen
/// times as much.
const SIZE_LOG_MIN: f64 = 6.0;
const SIZE_LOG_SPAN: f64 = 5.0;
const LARGE_ONE_OF: u64 = 200;

/// When everything in it was changed last, in seconds since 1970.
const CHANGED: u64 = 1_700_000_000;

const FIXED: [&str; 4] = ["package.json", "README.md", "LICENSE", ".npmignore"];
const FOLDERS: [&str; 8] = [
    "lib", "dist", "src", "types", "cjs", "esm", "test", ".github",
];
const ENDINGS: [&str; 6] = ["js", "d.ts", "js.map", "mjs", "json", "md"];
const WORDS: [&str; 24] = [
    "const",
    "function",
    "return",
    "module",
    "exports",
    "require",
    "options",
    "undefined",
    "value",
    "=",
    "=>",
    "{",
    "}",
    "(",
    ");",
    "'use strict';",
    "callback",
    "if",
    "else",
    "prototype",
    "Object.keys",
    "length",
    "index",
    "this",
];

/// Writes the archive of a tree with so many files.
///
/// # Errors
/// If it cannot be written.
pub(super) fn write(files: u64, out: impl Write) -> Result<()> {
    let mut writer = Writer {
        archive: Builder::new(out),
        chance: Chance::seeded(files),
        pool: pool(),
        files: 0,
        directories: 0,
    };
    writer.directory("node_modules")?;
    writer.directory("node_modules/.bin")?;
    let mut number = 0;
    while writer.files < files {
        number += 1;
        writer.package(number, files)?;
    }
    writer.archive.into_inner()?.flush()?;
    Ok(())
}

struct Writer<W: Write> {
    archive: Builder<W>,
    chance: Chance,
    pool: Vec<u8>,
    files: u64,
    directories: u64,
}

impl<W: Write> Writer<W> {
    /// A package with what belongs to it, as long as there are files missing.
    fn package(&mut self, number: u64, files: u64) -> Result<()> {
        let name = format!("package-{number}");
        let root = match number % 5 {
            0 => {
                let scope = format!("node_modules/@scope-{}", number / 50);
                if number.is_multiple_of(50) {
                    self.directory(&scope)?;
                }
                format!("{scope}/{name}")
            }
            _ => format!("node_modules/{name}"),
        };
        self.directory(&root)?;
        let mut folders = vec![root.clone()];
        if number.is_multiple_of(7) {
            for inner in ["/node_modules", "/node_modules/inner"] {
                folders.push(format!("{root}{inner}"));
                self.directory(&folders[folders.len() - 1])?;
            }
        }
        // Most are small; few have hundreds.
        let log = 2.0 + self.chance.part() * self.chance.part() * 7.0;
        let wanted = (log.exp2() as u64).min(files - self.files);
        for file in 0..wanted {
            // As many directories as belong to the files so far.
            if self.directories * FILES < self.files * DIRECTORIES {
                self.folder(&mut folders)?;
            }
            self.file_of(&folders, file, number)?;
        }
        if number.is_multiple_of(3) && wanted > 0 {
            let program = root.replacen("node_modules", "..", 1);
            self.link(
                &format!("node_modules/.bin/{name}"),
                &format!("{program}/package.json"),
            )?;
        }
        Ok(())
    }

    fn folder(&mut self, folders: &mut Vec<String>) -> Result<()> {
        let shallow = |path: &&String| path.matches('/').count() < DEPTH_MAX;
        let parents: Vec<&String> = folders.iter().filter(shallow).collect();
        let parent = parents[self.chance.below(parents.len() as u64) as usize];
        let kind = FOLDERS[self.chance.below(FOLDERS.len() as u64) as usize];
        let path = format!("{parent}/{kind}-{}", folders.len());
        self.directory(&path)?;
        folders.push(path);
        Ok(())
    }

    fn file_of(&mut self, folders: &[String], number: u64, package: u64) -> Result<()> {
        let path = match FIXED.get(number as usize) {
            Some(name) => format!("{}/{name}", folders[0]),
            None => {
                let folder = &folders[self.chance.below(folders.len() as u64) as usize];
                let ending = ENDINGS[self.chance.below(ENDINGS.len() as u64) as usize];
                let dot = if number % 40 == 39 { "." } else { "" };
                format!("{folder}/{dot}file-{number}.{ending}")
            }
        };
        let log = SIZE_LOG_MIN + SIZE_LOG_SPAN * (self.chance.part() + self.chance.part());
        let mut size = log.exp2() as u64;
        if self.chance.below(LARGE_ONE_OF) == 0 {
            size *= 16;
        }
        // No two have the same content: git would keep it once.
        let title = format!("// {package} {path}\n");
        let start = self.chance.below((POOL_BYTES / 2) as u64) as usize;
        let text = &self.pool[start..];
        // The largest files are twice as long as what is left of it may be.
        let body = text.chain(text).chain(text);
        let content = title.as_bytes().chain(body).take(size);
        let mut header = header(EntryType::Regular, 0o644);
        header.set_size(size);
        self.archive.append_data(&mut header, path, content)?;
        self.files += 1;
        Ok(())
    }

    fn directory(&mut self, path: &str) -> Result<()> {
        let mut header = header(EntryType::Directory, 0o755);
        self.archive.append_data(&mut header, path, io::empty())?;
        self.directories += 1;
        Ok(())
    }

    fn link(&mut self, path: &str, target: &str) -> Result<()> {
        let mut header = header(EntryType::Symlink, 0o777);
        Ok(self.archive.append_link(&mut header, path, target)?)
    }
}

fn header(kind: EntryType, mode: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(CHANGED);
    header.set_size(0);
    header
}

/// Text that compresses about as well as programs do.
fn pool() -> Vec<u8> {
    let mut chance = Chance::seeded(0);
    let mut text = Vec::with_capacity(POOL_BYTES + 32);
    while text.len() < POOL_BYTES {
        let word = WORDS[chance.below(WORDS.len() as u64) as usize];
        text.extend_from_slice(word.as_bytes());
        if chance.below(3) == 0 {
            text.extend_from_slice(chance.below(100_000).to_string().as_bytes());
        }
        text.push(if chance.below(9) == 0 { b'\n' } else { b' ' });
    }
    text.truncate(POOL_BYTES);
    text
}

#[cfg(test)]
mod tests {
    use super::super::census::Census;
    use super::*;

    fn archive(files: u64) -> Vec<u8> {
        let mut archive = Vec::new();
        write(files, &mut archive).expect("written");
        archive
    }

    #[test]
    fn the_tree_has_the_files_that_were_asked_for_and_is_always_the_same() {
        let tree = archive(5000);
        assert!(tree == archive(5000), "it differs from itself");
        let census = Census::of_archive(tree.as_slice()).expect("counted");
        assert_eq!(census.files, 5000);
        assert!((590..=610).contains(&census.directories), "{census:?}");
        assert!(census.symlinks > 20, "{census:?}");
        let hidden = census.entries() - census.visible;
        assert!(hidden > 200 && hidden < census.entries() / 4, "{census:?}");
        let mean = census.bytes / census.files;
        assert!((3000..9000).contains(&mean), "{mean} bytes a file");
        let tiny = Census::of_archive(archive(1).as_slice()).expect("counted");
        assert_eq!(tiny.files, 1);
    }
}
