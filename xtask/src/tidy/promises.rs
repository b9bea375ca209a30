//! The tests that the page on testing promises must be there.

use std::collections::HashSet;

use super::Finding;
use super::tree::Tree;

const PAGE: &str = "docs/testing.md";

/// The part of the page whose tables name tests: what stands between backquotes in their last
/// column.
const PART: &str = "## What must hold";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.get(PAGE) else {
        return Vec::new();
    };
    let functions: HashSet<&str> = tree.rust().flat_map(|file| functions(&file.code)).collect();
    let promised = promised(&page.text);
    let missing = promised.filter(|(_, name)| !functions.contains(name));
    missing
        .map(|(line, name)| {
            let what = format!("no test is called {name}");
            Finding::new(
                PAGE,
                line,
                what,
                "name the one that holds this, or write it",
            )
        })
        .collect()
}

/// The functions that a source defines.
fn functions(code: &str) -> impl Iterator<Item = &str> {
    code.match_indices("fn ").filter_map(|(at, word)| {
        let (name, _) = code[at + word.len()..].split_once('(')?;
        Some(name)
    })
}

/// Line numbers and names of the tests that the page promises.
fn promised(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate();
    let part = lines.skip_while(|(_, line)| *line != PART).skip(1);
    let part = part.take_while(|(_, line)| !line.starts_with("## "));
    part.filter_map(|(index, line)| {
        let (_, tests) = line.strip_suffix('|')?.rsplit_once('|')?;
        Some((index + 1, tests))
    })
    .flat_map(|(line, tests)| {
        tests
            .split('`')
            .skip(1)
            .step_by(2)
            .map(move |name| (line, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promised_test_that_is_not_there_is_found() {
        let page = "# Page\n| x | `elsewhere` |\n\n## What must hold\n\n| | `of no row`\n\
                    | I1 `a` | `is_there`, `is_gone` |\n| I2 | cannot be |\n## Next\n| | `c` |\n";
        let tree = Tree::of(&[
            (PAGE, page),
            (
                "crates/x/tests/t.rs",
                "#[test]\nfn is_there() {}\n// fn is_gone() {}\n",
            ),
        ]);
        let found: Vec<_> = check(&tree).into_iter().collect();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].line, &*found[0].what),
            (7, "no test is called is_gone")
        );
    }
}
