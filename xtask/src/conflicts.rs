//! `cargo xtask conflicts`: the conflict audit, and its totals in the documentation.
//!
//! The audit itself is the package `holdfast-audit`, built with all optimisations. This command
//! passes the options on. With `--write` it runs the audit over each store and puts the totals
//! where the page expects them.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

const PAGE: &str = "docs/performance.md";
const BEGIN: &str = "<!-- bench:conflicts -->";
const END: &str = "<!-- /bench:conflicts -->";

/// Options that look at less than everything: no table for the page.
const PARTS: [&str; 6] = [
    "--pair",
    "--placement",
    "--quick",
    "--store",
    "--list",
    "--help",
];

/// The stores that the page has totals of: the name of each in the audit, and on the page.
const STORES: [(&str, &str); 2] = [("memory", "`mem:`"), ("volume", "A volume")];

/// Runs the audit with these options.
pub(crate) fn run(root: &Path, options: &[&str]) -> Result<ExitCode> {
    let write = options.contains(&"--write");
    let options: Vec<&str> = options
        .iter()
        .copied()
        .filter(|&option| option != "--write")
        .collect();
    if !write {
        let status = audit(root, &options)
            .status()
            .context("cannot start cargo")?;
        return Ok(code(status.code()));
    }
    let is_part = |option: &&str| PARTS.iter().any(|part| option.starts_with(part));
    if let Some(part) = options.iter().find(|option| is_part(option)) {
        bail!("--write is for the whole table, not with {part}");
    }
    let mut tables = String::new();
    for (store, title) in STORES {
        let output = audit(root, &options)
            .args(["--store", store])
            .stderr(Stdio::inherit())
            .output()
            .context("cannot start cargo")?;
        let text = String::from_utf8(output.stdout).context("the table is no text")?;
        print!("{text}");
        let Some(totals) = totals(&text) else {
            return Ok(code(output.status.code()));
        };
        tables += &format!("{title}:\n\n{totals}\n\n");
    }
    let page = root.join(PAGE);
    let text = fs::read_to_string(&page).context(PAGE)?;
    fs::write(&page, placed(&text, &tables)?).context(PAGE)?;
    println!("{PAGE} is up to date");
    Ok(ExitCode::SUCCESS)
}

/// The command that runs the audit.
fn audit(root: &Path, options: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut audit = Command::new(cargo);
    audit
        .args(["run", "--profile", "dist", "--quiet"])
        .args(["--package", "holdfast-audit", "--bin", "holdfast-audit"])
        .arg("--")
        .args(options)
        .current_dir(root);
    audit
}

/// The totals of what the audit printed: the first table.
fn totals(text: &str) -> Option<&str> {
    let table = text.split("\n\n").next()?;
    table.starts_with('|').then_some(table)
}

/// The audit's exit code; a death by a signal is a failure.
fn code(code: Option<i32>) -> ExitCode {
    let code = code.and_then(|code| u8::try_from(code).ok());
    ExitCode::from(code.unwrap_or(1))
}

/// The page with the table between its marks.
fn placed(page: &str, table: &str) -> Result<String> {
    let (before, rest) = page
        .split_once(BEGIN)
        .with_context(|| format!("{PAGE} has no line `{BEGIN}`"))?;
    let (_, behind) = rest
        .split_once(END)
        .with_context(|| format!("{PAGE} has no line `{END}`"))?;
    Ok(format!(
        "{before}{BEGIN}\n\n{}\n\n{END}{behind}",
        table.trim()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_changes() -> Result<()> {
        let page = format!("# Figures\n{BEGIN}\nold\n{END}\nmore\n");
        let new = placed(&page, "| new |\n")?;
        let wanted = format!("# Figures\n{BEGIN}\n\n| new |\n\n{END}\nmore\n");
        assert_eq!(new, wanted);
        assert_eq!(placed(&new, "| new |\n")?, new);
        assert!(placed("# Figures\n", "| new |\n").is_err());
        Ok(())
    }

    #[test]
    fn the_page_has_its_marks() -> Result<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let page = fs::read_to_string(root.join(PAGE))?;
        placed(&page, "").map(|_| ())
    }

    #[test]
    fn the_totals_are_the_first_table() {
        assert_eq!(totals("| all |\n| 1 |\n\nmore\n"), Some("| all |\n| 1 |"));
        assert_eq!(totals("conflicts: skipped\n\n"), None);
    }

    #[test]
    fn a_part_is_not_written_to_the_page() {
        let error = run(Path::new("."), &["--write", "--pair=read,write"]).unwrap_err();
        assert!(error.to_string().contains("--pair"), "{error}");
    }
}
