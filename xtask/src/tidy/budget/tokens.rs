//! The tokens of a file, those of tests apart.
//!
//! A token is an identifier, a number, a character or a punctuation mark. A string is two, its
//! quotes. Comments are none.

use crate::tidy::source::{marked, tokens};
use crate::tidy::tree::File;

/// What an item that only tests are built with begins with, behind its attributes.
const ITEMS: [&str; 8] = [
    "mod", "fn", "impl", "use", "static", "const", "struct", "enum",
];

/// A Rust source, without what only tests are built with.
pub(super) struct Source<'t> {
    pub(super) krate: &'t str,
    /// The whole file is one of tests.
    pub(super) is_test: bool,
    /// Comments and literals aside; of tests nothing.
    pub(super) code: String,
    pub(super) tokens: usize,
    pub(super) test_tokens: usize,
}

impl<'t> Source<'t> {
    pub(super) fn of(file: &'t File) -> Self {
        let code = marked(&file.text);
        let all = count(&code);
        let is_test = is_test(file);
        let code = if is_test {
            String::new()
        } else {
            without_test_items(&code)
        };
        let product = count(&code);
        Self {
            krate: krate(&file.path),
            is_test,
            code,
            tokens: product,
            test_tokens: all - product,
        }
    }

    /// How often an identifier stands in the code.
    pub(super) fn words(&self, word: &str) -> usize {
        tokens(&self.code)
            .iter()
            .filter(|(token, _)| *token == word)
            .count()
    }

    /// How often a field or method of this name is used.
    pub(super) fn reads_of(&self, name: &str) -> usize {
        let tokens = tokens(&self.code);
        let uses = tokens
            .windows(2)
            .filter(|pair| pair[0].0 == "." && pair[1].0 == name);
        uses.count()
    }

    /// Whether an `impl` of methods of this type stands in the file.
    pub(super) fn implements(&self, name: &str) -> bool {
        inherent_impls(&self.code)
            .iter()
            .any(|(found, _)| found == name)
    }
}

/// How many tokens marked code has: a number takes its dots with it.
fn count(code: &str) -> usize {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut count = 0;
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let behind = match first {
            '0'..='9' => rest.trim_start_matches(|c: char| is_word(c) || c == '.'),
            c if is_word(c) => rest.trim_start_matches(is_word),
            c => &rest[c.len_utf8()..],
        };
        count += 1;
        rest = behind.trim_start();
    }
    count
}

/// Types with an `impl` of their own methods in the code, and the place of its `{` in the tokens.
pub(super) fn inherent_impls(code: &str) -> Vec<(String, usize)> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let starts = at == 0 || matches!(tokens[at - 1].0, "}" | ";" | "]" | "{" | "unsafe");
        if tokens[at].0 != "impl" || !starts {
            continue;
        }
        let Some(open) = (at..tokens.len()).find(|&open| tokens[open].0 == "{") else {
            continue;
        };
        let mut head = &tokens[at + 1..open];
        if head.first().is_some_and(|token| token.0 == "<") {
            let mut depth = 0_usize;
            let behind = head.iter().position(|token| {
                match token.0 {
                    "<" => depth += 1,
                    ">" => depth -= 1,
                    _ => {}
                }
                depth == 0
            });
            head = &head[behind.map_or(head.len(), |end| end + 1)..];
        }
        let of_trait = head.iter().any(|token| token.0 == "for");
        if let Some((name, _)) = head.first().filter(|_| !of_trait) {
            found.push(((*name).to_owned(), open));
        }
    }
    found
}

/// The crate that a file belongs to.
pub(super) fn krate(path: &str) -> &str {
    let inner = path.strip_prefix("crates/").unwrap_or(path);
    inner.split('/').next().unwrap_or(inner)
}

/// Whether all of a file is for tests.
pub(super) fn is_test(file: &File) -> bool {
    let folder = |name: &str| file.path.contains(&format!("/{name}/"));
    let name = file.name();
    ["tests", "benches", "examples"].into_iter().any(folder)
        || name.ends_with("test.rs")
        || name.ends_with("tests.rs")
        || krate(&file.path) == "fuzz"
}

/// The code without the items that `#[cfg(test)]` or `#[cfg(all(test, …))]` stands before.
pub(super) fn without_test_items(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find("#[cfg(") {
        let (before, item) = rest.split_at(at);
        kept += before;
        match test_item(item) {
            Some(len) => rest = &item[len..],
            None => {
                kept += "#";
                rest = &item[1..];
            }
        }
    }
    kept + rest
}

/// The length of the test item that begins here with its first attribute.
fn test_item(text: &str) -> Option<usize> {
    let condition = text.strip_prefix("#[cfg(")?;
    let condition = condition.strip_prefix("all(").unwrap_or(condition);
    let behind = condition.strip_prefix("test")?;
    if behind.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let mut rest = text;
    while rest.starts_with("#[") {
        rest = rest[rest.find(']')? + 1..].trim_start();
    }
    if let Some(behind) = rest.strip_prefix("pub") {
        rest = match behind.strip_prefix('(') {
            Some(inside) => inside[inside.find(')')? + 1..].trim_start(),
            None => behind.trim_start(),
        };
    }
    let word = rest
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .next()?;
    if !ITEMS.contains(&word) {
        return None;
    }
    let begin = text.len() - rest.len();
    let open = begin + rest.find(['{', ';'])?;
    if text[open..].starts_with(';') {
        return Some(open + 1);
    }
    let mut depth = 0_usize;
    for (at, c) in text[open..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(open + at + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_count_without_their_inside_and_comments_do_not() {
        let code = marked("let a = f::g(\"b c\", 'd', 0x1f, 0..5); // e");
        assert_eq!(count(&code), 18);
        assert_eq!(count(&marked("b\"one two\" r#\"three\"#")), 4);
    }

    #[test]
    fn items_of_tests_are_taken_out() {
        let code = "fn a() {}\n#[cfg(test)]\n#[path = \"x\"]\nmod tests { fn b() {} }\nfn c() {}\n";
        assert_eq!(without_test_items(code).matches("fn").count(), 2);
        assert_eq!(
            without_test_items("#[cfg(test)]\nmod x;\nfn c() {}"),
            "\nfn c() {}"
        );
        let kept = "#[cfg(loom)]\nmod x;";
        assert_eq!(without_test_items(kept), kept);
    }

    #[test]
    fn an_impl_of_a_trait_is_not_one_of_the_type() {
        let code = "impl Core { }\nimpl<T: F<A>> Other<T> { }\nimpl Drop for Inner { }";
        let names: Vec<String> = inherent_impls(code)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["Core", "Other"]);
    }
}
