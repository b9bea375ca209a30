//! Programs of others that make packages, at fixed versions in a folder of their own.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::compile::target_dir;
use super::run::run;

/// Puts the list of dependencies into the program, where `cargo audit bin` and others find it.
pub(super) const AUDITABLE: &str = "cargo-auditable@0.7.7";
/// Makes the `.deb`.
pub(super) const DEB: &str = "cargo-deb@3.8.0";

/// The environment variable with the folder of the tools, for a second build beside the first.
pub(super) const SHARED: &str = "HOLDFAST_DIST_TOOLS";

/// Where tools are installed.
pub(super) fn folder(source: &Path) -> PathBuf {
    std::env::var_os(SHARED).map_or_else(|| target_dir(source).join("tools"), PathBuf::from)
}

/// The folder with a tool, given as NAME@VERSION; installs it if it is not there.
pub(super) fn installed(source: &Path, tool: &str) -> Result<PathBuf> {
    let root = folder(source).join(tool);
    if !root.join("bin").exists() {
        println!("dist: installing {tool}");
        let mut cargo = Command::new("cargo");
        cargo
            .args(["install", "--locked", "--quiet", tool, "--root"])
            .arg(&root)
            .env("CARGO_TARGET_DIR", folder(source).join("build"));
        run(&mut cargo)?;
    }
    Ok(root.join("bin"))
}
