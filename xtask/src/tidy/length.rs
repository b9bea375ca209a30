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

/// The spread of lengths, for the eye.
pub(super) fn summary(tree: &Tree) -> String {
    let mut lengths: Vec<(usize, &str)> = tree
        .rust()
        .filter_map(|file| Some((length(file)?, file.path.as_str())))
        .collect();
    lengths.sort_unstable();
    let Some((longest, path)) = lengths.last() else {
        return "lengths: no Rust files".to_owned();
    };
    let rank = |percent: usize| lengths[(lengths.len() * percent).div_ceil(100) - 1].0;
    format!(
        "lengths without tests: {} Rust files, median {}, p90 {} (aim: under 500), longest {longest} ({path})",
        lengths.len(),
        rank(50),
        rank(90),
    )
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

    #[test]
    fn the_summary_ranks_from_the_longest_down() {
        let files: Vec<(String, String)> = (1..=10)
            .map(|n| (format!("f{n}.rs"), "x\n".repeat(n * 10)))
            .collect();
        let borrowed: Vec<(&str, &str)> = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        let line = summary(&Tree::of(&borrowed));
        assert!(line.contains("10 Rust files, median 50, p90 90"), "{line}");
        assert!(line.ends_with("longest 100 (f10.rs)"), "{line}");
    }
}
