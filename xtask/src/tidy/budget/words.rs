//! Words that are to go: of names, and of comments.

use std::collections::BTreeMap;

use crate::tidy::source::tokens;

/// Parts of names for which the field has other words.
const IDENTIFIERS: &[&str] = &[
    "absent",
    "again",
    "ahead",
    "alarm",
    "announced",
    "apart",
    "aside",
    "bear",
    "bell",
    "birth",
    "bolt",
    "born",
    "bring",
    "bury",
    "calm",
    "carry",
    "catalog",
    "claim",
    "comfort",
    "coming",
    "conceive",
    "credit",
    "crew",
    "crowded",
    "deed",
    "doom",
    "doomed",
    "doubt",
    "early",
    "ends",
    "enlisted",
    "enrolment",
    "errand",
    "fetched",
    "finder",
    "foresee",
    "forerunner",
    "gather",
    "glide",
    "growth",
    "hand",
    "heard",
    "heat",
    "hoard",
    "lacks",
    "lane",
    "lanes",
    "latch",
    "late",
    "ledger",
    "life",
    "lifted",
    "loan",
    "maker",
    "nudge",
    "outgoing",
    "overlay",
    "patience",
    "placer",
    "promise",
    "promises",
    "realm",
    "recruit",
    "relief",
    "relieve",
    "relieved",
    "seat",
    "settle",
    "shape",
    "shelf",
    "sought",
    "spare",
    "spot",
    "stamp",
    "stock",
    "stuck",
    "supplier",
    "surroundings",
    "tally",
    "tidings",
    "told",
    "trail",
    "trails",
    "trunk",
    "turns",
    "unborn",
    "unpromise",
    "weigh",
];

/// Words of comments that make a person of a thread or a function.
const COMMENTS: &[&str] = &["he", "him", "his", "who", "whoever", "whom", "whose"];

/// Columns of a comment line, at most.
const WIDTH: usize = 100;

/// Which parts of names that are to go stand in the code, and how often.
pub(super) fn identifiers(code: &str) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for (token, _) in tokens(code) {
        for part in parts(token) {
            count(IDENTIFIERS, &part, &mut counts);
        }
    }
    counts
}

/// Which words that are to go stand in the comment lines, and how often.
pub(super) fn comments(text: &str) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for line in comment_lines(text) {
        for word in line.split(|c: char| !(c.is_alphanumeric() || c == '_')) {
            count(COMMENTS, &word.to_lowercase(), &mut counts);
        }
    }
    counts
}

/// Comment lines that are too long.
pub(super) fn wide_comments(text: &str) -> usize {
    comment_lines(text)
        .filter(|line| line.chars().count() > WIDTH)
        .count()
}

fn comment_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|line| line.trim_start().starts_with("//"))
}

fn count(list: &[&'static str], word: &str, counts: &mut BTreeMap<&'static str, usize>) {
    if let Some(word) = list.iter().find(|known| **known == word) {
        *counts.entry(word).or_default() += 1;
    }
}

/// The words of a name, in lower case: of `one_two` and of `OneTwo`.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut before = ' ';
    for c in name.chars() {
        let begins = c.is_uppercase() && (before.is_lowercase() || before.is_numeric());
        if c == '_' || begins {
            parts.push(String::new());
        }
        if c != '_' {
            parts
                .last_mut()
                .expect("never empty")
                .extend(c.to_lowercase());
        }
        before = c;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_counted_by_their_parts() {
        let counts = identifiers("fn take_loan(Loan: LoanOf, loans: u8, LOAN_MAX: u8) {}");
        assert_eq!(counts, BTreeMap::from([("loan", 4)]));
    }

    #[test]
    fn words_of_comments_are_whole_and_of_comment_lines() {
        let text =
            "// Who reads? Whoever waits.\nlet who = \"his\";\n    /// The hisses of whom.\n";
        let wanted = BTreeMap::from([("who", 1), ("whoever", 1), ("whom", 1)]);
        assert_eq!(comments(text), wanted);
    }
}
