//! Rules on single lines: words that may not stand where they stand.

use super::Finding;
use super::source::has_word;
use super::tree::{File, Tree};

/// Where the unsafe floor is: what these paths begin with.
const UNSAFE_FLOOR: [&str; 4] = [
    "crates/sync/",
    "crates/dirindex/",
    "crates/cache/src/frame",
    "crates/cache/tests/frame_model/",
];

/// Elsewhere, calls into the system gather in files of this name.
const UNSAFE_FILE: &str = "sys.rs";

/// Macros that leave a hole.
const HOLES: [&str; 2] = ["todo!", "unimplemented!"];

/// `unsafe` stays on the floor.
pub(super) fn confined_unsafe(tree: &Tree) -> Vec<Finding> {
    let is_floor = |file: &File| UNSAFE_FLOOR.iter().any(|path| file.path.starts_with(path));
    let free = |file: &&File| is_floor(file) || file.name() == UNSAFE_FILE;
    in_code(tree.rust().filter(|file| !free(file)), |line| {
        has_word(line, "unsafe").then(|| {
            (
                "`unsafe` outside the unsafe floor".to_owned(),
                "use a safe wrapper, or move it to the floor or a sys.rs",
            )
        })
    })
}

/// Nothing unfinished is committed.
pub(super) fn unfinished_code(tree: &Tree) -> Vec<Finding> {
    in_code(tree.rust(), |line| {
        let hole = HOLES.iter().find(|hole| {
            line.match_indices(*hole)
                .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
        })?;
        Some((
            format!("unfinished code: {hole}"),
            "write it or open an issue and return an error",
        ))
    })
}

/// A test that does not run says why.
pub(super) fn ignored_tests(tree: &Tree) -> Vec<Finding> {
    in_code(tree.rust(), |line| {
        line.split_whitespace()
            .collect::<String>()
            .contains("#[ignore]")
            .then(|| {
                (
                    "a test is ignored without a reason".to_owned(),
                    "write #[ignore = \"why\"]",
                )
            })
    })
}

/// No blanks at the end of a line, in any text.
pub(super) fn trailing_whitespace(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files() {
        for (index, line) in file.text.split('\n').enumerate() {
            if line.ends_with([' ', '\t', '\r']) {
                findings.push(Finding::new(
                    &file.path,
                    index + 1,
                    "whitespace at the end of the line",
                    "remove it",
                ));
            }
        }
    }
    findings
}

/// Applies `rule` to every line of code, comments and literals blanked.
fn in_code<'t>(
    files: impl Iterator<Item = &'t File>,
    rule: impl Fn(&str) -> Option<(String, &'static str)>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        for (index, line) in file.code.lines().enumerate() {
            if let Some((what, remedy)) = rule(line) {
                findings.push(Finding::new(&file.path, index + 1, what, remedy));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(findings: &[Finding]) -> Vec<String> {
        findings
            .iter()
            .map(|finding| format!("{}:{}", finding.path, finding.line))
            .collect()
    }

    #[test]
    fn unsafe_off_the_floor_is_found() {
        let code = "// unsafe\n#![expect(unsafe_code, reason = \"unsafe\")]\nunsafe { x() }\n";
        let tree = Tree::of(&[
            ("crates/sync/src/lib.rs", code),
            ("crates/fuse/src/sys.rs", code),
            ("crates/fuse/src/system.rs", code),
        ]);
        assert_eq!(
            places(&confined_unsafe(&tree)),
            ["crates/fuse/src/system.rs:3"]
        );
    }

    #[test]
    fn holes_are_found_and_words_about_them_are_not() {
        let code =
            "// todo!\nlet a = \"todo!()\";\ntodo!();\nunimplemented!(\"x\");\nmy_todo!();\n";
        assert_eq!(
            places(&unfinished_code(&Tree::of(&[("a.rs", code)]))),
            ["a.rs:3", "a.rs:4"]
        );
    }

    #[test]
    fn a_test_ignored_without_a_reason_is_found() {
        let code = "#[ignore]\n#[ignore = \"takes an hour\"]\n// #[ignore]\n";
        assert_eq!(
            places(&ignored_tests(&Tree::of(&[("a.rs", code)]))),
            ["a.rs:1"]
        );
    }

    #[test]
    fn whitespace_at_the_end_of_a_line_is_found() {
        let tree = Tree::of(&[("a.md", "a \nb\n"), ("justfile", "x:\n\t\n")]);
        assert_eq!(
            places(&trailing_whitespace(&tree)),
            ["a.md:1", "justfile:2"]
        );
    }
}
