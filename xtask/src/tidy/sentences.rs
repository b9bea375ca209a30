//! Sentences of the pages that users read: a long one is two.

use super::Finding;
use super::links::prose;
use super::tree::Tree;

/// Words of a sentence.
const WORDS_MAX: usize = 30;

/// The README and the pages of the book.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let book = |path: &str| path.starts_with("docs/book/") && path.strip_suffix(".md").is_some();
    let pages = tree
        .files()
        .filter(|file| file.path == "README.md" || book(&file.path));
    let long = |(line, words): (usize, usize)| (words > WORDS_MAX).then_some((line, words));
    pages
        .flat_map(|page| {
            sentences(&page.text)
                .into_iter()
                .filter_map(long)
                .map(|(line, words)| {
                    let what = format!("a sentence of {words} words, the limit is {WORDS_MAX}");
                    Finding::new(&page.path, line, what, "make two of it")
                })
        })
        .collect()
}

/// The line and the number of words of each sentence, which ends with its item, cell or paragraph.
fn sentences(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut open = (0, 0);
    let mut last = 0;
    for (number, line) in prose(text) {
        let line = line.trim();
        let block = line.is_empty() || line.starts_with(['#', '|', '>']) || is_item(line);
        if block || number != last + 1 {
            found.push(std::mem::take(&mut open));
        }
        last = number;
        for cell in line.split('|') {
            for word in cell.split_whitespace() {
                if word.contains(char::is_alphanumeric) {
                    open = (if open.1 == 0 { number } else { open.0 }, open.1 + 1);
                }
                let bare = word.trim_end_matches([')', ']', '"', '*', '_', '`']);
                if bare
                    .rfind(['.', '!', '?'])
                    .is_some_and(|at| at + 1 == bare.len())
                {
                    found.push(std::mem::take(&mut open));
                }
            }
            if line.starts_with('|') {
                found.push(std::mem::take(&mut open));
            }
        }
    }
    found.push(open);
    found.retain(|(_, words)| *words > 0);
    found
}

/// Does the line begin an item of a list?
fn is_item(line: &str) -> bool {
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ")
        || line.starts_with("* ")
        || numbered.len() < line.len() && numbered.starts_with(". ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_sentence_of_the_book_is_found_at_the_line_where_it_begins() {
        let long = format!("# Title\nShort.\n{}end.\n", "word ".repeat(WORDS_MAX));
        let tree = Tree::of(&[("docs/book/page.md", &long), ("docs/other.md", &long)]);
        let findings = check(&tree);
        assert_eq!(findings.len(), 1);
        assert_eq!(
            (findings[0].path.as_str(), findings[0].line),
            ("docs/book/page.md", 3)
        );
    }

    #[test]
    fn a_sentence_stays_within_its_item_cell_or_paragraph() {
        let text = "one two\n\nthree\n- four\n  five\n1. six\n| seven | eight |\n```\ncode of four words\n```\nnine (ten.) eleven\n";
        let counts: Vec<_> = sentences(text)
            .into_iter()
            .map(|(_, words)| words)
            .collect();
        assert_eq!(counts, [2, 1, 2, 1, 1, 1, 1, 2, 1]);
    }
}
