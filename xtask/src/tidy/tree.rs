//! The files under check, read once.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::source::code_only;

/// Folders that hold nothing written by hand, skipped where git cannot tell us so.
const GENERATED: [&str; 2] = ["target", ".git"];

/// One text file.
pub(super) struct File {
    /// Relative to the root, with `/` between the parts.
    pub(super) path: String,
    pub(super) text: String,
    /// For Rust sources: the text with comments and literals blanked, line for line; else empty.
    pub(super) code: String,
}

impl File {
    fn new(path: String, text: String) -> Self {
        let code = if path.ends_with(".rs") {
            code_only(&text)
        } else {
            String::new()
        };
        Self { path, text, code }
    }

    /// The last part of the path.
    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// All text files of the source tree by path.
pub(super) struct Tree {
    files: BTreeMap<String, File>,
    /// Paths of files that are not text: links may point at them.
    binary: Vec<String>,
}

impl Tree {
    /// Reads what git tracks and what it would track; without git, everything but build output.
    pub(super) fn load(root: &Path) -> Result<Self> {
        let paths = match git_paths(root) {
            Some(paths) => paths,
            None => walk(root)?,
        };
        let mut tree = Self {
            files: BTreeMap::new(),
            binary: Vec::new(),
        };
        for path in paths {
            let full = root.join(&path);
            // Tracked, but deleted or replaced by something else in the working tree.
            if !full.is_file() {
                continue;
            }
            let bytes = fs::read(&full).with_context(|| format!("cannot read {path}"))?;
            match String::from_utf8(bytes) {
                Ok(text) if !text.contains('\0') => tree.insert(path, text),
                _ => tree.binary.push(path),
            }
        }
        Ok(tree)
    }

    /// A tree in memory.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self {
            files: BTreeMap::new(),
            binary: Vec::new(),
        };
        for (path, text) in files {
            tree.insert((*path).to_owned(), (*text).to_owned());
        }
        tree
    }

    fn insert(&mut self, path: String, text: String) {
        self.files.insert(path.clone(), File::new(path, text));
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    pub(super) fn get(&self, path: &str) -> Option<&File> {
        self.files.get(path)
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.values()
    }

    /// The Rust sources.
    pub(super) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files().filter(|file| file.path.ends_with(".rs"))
    }

    /// Whether a file or a folder stands at `path`; the empty path is the root.
    pub(super) fn holds(&self, path: &str) -> bool {
        let below = |other: &String| {
            path.is_empty()
                || other
                    .strip_prefix(path)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.files.keys().any(below) || self.binary.iter().any(below)
    }
}

/// Paths by git's account, or nothing where `root` is not the top of a checkout.
fn git_paths(root: &Path) -> Option<Vec<String>> {
    if !root.join(".git").exists() {
        return None;
    }
    let output = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root)
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    let listing = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(
        listing
            .split('\0')
            .filter(|path| !path.is_empty())
            .map(str::to_owned)
            .collect(),
    )
}

/// Paths of all files below `root`, in no particular order.
fn walk(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(root.join(&folder))
            .with_context(|| format!("cannot list {}", root.join(&folder).display()))?;
        for entry in entries.collect::<io::Result<Vec<_>>>()? {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() {
                name.clone()
            } else {
                format!("{folder}/{name}")
            };
            let kind = entry.file_type()?;
            if kind.is_dir() && !GENERATED.contains(&name.as_str()) {
                folders.push(path);
            } else if kind.is_file() {
                found.push(path);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_held_by_the_files_in_them() {
        let tree = Tree::of(&[("docs/testing.md", "")]);
        assert!(tree.holds("docs") && tree.holds("docs/testing.md") && tree.holds(""));
        assert!(!tree.holds("doc") && !tree.holds("docs/test"));
    }

    #[test]
    fn a_walk_skips_build_output_and_keeps_binary_files_as_targets_of_links() -> Result<()> {
        let folder = tempfile::tempdir()?;
        fs::create_dir_all(folder.path().join("target/debug"))?;
        fs::write(folder.path().join("target/debug/a.rs"), "x")?;
        fs::write(folder.path().join("image.png"), [0x89, 0, 0xff])?;
        fs::write(folder.path().join("a.rs"), "// x\n")?;
        let tree = Tree::load(folder.path())?;
        assert_eq!(tree.len(), 1);
        assert!(tree.holds("image.png") && !tree.holds("target"));
        Ok(())
    }
}
