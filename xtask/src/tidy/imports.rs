//! What the files of a crate import from one another.
//!
//! Just enough of Rust's paths: `use` trees and paths in the code that begin with `crate`, `super`
//! or `self`, followed through the `use` of the module that they name. Tests do not count: they may
//! look at anything.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{tokens, without_tests};
use super::tree::{File, Tree};

/// Longer chains of re-exports are given up.
const REEXPORTS_MAX: usize = 8;

/// One import: by this file, from that one, of this name (empty: the module itself).
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Import<'t> {
    pub(super) by: &'t str,
    pub(super) from: &'t str,
    pub(super) name: String,
    /// Where it stands first.
    pub(super) line: usize,
}

/// A module: where it is, and what its `use` items bring into it.
struct Module<'t> {
    path: &'t str,
    used: Vec<Used>,
    inline: Vec<Used>,
}

/// A path as it is written, the name under which it is known, and its line.
struct Used {
    path: Vec<String>,
    alias: String,
    line: usize,
}

/// A crate's modules by their paths.
struct Modules<'t>(BTreeMap<Vec<String>, Module<'t>>);

/// All imports within the crate that lies in `folder` (which ends in a slash), each once.
pub(super) fn within<'t>(tree: &'t Tree, folder: &str) -> Vec<Import<'t>> {
    let modules = Modules(
        tree.rust()
            .filter_map(|file| Some((module_path(&file.path, folder)?, module(file))))
            .collect(),
    );
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for (own, module) in &modules.0 {
        for used in module.used.iter().chain(&module.inline) {
            let Some((from, name)) = modules.resolve(own, &used.path, 0) else {
                continue;
            };
            if from != module.path && seen.insert((module.path, from, name.clone())) {
                found.push(Import {
                    by: module.path,
                    from,
                    name,
                    line: used.line,
                });
            }
        }
    }
    found
}

/// `src/a/b.rs` and `src/a/b/mod.rs` are `[a, b]`, the root is empty; tests are nothing.
pub(super) fn module_path(path: &str, folder: &str) -> Option<Vec<String>> {
    let inner = path.strip_prefix(folder)?.strip_suffix(".rs")?;
    let mut parts: Vec<String> = inner.split('/').map(str::to_owned).collect();
    if parts
        .iter()
        .any(|part| part == "tests" || part.ends_with("_tests"))
    {
        return None;
    }
    match parts.last().map(String::as_str) {
        Some("mod") => drop(parts.pop()),
        Some("lib" | "main") if parts.len() == 1 => drop(parts.pop()),
        _ => {}
    }
    Some(parts)
}

fn module(file: &File) -> Module<'_> {
    let code = without_tests(&file.code);
    let tokens = tokens(&code);
    let (mut used, mut inline) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        let (word, line) = tokens[at];
        let starts = at == 0 || tokens[at - 1].0 != "::";
        match word {
            "use" => at = use_tree(&tokens, at + 1, &[], &mut used),
            "crate" | "super" | "self" if starts && is(&tokens, at + 1, "::") => {
                let visibility = at >= 2 && tokens[at - 1].0 == "in" && tokens[at - 2].0 == "(";
                let mut path = vec![word.to_owned()];
                at += 1;
                while is(&tokens, at, "::") && tokens.get(at + 1).is_some_and(|t| is_name(t.0)) {
                    path.push(tokens[at + 1].0.to_owned());
                    at += 2;
                }
                if !visibility {
                    let alias = String::new();
                    inline.push(Used { path, alias, line });
                }
            }
            _ => at += 1,
        }
    }
    Module {
        path: &file.path,
        used,
        inline,
    }
}

/// Reads one tree of a `use` behind `prefix`; returns the place behind it.
fn use_tree(
    tokens: &[(&str, usize)],
    mut at: usize,
    prefix: &[String],
    used: &mut Vec<Used>,
) -> usize {
    let mut path = prefix.to_vec();
    while let Some(&(word, line)) = tokens.get(at) {
        match word {
            "::" => at += 1,
            "{" => {
                at += 1;
                while at < tokens.len() && !is(tokens, at, "}") {
                    at = use_tree(tokens, at, &path, used);
                    if is(tokens, at, ",") {
                        at += 1;
                    }
                }
                return at + 1;
            }
            "*" => {
                let alias = "*".to_owned();
                used.push(Used { path, alias, line });
                return at + 1;
            }
            name if is_name(name) => {
                path.push(name.to_owned());
                at += 1;
                if !is(tokens, at, "::") {
                    let renamed = is(tokens, at, "as");
                    if path.last().is_some_and(|last| last == "self") {
                        path.pop();
                    }
                    let own = path.last().cloned().unwrap_or_default();
                    let alias = match renamed {
                        true => tokens.get(at + 1).map_or(own, |token| token.0.to_owned()),
                        false => own,
                    };
                    used.push(Used { path, alias, line });
                    return if renamed { at + 2 } else { at };
                }
            }
            _ => return at + 1,
        }
    }
    at
}

impl<'t> Modules<'t> {
    /// The file that has what `path` names, as written in the module `own`, and the name; nothing
    /// if it is another crate's.
    fn resolve(&self, own: &[String], path: &[String], depth: usize) -> Option<(&'t str, String)> {
        let mut at: Vec<String> = own.to_vec();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => {
                at.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|word| word == "super") {
                    at.pop()?;
                    rest = &rest[1..];
                }
            }
            first => {
                at.push(first.to_owned());
                if !self.0.contains_key(&at) {
                    return None;
                }
                rest = &rest[1..];
            }
        }
        while let Some(next) = rest.first() {
            at.push(next.clone());
            if !self.0.contains_key(&at) {
                at.pop();
                break;
            }
            rest = &rest[1..];
        }
        let module = self.0.get(&at)?;
        let Some(name) = rest.first() else {
            return Some((module.path, String::new()));
        };
        // Own names come before those that are passed on: a `use` of its own name is never of the
        // same module.
        let passed_on = module.used.iter().find(|used| used.alias == *name);
        if let Some(used) = passed_on.filter(|_| depth < REEXPORTS_MAX) {
            let mut whole = used.path.clone();
            whole.extend_from_slice(&rest[1..]);
            return self.resolve(&at, &whole, depth + 1);
        }
        Some((module.path, name.clone()))
    }
}

fn is(tokens: &[(&str, usize)], at: usize, word: &str) -> bool {
    tokens.get(at).is_some_and(|token| token.0 == word)
}

fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of(files);
        let shown = |import: &Import<'_>| {
            let name = |path: &str| path.trim_start_matches("c/src/").to_owned();
            let (by, from) = (name(import.by), name(import.from));
            format!("{by}:{} {from} {}", import.line, import.name)
        };
        within(&tree, "c/src/").iter().map(shown).collect()
    }

    #[test]
    fn trees_of_use_and_paths_in_code_are_imports() {
        let found = imports(&[
            (
                "c/src/lib.rs",
                "mod a;\nmod b;\npub use b::Thing;\npub const N: u8 = 0;\n",
            ),
            (
                "c/src/a.rs",
                "use std::fmt;\nuse crate::b::{self, deep::{Deep, Other as O}, Thing};\npub(in crate::b) fn f() { super::b::go(); }\n",
            ),
            ("c/src/b/mod.rs", "pub mod deep;\nuse deep::Deep;\n"),
            ("c/src/b/deep.rs", "use crate::N;\n"),
        ]);
        assert_eq!(
            found,
            [
                "lib.rs:3 b/mod.rs Thing",
                "a.rs:2 b/mod.rs ",
                "a.rs:2 b/deep.rs Deep",
                "a.rs:2 b/deep.rs Other",
                "a.rs:2 b/mod.rs Thing",
                "a.rs:3 b/mod.rs go",
                "b/mod.rs:2 b/deep.rs Deep",
                "b/deep.rs:1 lib.rs N",
            ]
        );
    }

    #[test]
    fn what_is_passed_on_is_imported_from_where_it_is() {
        let found = imports(&[
            ("c/src/lib.rs", "pub use top::Top as Chief;\n"),
            ("c/src/top.rs", "pub struct Top;\n"),
            ("c/src/low.rs", "use crate::Chief;\n"),
        ]);
        assert_eq!(found, ["lib.rs:1 top.rs Top", "low.rs:1 top.rs Top"]);
    }

    #[test]
    fn tests_may_import_what_they_like() {
        let found = imports(&[
            ("c/src/lib.rs", "mod a;\n"),
            (
                "c/src/a.rs",
                "#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n",
            ),
            ("c/src/a/tests.rs", "use crate::b::B;\n"),
            ("c/src/b.rs", "pub struct B;\n"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }
}
