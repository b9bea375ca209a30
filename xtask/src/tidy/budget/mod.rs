//! `cargo xtask budget`: what is counted in the tree, and how much of it there may be.
//!
//! The numbers stand in `xtask/budget.toml` and only fall: `--write` lowers them to what is counted
//! and raises none. A count above its number is a finding of `cargo xtask tidy`. A number that has
//! to rise is raised by hand, and the commit says why.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use super::Finding;
use super::rooms;
use super::tree::Tree;

pub(super) mod circles;
mod tokens;
mod words;

const PAGE: &str = "xtask/budget.toml";
const HEAD: &str = "\
# How much there may be of what `cargo xtask budget` counts. The numbers only fall: `cargo xtask budget --write`
# lowers them. Tokens are identifiers, literals and punctuation marks, without comments and tests.
";

/// Counts by section and name.
type Counts = BTreeMap<(String, String), usize>;

/// Prints what is counted beside what is allowed; with `write`, lowers the numbers first.
pub(super) fn run(root: &Path, tree: &Tree, write: bool) -> Result<ExitCode> {
    let counted = count(root, tree)?;
    let mut allowed = match tree.get(PAGE) {
        Some(file) => parse(&file.text)?,
        None => counted.clone(),
    };
    if write {
        allowed.retain(|key, most| {
            *most = counted.get(key).map_or(0, |count| *count.min(most));
            *most > 0
        });
        fs::write(root.join(PAGE), page(&allowed)).context(PAGE)?;
    }
    for (key, count) in &counted {
        let most = allowed.get(key).copied().unwrap_or(0);
        let word = if *count > most { "  above" } else { "" };
        println!("{:<18}{:<20}{count:>8} / {most:>7}{word}", key.0, key.1);
    }
    let above = compare(&counted, &allowed).len();
    println!("budget: {above} counts above what is allowed");
    Ok(match above {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Counts above their numbers.
pub(super) fn check(root: &Path, tree: &Tree) -> Result<Vec<Finding>> {
    let allowed = parse(tree.get(PAGE).map_or("", |file| file.text.as_str()))?;
    Ok(compare(&count(root, tree)?, &allowed))
}

/// What has no number may not be there.
fn compare(counted: &Counts, allowed: &Counts) -> Vec<Finding> {
    let beside = counted
        .iter()
        .map(|(key, &count)| (key, count, allowed.get(key).copied().unwrap_or(0)));
    let above = beside.filter(|&(_, count, most)| count > most);
    above
        .map(|(key, count, most)| {
            let what = format!("{} {}: {count}, allowed are {most}", key.0, key.1);
            Finding::new(
                PAGE,
                1,
                what,
                "`cargo xtask budget` shows all counts; take something out",
            )
        })
        .collect()
}

/// Everything that has a number.
fn count(root: &Path, tree: &Tree) -> Result<Counts> {
    let mut counts = Counts::new();
    let mut add = |section: &str, name: &str, count: usize| {
        *counts
            .entry((section.to_owned(), name.to_owned()))
            .or_default() += count;
    };
    for file in tree.rust() {
        let source = tokens::Source::of(file);
        let krate = source.krate;
        match source.is_test {
            _ if krate == "testkit" => add("tokens", krate, source.tokens + source.test_tokens),
            true => add("tokens", "tests", source.test_tokens),
            false => {
                add("tokens", krate, source.tokens);
                add("tokens", "tests", source.test_tokens);
            }
        }
        if source.is_test {
            continue;
        }
        add("unsafe", krate, source.words("unsafe"));
        add(
            "files with",
            "impl Core",
            usize::from(source.implements("Core")),
        );
        add(
            "files with",
            "impl Inner",
            usize::from(source.implements("Inner")),
        );
        add("reads of", "pinned", source.reads_of("pinned"));
        add(
            "comment lines",
            "over 100 columns",
            words::wide_comments(&file.text),
        );
        for (word, count) in words::identifiers(&source.code) {
            add("identifiers", word, count);
        }
        for (word, count) in words::comments(&file.text) {
            add("comments", word, count);
        }
    }
    for (krate, [in_imports, in_calls]) in circles::files(tree) {
        add("files in circles", &format!("{krate} imports"), in_imports);
        add("files in circles", &format!("{krate} calls"), in_calls);
    }
    for (name, upward) in rooms::counts(tree) {
        add("imports upwards", name, upward);
    }
    add("dependencies", "holdfast-cli", dependencies(root)?);
    counts.retain(|_, count| *count > 0);
    Ok(counts)
}

/// Packages that the shipped program is built from, those of the workspace included.
fn dependencies(root: &Path) -> Result<usize> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--package", "holdfast-cli", "--edges", "normal"])
        .args(["--prefix", "none", "--no-dedupe"])
        .current_dir(root)
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!("cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    }
    let listing = String::from_utf8(output.stdout).context("cargo tree is no text")?;
    Ok(listing.lines().collect::<BTreeSet<_>>().len())
}

/// Sections in brackets, below each of them lines `"name" = number`.
fn parse(text: &str) -> Result<Counts> {
    let mut counts = Counts::new();
    let mut section = String::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            section = name.trim_matches('"').to_owned();
            continue;
        }
        let (name, number) = line
            .split_once('=')
            .with_context(|| format!("{PAGE}: {line}"))?;
        let number = number
            .trim()
            .parse()
            .with_context(|| format!("{PAGE}: {line}"))?;
        let name = name.trim().trim_matches('"').to_owned();
        counts.insert((section.clone(), name), number);
    }
    Ok(counts)
}

fn page(counts: &Counts) -> String {
    let mut text = HEAD.to_owned();
    let mut before = "";
    for ((section, name), count) in counts {
        if section != before {
            let _ = write!(text, "\n[\"{section}\"]\n");
            before = section;
        }
        let _ = writeln!(text, "\"{name}\" = {count}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(list: &[(&str, &str, usize)]) -> Counts {
        let entry = |&(section, name, count): &(&str, &str, usize)| {
            ((section.to_owned(), name.to_owned()), count)
        };
        list.iter().map(entry).collect()
    }

    #[test]
    fn a_page_is_read_as_it_was_written() -> Result<()> {
        let numbers = counts(&[("tokens", "core", 7), ("reads of", "pinned", 1)]);
        assert_eq!(parse(&page(&numbers))?, numbers);
        assert!(parse("core: 7\n").is_err());
        Ok(())
    }

    #[test]
    fn a_count_above_its_number_or_without_one_is_a_finding() {
        let allowed = counts(&[("tokens", "core", 7), ("tokens", "sync", 7)]);
        let counted = counts(&[
            ("tokens", "core", 8),
            ("tokens", "sync", 6),
            ("unsafe", "core", 1),
        ]);
        let found = compare(&counted, &allowed);
        let found: Vec<&str> = found.iter().map(|finding| finding.what.as_str()).collect();
        let wanted = [
            "tokens core: 8, allowed are 7",
            "unsafe core: 1, allowed are 0",
        ];
        assert_eq!(found, wanted);
    }
}
