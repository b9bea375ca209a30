//! Which crate of the workspace may use which.
//!
//! The table below is the rule; ARCHITECTURE.md shows the same table in a block fenced as
//! `edges`, and a difference between the two is a finding like any other.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Finding;
use super::tree::Tree;

/// What a crate may use.
struct Edges {
    package: &'static str,
    /// In the product.
    uses: &'static [&'static str],
    /// In its tests only, beside what it uses and `holdfast-testkit`, which all tests may use.
    tests_use: &'static [&'static str],
}

const TABLE: [Edges; 10] = [
    Edges {
        package: "holdfast-types",
        uses: &[],
        tests_use: &[],
    },
    Edges {
        package: "holdfast-sync",
        uses: &["holdfast-types"],
        tests_use: &[],
    },
    Edges {
        package: "holdfast-cache",
        uses: &["holdfast-sync", "holdfast-types"],
        tests_use: &[],
    },
    Edges {
        package: "holdfast-core",
        uses: &["holdfast-cache", "holdfast-sync", "holdfast-types"],
        tests_use: &[],
    },
    Edges {
        package: "holdfast",
        uses: &["holdfast-core", "holdfast-types"],
        tests_use: &[],
    },
    Edges {
        package: "holdfast-fuse",
        uses: &["holdfast-core", "holdfast-types"],
        tests_use: &[],
    },
    Edges {
        package: "holdfast-testkit",
        uses: &["holdfast", "holdfast-core", "holdfast-types"],
        tests_use: &["holdfast-fuse"],
    },
    Edges {
        package: "holdfast-bench",
        uses: &[
            "holdfast",
            "holdfast-core",
            "holdfast-fuse",
            "holdfast-types",
        ],
        tests_use: &[],
    },
    Edges {
        package: "holdfast-cli",
        uses: &["holdfast", "holdfast-bench", "holdfast-fuse"],
        tests_use: &[],
    },
    Edges {
        package: "xtask",
        uses: &[],
        tests_use: &[],
    },
];

const TESTKIT: &str = "holdfast-testkit";
const PAGE: &str = "ARCHITECTURE.md";
const FENCE: &str = "```edges";

/// The table as ARCHITECTURE.md has to show it, fences included.
pub(crate) fn block() -> String {
    let mut text = format!("{FENCE}\n");
    for row in &TABLE {
        let uses = if row.uses.is_empty() {
            "nothing".to_owned()
        } else {
            row.uses.join(", ")
        };
        let _ = write!(text, "{} -> {uses}", row.package);
        if !row.tests_use.is_empty() {
            let _ = write!(text, "; tests: {}", row.tests_use.join(", "));
        }
        text.push('\n');
    }
    text.push_str("```\n");
    text
}

/// What cargo knows of the workspace.
pub(super) fn cargo_metadata(root: &Path) -> Result<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(root)
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!(
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    serde_json::from_slice(&output.stdout).context("cargo metadata printed no JSON")
}

/// Compares the workspace, and the page that describes it, with the table.
///
/// # Errors
/// If `metadata` is not what `cargo metadata` prints.
pub(super) fn check(tree: &Tree, metadata: &Value) -> Result<Vec<Finding>> {
    let packages = metadata["packages"]
        .as_array()
        .context("metadata without packages")?;
    let root = metadata["workspace_root"]
        .as_str()
        .context("metadata without a root")?;
    let names: Vec<&str> = packages
        .iter()
        .filter_map(|package| package["name"].as_str())
        .collect();
    let mut findings: Vec<Finding> = page_differs(tree).into_iter().collect();
    for package in packages {
        let name = package["name"].as_str().context("package without a name")?;
        let full = package["manifest_path"]
            .as_str()
            .context("package without a manifest")?;
        let manifest = full
            .strip_prefix(root)
            .unwrap_or(full)
            .trim_start_matches('/');
        let Some(row) = TABLE.iter().find(|row| row.package == name) else {
            findings.push(Finding::new(
                manifest,
                1,
                format!("`{name}` is not in the table of edges"),
                "add it to xtask/src/tidy/edges.rs and to ARCHITECTURE.md",
            ));
            continue;
        };
        let dependencies = package["dependencies"]
            .as_array()
            .context("no dependencies")?;
        for dependency in dependencies {
            let target = dependency["name"]
                .as_str()
                .context("dependency without a name")?;
            if names.contains(&target) && !permitted(row, target, &dependency["kind"]) {
                findings.push(forbidden_edge(tree, manifest, row, target));
            }
        }
    }
    Ok(findings)
}

/// `kind` is null for an ordinary dependency, else "dev" or "build".
fn permitted(row: &Edges, target: &str, kind: &Value) -> bool {
    let in_tests = kind.as_str() == Some("dev");
    row.uses.contains(&target)
        || (in_tests && (target == TESTKIT || row.tests_use.contains(&target)))
}

fn forbidden_edge(tree: &Tree, manifest: &str, row: &Edges, target: &str) -> Finding {
    let line = tree.get(manifest).and_then(|file| {
        let named = |line: &str| {
            line.strip_prefix(target)
                .is_some_and(|rest| rest.starts_with([' ', '.', '=']))
        };
        file.text.lines().position(named)
    });
    Finding::new(
        manifest,
        line.map_or(1, |index| index + 1),
        format!("`{}` may not use `{target}`", row.package),
        "let it declare a trait that the upper layer registers, or move the boundary in \
         ARCHITECTURE.md and xtask/src/tidy/edges.rs",
    )
}

/// The page must show the table as it is.
fn page_differs(tree: &Tree) -> Option<Finding> {
    let remedy = "paste what `cargo xtask edges` prints";
    let Some(page) = tree.get(PAGE) else {
        return Some(Finding::new(PAGE, 1, "the page is missing", remedy));
    };
    let Some(start) = page.text.lines().position(|line| line == FENCE) else {
        return Some(Finding::new(PAGE, 1, "no block fenced as `edges`", remedy));
    };
    let mut shown = page.text.lines().skip(start);
    let wanted = block();
    for (offset, row) in wanted.lines().enumerate() {
        let line = shown.next().unwrap_or_default();
        if line != row {
            let what = format!("shows `{line}` where the table has `{row}`");
            return Some(Finding::new(PAGE, start + offset + 1, what, remedy));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(manifest: &str, page: &str, package: &str, dependency: Value) -> Vec<String> {
        let tree = Tree::of(&[("crates/x/Cargo.toml", manifest), (PAGE, page)]);
        let metadata = json!({
            "workspace_root": "/w",
            "packages": [
                { "name": package, "manifest_path": "/w/crates/x/Cargo.toml",
                  "dependencies": [dependency] },
                { "name": "holdfast-fuse", "manifest_path": "/w/f/Cargo.toml", "dependencies": [] },
                { "name": TESTKIT, "manifest_path": "/w/t/Cargo.toml", "dependencies": [] },
            ],
        });
        check(&tree, &metadata)
            .expect("well formed")
            .iter()
            .map(Finding::to_string)
            .collect()
    }

    #[test]
    fn an_edge_upwards_is_found_at_its_line() {
        let manifest = "[dependencies]\nholdfast-fuse = { workspace = true }\n";
        let dependency = json!({ "name": "holdfast-fuse", "kind": null });
        let findings = found(manifest, &block(), "holdfast-core", dependency);
        assert_eq!(findings.len(), 1);
        let start = "crates/x/Cargo.toml:2: `holdfast-core` may not use `holdfast-fuse`; ";
        assert!(findings[0].starts_with(start), "{}", findings[0]);
    }

    #[test]
    fn the_testkit_is_for_tests_only() {
        let in_product = json!({ "name": TESTKIT, "kind": null });
        assert_eq!(found("", &block(), "holdfast-core", in_product).len(), 1);
        let in_tests = json!({ "name": TESTKIT, "kind": "dev" });
        assert_eq!(
            found("", &block(), "holdfast-core", in_tests),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_crate_that_the_table_does_not_know_is_found() {
        let dependency = json!({ "name": "libc", "kind": null });
        let findings = found("", &block(), "holdfast-new", dependency);
        assert!(
            findings[0].contains("`holdfast-new` is not in the table"),
            "{findings:?}"
        );
    }

    #[test]
    fn a_page_that_shows_another_table_is_found() {
        let page = format!(
            "# Shape\n{}",
            block().replace("cache -> ", "cache -> holdfast-fuse, ")
        );
        let dependency = json!({ "name": "libc", "kind": null });
        let findings = found("", &page, "holdfast-core", dependency.clone());
        assert!(
            findings[0].starts_with("ARCHITECTURE.md:5: shows"),
            "{findings:?}"
        );
        let findings = found("", "# Shape\n", "holdfast-core", dependency);
        assert!(findings[0].contains("no block fenced"), "{findings:?}");
    }

    #[test]
    fn the_table_has_no_cycle() {
        // Rows stand in an order in which each uses only rows above it.
        for (index, row) in TABLE.iter().enumerate() {
            for target in row.uses {
                assert!(
                    TABLE[..index].iter().any(|above| above.package == *target),
                    "{} uses {target}, which stands below it",
                    row.package
                );
            }
        }
    }
}
