//! File length: a file that grows past the limit holds more than one concept.

use super::Finding;
use super::source::lines_without_tests;
use super::tree::{File, Tree};

/// Lines without the tests module.
const LINES_MAX: usize = 800;

/// Files that may be longer, each with the reason.
const EXCEPTIONS: [(&str, &str); 0] = [];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .filter(|file| EXCEPTIONS.iter().all(|(path, _)| *path != file.path))
        .filter_map(|file| {
            let lines = length(file)?;
            (lines > LINES_MAX).then(|| {
                Finding::new(
                    &file.path,
                    LINES_MAX + 1,
                    format!("{lines} lines without tests, the limit is {LINES_MAX}"),
                    "split it by noun, or name it with a reason in xtask/src/tidy/length.rs",
                )
            })
        })
        .collect()
}

/// Lines that count; nothing for the sibling file that holds a module's tests.
fn length(file: &File) -> Option<usize> {
    (file.name() != "tests.rs").then(|| lines_without_tests(&file.code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_over_the_limit_is_found_and_one_at_the_limit_is_not() {
        let long = "fn a() {}\n".repeat(LINES_MAX + 1);
        let full = "fn a() {}\n".repeat(LINES_MAX);
        let tree = Tree::of(&[
            ("crates/x/src/long.rs", &long),
            ("crates/x/src/full.rs", &full),
        ]);
        let findings = check(&tree);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].path, "crates/x/src/long.rs");
        assert!(findings[0].what.starts_with("801 lines"), "{}", findings[0]);
    }

    #[test]
    fn tests_do_not_make_a_file_long() {
        let tests = "    fn t() {}\n".repeat(900);
        let inline = format!("fn a() {{}}\n#[cfg(test)]\nmod tests {{\n{tests}}}\n");
        let tree = Tree::of(&[("a.rs", &inline), ("a/tests.rs", &tests)]);
        assert_eq!(check(&tree), []);
    }
}
