//! Which crate of the workspace may use which.
//!
//! The table below is the rule. ARCHITECTURE.md shows the same in the last column of its table of
//! crates; a difference between the two is a finding like any other.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Finding;
use super::tree::Tree;

/// What a crate may use: in the product, and in its tests beside the testkit.
struct Edges {
    /// As ARCHITECTURE.md calls it.
    name: &'static str,
    uses: &'static [&'static str],
}

/// Leaves that may use whatever they test.
const ANY: &[&str] = &["any"];

/// In an order in which each crate uses only crates above it.
const TABLE: [Edges; 19] = [
    Edges {
        name: "allocator",
        uses: &[],
    },
    Edges {
        name: "types",
        uses: &[],
    },
    Edges {
        name: "sync",
        uses: &[],
    },
    Edges {
        name: "dirindex",
        uses: &["sync"],
    },
    Edges {
        name: "cache",
        uses: &["types", "sync"],
    },
    Edges {
        name: "core",
        uses: &["types", "sync", "dirindex", "cache"],
    },
    Edges {
        name: "device",
        uses: &["types"],
    },
    Edges {
        name: "volume",
        uses: &["types", "sync", "device", "core"],
    },
    Edges {
        name: "hostdir",
        uses: &["types", "core"],
    },
    Edges {
        name: "cluster",
        uses: &["types", "core"],
    },
    Edges {
        name: "fuse",
        uses: &["types", "core"],
    },
    Edges {
        name: "holdfast",
        uses: &["types", "core", "cluster", "volume", "device"],
    },
    Edges {
        name: "capi",
        uses: &["holdfast"],
    },
    Edges {
        name: "testkit",
        uses: ANY,
    },
    Edges {
        name: "bench",
        uses: &[
            "allocator",
            "holdfast",
            "core",
            "types",
            "cluster",
            "hostdir",
            "fuse",
            "volume",
            "device",
        ],
    },
    Edges {
        name: "audit",
        uses: &["allocator", "core", "volume", "device"],
    },
    Edges {
        name: "cli",
        uses: &[
            "allocator",
            "holdfast",
            "core",
            "types",
            "cluster",
            "hostdir",
            "fuse",
            "volume",
            "device",
        ],
    },
    Edges {
        name: "python",
        uses: &["holdfast"],
    },
    Edges {
        name: "xtask",
        uses: &[],
    },
];

/// For tests only, and for the tests of all.
const TESTKIT: &str = "testkit";
const PAGE: &str = "ARCHITECTURE.md";
const AGREE: &str = "make the page and xtask/src/tidy/edges.rs agree";

/// The library, as its package is called.
const LIBRARY: &str = "holdfast-fs";

/// The name of a package in the table: its own, without the common prefix.
fn short(package: &str) -> &str {
    if package == LIBRARY {
        return "holdfast";
    }
    ["holdfast-fs-", "holdfast-"]
        .iter()
        .find_map(|prefix| package.strip_prefix(prefix))
        .unwrap_or(package)
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
    let mut findings = page_differs(tree);
    for package in packages {
        let name = package["name"].as_str().context("package without a name")?;
        let full = package["manifest_path"]
            .as_str()
            .context("package without a manifest")?;
        let manifest = full
            .strip_prefix(root)
            .unwrap_or(full)
            .trim_start_matches('/');
        let Some(row) = TABLE.iter().find(|row| row.name == short(name)) else {
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
                let key = dependency["rename"].as_str().unwrap_or(target);
                findings.push(forbidden_edge(tree, manifest, row, (key, target)));
            }
        }
    }
    Ok(findings)
}

/// `kind` is null for an ordinary dependency, else "dev" or "build".
fn permitted(row: &Edges, target: &str, kind: &Value) -> bool {
    let target = short(target);
    if target == TESTKIT {
        return kind.as_str() == Some("dev");
    }
    row.uses == ANY || row.uses.contains(&target)
}

/// The manifest has the dependency on `package` under `key`.
fn forbidden_edge(
    tree: &Tree,
    manifest: &str,
    row: &Edges,
    (key, package): (&str, &str),
) -> Finding {
    let line = tree.get(manifest).and_then(|file| {
        let named = |line: &str| {
            line.strip_prefix(key)
                .is_some_and(|rest| rest.starts_with([' ', '.', '=']))
        };
        file.text.lines().position(named)
    });
    Finding::new(
        manifest,
        line.map_or(1, |index| index + 1),
        format!("`{}` may not use `{}`", row.name, short(package)),
        "let it declare a trait that the upper layer registers, or move the boundary in \
         ARCHITECTURE.md and xtask/src/tidy/edges.rs together",
    )
}

/// The page must show the table as it is, row by row.
fn page_differs(tree: &Tree) -> Vec<Finding> {
    let rows: Vec<(usize, &str, &str)> = tree
        .get(PAGE)
        .map_or(Vec::new(), |page| crate_rows(&page.text).collect());
    let mut findings = Vec::new();
    for row in &TABLE {
        let Some((line, _, cell)) = rows.iter().find(|(_, name, _)| *name == row.name) else {
            findings.push(Finding::new(
                PAGE,
                1,
                format!("no row for `{}`", row.name),
                AGREE,
            ));
            continue;
        };
        let mut shown: Vec<&str> = cell
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .collect();
        let mut wanted = row.uses.to_vec();
        shown.sort_unstable();
        wanted.sort_unstable();
        if shown != wanted {
            let what = format!("`{}` uses [{cell}], the rule is {:?}", row.name, row.uses);
            findings.push(Finding::new(PAGE, *line, what, AGREE));
        }
    }
    findings
}

/// Line, crate and last cell of each row that begins with a name in backquotes, in the table that
/// has a column of what may be used.
fn crate_rows(page: &str) -> impl Iterator<Item = (usize, &str, &str)> {
    let mut inside = false;
    page.lines().enumerate().filter_map(move |(index, line)| {
        let cells: Vec<&str> = line
            .strip_prefix('|')?
            .strip_suffix('|')?
            .split('|')
            .collect();
        let last = cells.last()?.trim();
        if cells[0].trim() == "crate" {
            inside = true;
        }
        let name = cells[0].trim().strip_prefix('`')?.split('`').next()?;
        (inside && cells.len() == 3).then_some((index + 1, name, last))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The page as the table wants it.
    fn page() -> String {
        let mut text = "| crate | holds | may use |\n|---|---|---|\n".to_owned();
        for row in &TABLE {
            text += &format!(
                "| `{}` (`holdfast-fs-{0}`) | x | {} |\n",
                row.name,
                row.uses.join(", ")
            );
        }
        text
    }

    fn found(manifest: &str, page: &str, package: &str, dependency: Value) -> Vec<String> {
        let tree = Tree::of(&[("crates/x/Cargo.toml", manifest), (PAGE, page)]);
        let metadata = json!({
            "workspace_root": "/w",
            "packages": [
                { "name": package, "manifest_path": "/w/crates/x/Cargo.toml",
                  "dependencies": [dependency] },
                { "name": "holdfast-fs-fuse", "manifest_path": "/w/f/Cargo.toml", "dependencies": [] },
                { "name": "holdfast-testkit", "manifest_path": "/w/t/Cargo.toml",
                  "dependencies": [] },
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
        let dependency =
            json!({ "name": "holdfast-fs-fuse", "rename": "holdfast-fuse", "kind": null });
        let findings = found(manifest, &page(), "holdfast-fs-core", dependency);
        assert_eq!(findings.len(), 1, "{findings:?}");
        let start = "crates/x/Cargo.toml:2: `core` may not use `fuse`; ";
        assert!(findings[0].starts_with(start), "{}", findings[0]);
    }

    #[test]
    fn the_testkit_is_for_tests_only() {
        let in_product = json!({ "name": "holdfast-testkit", "kind": null });
        assert_eq!(found("", &page(), "holdfast-fs-core", in_product).len(), 1);
        let in_tests = json!({ "name": "holdfast-testkit", "kind": "dev" });
        assert_eq!(
            found("", &page(), "holdfast-fs-core", in_tests),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_crate_that_the_table_does_not_know_is_found() {
        let dependency = json!({ "name": "libc", "kind": null });
        let findings = found("", &page(), "holdfast-new", dependency);
        assert!(
            findings[0].contains("`holdfast-new` is not in the table"),
            "{findings:?}"
        );
    }

    #[test]
    fn a_page_that_shows_another_table_is_found() {
        let dependency = json!({ "name": "libc", "kind": null });
        let other = page().replace("| x | types, sync |", "| x | types, sync, fuse |");
        let findings = found("", &other, "holdfast-fs-core", dependency.clone());
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(
            findings[0].starts_with("ARCHITECTURE.md:7: `cache` uses"),
            "{findings:?}"
        );
        let findings = found("", "# Shape\n", "holdfast-fs-core", dependency);
        assert_eq!(findings.len(), TABLE.len(), "{findings:?}");
    }

    #[test]
    fn the_table_has_no_cycle() {
        for (index, row) in TABLE.iter().enumerate().filter(|(_, row)| row.uses != ANY) {
            for target in row.uses {
                assert!(
                    TABLE[..index].iter().any(|above| above.name == *target),
                    "{} uses {target}, which stands below it",
                    row.name
                );
            }
        }
    }
}
