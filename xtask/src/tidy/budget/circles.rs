//! Files of a crate that stand in a circle, by their imports and by calls of methods.
//!
//! A call of a method needs no import. If only one method of the crate has its name, a call leads
//! from the caller's file to the file of the method.

use std::collections::{BTreeMap, BTreeSet};

use super::tokens::{inherent_impls, is_test, krate, without_test_items};
use crate::tidy::imports;
use crate::tidy::source::tokens;
use crate::tidy::tree::Tree;

type Edges<'t> = BTreeSet<(&'t str, &'t str)>;

/// Names that methods of the standard library have as well: a call of one leads to no file.
const OF_STD: &str = "clear copy count drain entry extend filter find finish get get_mut insert \
    is_empty iter iter_mut join kind last len next push read remove replace resize retain set_len \
    take truncate write";

/// Each crate with its imports, and with its imports and calls.
fn edges(tree: &Tree) -> impl Iterator<Item = (&str, [Edges<'_>; 2])> {
    let sources = tree.rust().filter(|file| file.path.starts_with("crates/"));
    let crates: BTreeSet<&str> = sources.map(|file| krate(&file.path)).collect();
    crates.into_iter().map(|name| {
        let folder = format!("crates/{name}/src/");
        let imports = imports::within(tree, &folder);
        let imports: Edges<'_> = imports.iter().map(|one| (one.by, one.from)).collect();
        let all = calls(tree, &folder).union(&imports).copied().collect();
        (name, [imports, all])
    })
}

/// For each crate: its files in circles of imports, and those in circles of imports and calls.
pub(super) fn files(tree: &Tree) -> Vec<(&str, [usize; 2])> {
    let in_circles = |edges: Edges<'_>| {
        let files: BTreeSet<&str> = edges.iter().map(|edge| edge.0).collect();
        let circling = files
            .iter()
            .filter(|file| reached(&edges, file).contains(*file));
        circling.count()
    };
    edges(tree)
        .map(|(name, edges)| (name, edges.map(in_circles)))
        .collect()
}

/// Each import and call between two files of one circle, a line each.
pub(in crate::tidy) fn list(tree: &Tree) -> String {
    let mut text = String::new();
    for (_, [imports, all]) in edges(tree) {
        for edge in all
            .iter()
            .filter(|edge| reached(&all, edge.1).contains(edge.0))
        {
            let how = if imports.contains(edge) {
                "imports"
            } else {
                "calls"
            };
            text += &format!("{} {how} {}\n", edge.0, edge.1);
        }
    }
    text
}

/// Which file calls a method of which other file.
fn calls<'t>(tree: &'t Tree, folder: &str) -> Edges<'t> {
    let sources: Vec<(&str, String)> = tree
        .rust()
        .filter(|file| file.path.starts_with(folder) && !is_test(file))
        .map(|file| (file.path.as_str(), without_test_items(&file.code)))
        .collect();
    let mut homes: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let mut named: BTreeMap<String, Vec<(&str, String)>> = BTreeMap::new();
    for (path, code) in &sources {
        for (kind, open) in inherent_impls(code) {
            homes.entry(kind.clone()).or_default().insert(path);
            for name in methods(code, open) {
                named.entry(name).or_default().push((path, kind.clone()));
            }
        }
    }
    named.retain(|name, _| OF_STD.split(' ').all(|of_std| of_std != name));
    let mut edges = Edges::new();
    for (path, code) in &sources {
        let tokens = tokens(code);
        for call in tokens.windows(3) {
            let is_call = call[0].0 == "." && matches!(call[2].0, "(" | "::");
            let Some([(home, kind)]) = named.get(call[1].0).map(Vec::as_slice).filter(|_| is_call)
            else {
                continue;
            };
            if home != path && homes[kind].len() > 1 {
                edges.insert((path, home));
            }
        }
    }
    edges
}

/// Names of the functions in the block that the token at `open` begins.
fn methods(code: &str, open: usize) -> Vec<String> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    let mut depth = 0_usize;
    for at in open..tokens.len() {
        match tokens[at].0 {
            "{" => depth += 1,
            "}" => depth -= 1,
            "fn" if depth == 1 => found.extend(tokens.get(at + 1).map(|name| name.0.to_owned())),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    found
}

/// The files that one leads to.
fn reached<'t>(edges: &Edges<'t>, file: &'t str) -> BTreeSet<&'t str> {
    let mut seen = BTreeSet::new();
    let mut left = vec![file];
    while let Some(at) = left.pop() {
        for (_, next) in edges.range((at, "")..).take_while(|edge| edge.0 == at) {
            if seen.insert(*next) {
                left.push(next);
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_of_a_method_closes_a_circle_that_imports_do_not_show() {
        let tree = Tree::of(&[
            ("crates/c/src/lib.rs", "mod a;\nmod b;\npub struct T;\n"),
            (
                "crates/c/src/a.rs",
                "use crate::b::go;\nimpl T { fn one(&self) { go() } }\n",
            ),
            (
                "crates/c/src/b.rs",
                "impl T { fn two(&self) { self.one() } }\npub fn go() {}\n",
            ),
        ]);
        assert_eq!(files(&tree), [("c", [0, 2])]);
        let wanted = "\
crates/c/src/a.rs imports crates/c/src/b.rs
crates/c/src/b.rs calls crates/c/src/a.rs
";
        assert_eq!(list(&tree), wanted);
    }

    #[test]
    fn a_name_that_two_methods_have_leads_nowhere() {
        let tree = Tree::of(&[
            (
                "crates/c/src/a.rs",
                "use crate::b::go;\nimpl T { fn one(&self) { go() } }\n",
            ),
            (
                "crates/c/src/b.rs",
                "impl T { fn two(&self) { self.one() } }\npub fn go() {}\n",
            ),
            ("crates/c/src/d.rs", "impl U { fn one(&self) {} }\n"),
        ]);
        assert_eq!(files(&tree), [("c", [0, 0])]);
    }
}
