//! Names that say nothing: of files, and of tests.

use super::Finding;
use super::tree::Tree;

/// Stems that gather whatever has no home.
const VAGUE: [&str; 7] = [
    "common",
    "helpers",
    "misc",
    "stuff",
    "util",
    "utilities",
    "utils",
];

/// Stems that end in a digit which is part of the word.
const WITH_DIGIT: [&str; 1] = ["utf8"];

/// No source file or folder is called `utils` or `manager2`.
pub(super) fn files(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .filter_map(|file| {
            let path = file.path.strip_suffix(".rs").unwrap_or(&file.path);
            let stem = path
                .split('/')
                .find(|stem| VAGUE.contains(stem) || is_numbered(stem))?;
            Some(Finding::new(
                &file.path,
                1,
                format!("`{stem}` does not name a concept"),
                "split it by noun and name the nouns",
            ))
        })
        .collect()
}

/// A word with one digit behind it, from 2 up: a second attempt at the first.
fn is_numbered(stem: &str) -> bool {
    let word = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &stem[word.len()..];
    digits.len() == 1 && digits >= "2" && !word.is_empty() && !WITH_DIGIT.contains(&stem)
}

/// Names of tests are claims; every test is a test.
pub(super) fn tests(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let lines: Vec<&str> = file.code.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let Some(name) = test_prefixed_name(line) else {
                continue;
            };
            let attributes = lines[..index].iter().rev().take_while(|above| {
                let above = above.trim();
                above.starts_with("#[") || above.is_empty() || above.ends_with(")]")
            });
            if attributes
                .into_iter()
                .any(|above| above.trim().ends_with("test]"))
            {
                findings.push(Finding::new(
                    &file.path,
                    index + 1,
                    format!("`{name}` has the prefix `test_`"),
                    "name it after what it claims",
                ));
            }
        }
    }
    findings
}

fn test_prefixed_name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn test_")?;
    let whole = before.is_empty() || before.ends_with(' ');
    let length = after
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(after.len());
    let start = before.len() + "fn ".len();
    whole.then(|| &line[start..start + "test_".len() + length])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vague_and_numbered_files_are_found() {
        let tree = Tree::of(&[
            ("crates/a/src/utils.rs", ""),
            ("crates/a/src/helpers/open.rs", ""),
            ("crates/a/src/common.rs", ""),
            ("crates/a/src/manager2.rs", ""),
            ("crates/a/src/utf8.rs", ""),
            ("crates/a/src/crc32.rs", ""),
            ("crates/a/src/manager.rs", ""),
            ("docs/common.md", ""),
        ]);
        let found: Vec<String> = files(&tree)
            .into_iter()
            .map(|finding| finding.path)
            .collect();
        assert_eq!(
            found,
            [
                "crates/a/src/common.rs",
                "crates/a/src/helpers/open.rs",
                "crates/a/src/manager2.rs",
                "crates/a/src/utils.rs",
            ]
        );
    }

    #[test]
    fn a_test_with_the_prefix_is_found_and_an_ordinary_function_is_not() {
        let text = "#[test]\n#[should_panic]\nfn test_it() {}\n\nfn test_bit(word: u64) {}\n";
        let findings = tests(&Tree::of(&[("a.rs", text)]));
        assert_eq!(findings.len(), 1);
        assert_eq!(
            (findings[0].line, findings[0].what.as_str()),
            (3, "`test_it` has the prefix `test_`")
        );
    }
}
