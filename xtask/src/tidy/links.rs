//! Markdown links that point into the tree must find something there.

use super::Finding;
use super::tree::{File, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files().filter(|file| file.path.ends_with(".md")) {
        for (line, target) in links(&file.text) {
            if let Some(what) = broken(tree, file, &target) {
                let remedy = "correct the link or add what it names";
                findings.push(Finding::new(&file.path, line, what, remedy));
            }
        }
    }
    findings
}

/// Why `target`, found in `file`, leads nowhere; nothing if it is sound or leaves the tree.
fn broken(tree: &Tree, file: &File, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let full = if path.is_empty() {
        Some(file.path.clone())
    } else {
        resolve(&file.path, path)
    };
    let Some(full) = full else {
        return Some(format!("link leaves the tree: {target}"));
    };
    if !tree.holds(&full) {
        return Some(format!("link to nothing: {target}"));
    }
    let page = tree.get(&full).filter(|page| page.path.ends_with(".md"))?;
    let known = anchor.is_empty() || headings(&page.text).any(|heading| heading == anchor);
    (!known).then(|| format!("no heading #{anchor} in {full}"))
}

/// `path` as seen from the folder of `from`; nothing if it climbs out of the tree.
fn resolve(from: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = if path.starts_with('/') {
        Vec::new()
    } else {
        from.rsplit_once('/')
            .map_or(Vec::new(), |(folder, _)| folder.split('/').collect())
    };
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Line numbers and targets of all links of a page.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let line = without_code_spans(line);
        for (at, _) in line.match_indices("](") {
            let rest = &line[at + 2..];
            let end = rest.find([')', ' ']).unwrap_or(rest.len());
            found.push((number, rest[..end].trim_matches(['<', '>']).to_owned()));
        }
        if let Some((_, target)) = line
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]: "))
        {
            let target = target.split_whitespace().next().unwrap_or_default();
            found.push((number, target.trim_matches(['<', '>']).to_owned()));
        }
    }
    found
}

/// The lines outside fenced blocks, counted from 1.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((index + 1, line))
    })
}

/// `line` with everything between backquotes left out.
fn without_code_spans(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    // An odd number of quotes: the last one opens nothing.
    let open = parts.len().is_multiple_of(2);
    let last = parts.len() - 1;
    parts
        .iter()
        .enumerate()
        .filter(|(index, _)| index.is_multiple_of(2) || (open && *index == last))
        .map(|(_, part)| *part)
        .collect::<Vec<_>>()
        .join("``")
}

/// Anchors of the headings of a page, as the usual renderers form them.
fn headings(text: &str) -> impl Iterator<Item = String> + '_ {
    prose(text)
        .filter(|(_, line)| line.starts_with('#'))
        .map(|(_, line)| {
            line.trim_start_matches('#')
                .trim()
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(page: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("docs/page.md", page),
            ("docs/testing.md", "# How we test\n## Seeds, and replay\n"),
            ("README.md", "# Top\n"),
        ]);
        check(&tree)
            .iter()
            .map(|finding| format!("{}: {}", finding.line, finding.what))
            .collect()
    }

    #[test]
    fn a_link_to_a_missing_file_is_found() {
        assert_eq!(
            findings("x\n[a](gone.md) [b](testing.md)\n"),
            ["2: link to nothing: gone.md"]
        );
        assert_eq!(
            findings("[a]: ../gone.md \"title\"\n"),
            ["1: link to nothing: ../gone.md"]
        );
    }

    #[test]
    fn a_link_to_a_missing_heading_is_found() {
        let page = "[a](testing.md#seeds-and-replay) [b](testing.md#speeds) [c](#nowhere)\n";
        assert_eq!(
            findings(page),
            [
                "1: no heading #speeds in docs/testing.md",
                "1: no heading #nowhere in docs/page.md"
            ]
        );
    }

    #[test]
    fn a_link_out_of_the_tree_is_found() {
        assert_eq!(
            findings("[a](../../x.md)\n"),
            ["1: link leaves the tree: ../../x.md"]
        );
    }

    #[test]
    fn links_to_the_world_folders_and_code_are_left_alone() {
        let page = "[a](https://example.org/x.md) [b](../docs) [c](/README.md) `[d](no.md)`\n\
                    ```\n[e](no.md)\n```\n[f](<../README.md> \"t\")\n";
        assert_eq!(findings(page), Vec::<String>::new());
    }
}
