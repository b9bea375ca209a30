//! The licences of the crates in the program: most want their text to go with each copy.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::run::{bytes, output};

/// What files with a licence or a notice are called.
const NAMES: [&str; 5] = ["LICEN", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// The texts of all crates of others, one behind the other.
pub(super) fn texts(source: &Path) -> Result<String> {
    let mut cargo = Command::new("cargo");
    cargo
        .args(["metadata", "--locked", "--format-version", "1"])
        .current_dir(source);
    let metadata: Value = serde_json::from_slice(&bytes(&mut cargo)?)?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let mut text = String::from("The program has these crates in it, under these licences.\n");
    for (name, version) in in_program(source)? {
        let package = packages
            .iter()
            .find(|package| package["name"] == *name && package["version"] == *version)
            .with_context(|| format!("cargo knows no {name} {version}"))?;
        if package["source"].is_null() {
            continue;
        }
        let licence = package["license"].as_str().unwrap_or("see below");
        write!(text, "\n\n{name} {version}: {licence}\n")?;
        let manifest = package["manifest_path"].as_str().context("no manifest")?;
        let folder = Path::new(manifest).parent().context("no folder")?;
        for file in files(folder)? {
            write!(text, "\n{}\n", fs::read_to_string(folder.join(file))?)?;
        }
    }
    Ok(text)
}

/// Names and versions, in order.
fn in_program(source: &Path) -> Result<BTreeSet<(String, String)>> {
    let mut cargo = Command::new("cargo");
    cargo
        .args(["tree", "--locked", "--package", "holdfast-cli"])
        .args(["--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .current_dir(source);
    let tree = output(&mut cargo)?;
    let mut found = BTreeSet::new();
    for line in tree.lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(version)) = (words.next(), words.next()) else {
            bail!("cargo tree printed `{line}`");
        };
        let version = version.trim_start_matches('v');
        found.insert((name.to_owned(), version.to_owned()));
    }
    Ok(found)
}

fn files(folder: &Path) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let upper = name.to_uppercase();
        if entry.file_type()?.is_file() && NAMES.iter().any(|start| upper.starts_with(start)) {
            found.insert(name);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_of_others_is_there_with_its_text() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("a workspace");
        let text = texts(source).expect("cargo knows the workspace");
        assert!(text.contains("\nclap "), "a crate that the program uses");
        assert!(text.contains("Permission is hereby granted"), "a licence");
        assert!(!text.contains("\nholdfast-fs "), "a crate of ours");
        assert!(!text.contains("\nproptest "), "a crate of the tests");
    }

    #[test]
    fn files_are_found_whatever_their_case() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["LICENSE-MIT", "license.txt", "COPYING", "README.md"] {
            fs::write(folder.path().join(name), name).expect("written");
        }
        fs::create_dir(folder.path().join("LICENSES")).expect("a folder");
        let found = files(folder.path()).expect("a folder that is there");
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(found, ["COPYING", "LICENSE-MIT", "license.txt"]);
    }
}
