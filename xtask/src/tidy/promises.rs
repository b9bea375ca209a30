//! Names in two pages must exist: tests in that on invariants, functions in that on internals.

use std::collections::HashSet;

use super::Finding;
use super::tree::Tree;

const PAGE: &str = "docs/invariants.md";

/// The page that names functions, as `function()` or `Type::function()`.
const INTERNALS: &str = "docs/internals.md";

/// The part of the page with tables that name tests: between backquotes, in their last column.
const PART: &str = "## What must hold";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let functions: HashSet<&str> = tree.rust().flat_map(|file| functions(&file.code)).collect();
    let mut findings = Vec::new();
    if let Some(page) = tree.get(PAGE) {
        let missing = promised(&page.text).filter(|(_, name)| !functions.contains(name));
        findings.extend(missing.map(|(line, name)| {
            let what = format!("no test is called {name}");
            Finding::new(
                PAGE,
                line,
                what,
                "name the one that holds this, or write it",
            )
        }));
    }
    if let Some(page) = tree.get(INTERNALS) {
        let missing = named(&page.text).filter(|(_, name)| !functions.contains(name));
        findings.extend(missing.map(|(line, name)| {
            let what = format!("no function is called {name}");
            Finding::new(
                INTERNALS,
                line,
                what,
                "name the function that does this now",
            )
        }));
    }
    findings
}

/// The functions that a source defines.
fn functions(code: &str) -> impl Iterator<Item = &str> {
    code.match_indices("fn ").filter_map(|(at, word)| {
        let (name, _) = code[at + word.len()..].split_once(['(', '<'])?;
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

/// Line numbers and names of the functions that a page names, without their types.
fn named(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().flat_map(|(index, line)| {
        let spans = line.split('`').skip(1).step_by(2);
        spans.filter_map(move |span| {
            let path = span.strip_suffix("()")?;
            let name = path.rsplit_once("::").map_or(path, |(_, name)| name);
            Some((index + 1, name))
        })
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

    #[test]
    fn a_function_that_the_page_on_internals_names_and_is_not_there_is_found() {
        let page = "# Life\n`Core::is_there()` calls `is_generic()`, `is_gone()` and `a_field`.\n";
        let code = "fn is_there() {}\nfn is_generic<T>(value: T) {}\n";
        let tree = Tree::of(&[(INTERNALS, page), ("crates/x/src/lib.rs", code)]);
        let found = check(&tree);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].line, &*found[0].what),
            (2, "no function is called is_gone")
        );
    }
}
