//! What every package of the workspace owes: the common lints, and a sentence about itself.

use super::Finding;
use super::tree::{File, Tree};

/// Packages outside the workspace, which cannot inherit from it.
const OUTSIDE: [&str; 1] = ["fuzz/Cargo.toml"];

/// Every member takes its lints from the workspace.
pub(super) fn lints_are_inherited(tree: &Tree) -> Vec<Finding> {
    tree.files()
        .filter(|file| file.path.ends_with("/Cargo.toml"))
        .filter(|file| !OUTSIDE.contains(&file.path.as_str()))
        .filter(|file| !inherits_lints(&file.text))
        .map(|file| {
            Finding::new(
                &file.path,
                1,
                "the lints of the workspace are not inherited",
                "add `[lints]` with `workspace = true`",
            )
        })
        .collect()
}

fn inherits_lints(manifest: &str) -> bool {
    let mut section = "";
    manifest
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .any(|line| {
            if line.starts_with('[') {
                section = line;
            }
            let compact: String = line.split_whitespace().collect();
            (section == "[lints]" && compact == "workspace=true")
                || compact == "lints.workspace=true"
        })
}

/// Every folder of `crates/` opens with a doc comment that says what the crate is for.
pub(super) fn crates_have_headers(tree: &Tree) -> Vec<Finding> {
    tree.files()
        .filter_map(|file| crate_folder(&file.path))
        .filter_map(|folder| {
            let root = ["lib.rs", "main.rs"]
                .iter()
                .find_map(|name| tree.get(&format!("{folder}/src/{name}")));
            match root {
                None => Some(Finding::new(
                    &format!("{folder}/Cargo.toml"),
                    1,
                    "the crate has neither src/lib.rs nor src/main.rs",
                    "name its root so",
                )),
                Some(file) if !has_header(file) => Some(Finding::new(
                    &file.path,
                    1,
                    "the crate says nothing about itself",
                    "open it with `//!` and its purpose",
                )),
                Some(_) => None,
            }
        })
        .collect()
}

/// `crates/NAME` for its manifest.
fn crate_folder(path: &str) -> Option<&str> {
    let folder = path.strip_suffix("/Cargo.toml")?;
    folder
        .strip_prefix("crates/")
        .filter(|name| !name.contains('/'))
        .map(|_| folder)
}

/// A header has words, not only the marker.
fn has_header(file: &File) -> bool {
    let first = file
        .text
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    first
        .strip_prefix("//!")
        .is_some_and(|words| !words.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[package]\nname = \"x\"\n[lints]\nworkspace = true\n";

    #[test]
    fn a_member_with_lints_of_its_own_is_found() {
        let tree = Tree::of(&[
            ("crates/a/Cargo.toml", MANIFEST),
            (
                "crates/b/Cargo.toml",
                "[package]\n[lints.rust]\nunsafe_code = \"allow\"\n",
            ),
            (
                "crates/c/Cargo.toml",
                "[dependencies]\nworkspace = true\n[lints]\n# workspace = true\n",
            ),
            ("fuzz/Cargo.toml", "[package]\n"),
            ("Cargo.toml", "[workspace]\n"),
        ]);
        let found: Vec<String> = lints_are_inherited(&tree)
            .into_iter()
            .map(|finding| finding.path)
            .collect();
        assert_eq!(found, ["crates/b/Cargo.toml", "crates/c/Cargo.toml"]);
    }

    #[test]
    fn a_crate_without_a_header_is_found() {
        let tree = Tree::of(&[
            ("crates/a/Cargo.toml", MANIFEST),
            ("crates/a/src/lib.rs", "//! What it is for.\n"),
            ("crates/b/Cargo.toml", MANIFEST),
            ("crates/b/src/main.rs", "//!\nfn main() {}\n"),
            ("crates/c/Cargo.toml", MANIFEST),
        ]);
        let found: Vec<String> = crates_have_headers(&tree)
            .into_iter()
            .map(|finding| finding.path)
            .collect();
        assert_eq!(found, ["crates/b/src/main.rs", "crates/c/Cargo.toml"]);
    }
}
