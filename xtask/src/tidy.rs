//! `cargo xtask tidy`: the rules of the house that neither rustc nor clippy checks.
//!
//! Each rule is a function from the tree to findings. A finding names a place and its remedy, so
//! that its reader need not look the rule up.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

mod budget;
mod edges;
mod imports;
mod length;
mod links;
mod manifests;
mod names;
mod promises;
mod rooms;
mod sentences;
mod source;
mod tree;
mod words;

use tree::Tree;

/// One violated rule at one place.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    /// Counted from 1.
    line: usize,
    what: String,
    remedy: String,
}

impl Finding {
    fn new(path: &str, line: usize, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: {}; {}",
            self.path, self.line, self.what, self.remedy
        )
    }
}

/// Checks the tree under `root` and prints what it found.
pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let tree = Tree::load(root)?;
    let mut findings = rules(&tree);
    findings.extend(edges::check(&tree, &edges::cargo_metadata(root)?)?);
    findings.extend(budget::check(root, &tree)?);
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("tidy: {} files, no findings", tree.len());
        Ok(ExitCode::SUCCESS)
    } else {
        println!("tidy: {} findings", findings.len());
        Ok(ExitCode::FAILURE)
    }
}

/// Prints the counts of the budget; with `write`, lowers its numbers to them.
pub(crate) fn budget(root: &Path, write: bool) -> Result<ExitCode> {
    budget::run(root, &Tree::load(root)?, write)
}

/// Prints the imports that run back up.
pub(crate) fn rooms(root: &Path) -> Result<ExitCode> {
    print!("{}", rooms::list(&Tree::load(root)?));
    Ok(ExitCode::SUCCESS)
}

/// Prints the imports and calls between files of one circle.
pub(crate) fn circles(root: &Path) -> Result<ExitCode> {
    print!("{}", budget::circles::list(&Tree::load(root)?));
    Ok(ExitCode::SUCCESS)
}

/// Every rule that needs nothing but the files.
fn rules(tree: &Tree) -> Vec<Finding> {
    let checks: [fn(&Tree) -> Vec<Finding>; 12] = [
        length::check,
        links::check,
        manifests::lints_are_inherited,
        names::files,
        names::tests,
        promises::check,
        rooms::check,
        sentences::check,
        words::confined_unsafe,
        words::unfinished_code,
        words::ignored_tests,
        words::trailing_whitespace,
    ];
    let mut findings: Vec<Finding> = checks.iter().flat_map(|check| check(tree)).collect();
    findings.extend(manifests::crates_have_headers(tree));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace without a fault, to which each test adds one.
    fn clean_tree() -> Vec<(&'static str, &'static str)> {
        vec![
            (
                "README.md",
                "# Fixture\nSee [the design](ARCHITECTURE.md).\n",
            ),
            ("ARCHITECTURE.md", "# Shape\n"),
            (
                "crates/types/Cargo.toml",
                "[package]\nname = \"t\"\n\n[lints]\nworkspace = true\n",
            ),
            (
                "crates/types/src/lib.rs",
                "//! Words.\n\nfn answer() -> u32 {\n    42\n}\n",
            ),
        ]
    }

    #[test]
    fn a_clean_tree_has_no_findings() {
        assert_eq!(rules(&Tree::of(&clean_tree())), []);
    }

    #[test]
    fn a_tree_on_disk_is_checked_like_one_in_memory() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let mut files = clean_tree();
        files.push(("crates/types/src/plan.rs", "fn later() {\n    todo!()\n}\n"));
        for (path, text) in files {
            let full = folder.path().join(path);
            std::fs::create_dir_all(full.parent().expect("has a folder"))?;
            std::fs::write(full, text)?;
        }
        let shown: Vec<String> = rules(&Tree::load(folder.path())?)
            .iter()
            .map(Finding::to_string)
            .collect();
        assert_eq!(
            shown,
            [
                "crates/types/src/plan.rs:2: unfinished code: todo!; write it or open an issue and return an error"
            ]
        );
        Ok(())
    }
}
