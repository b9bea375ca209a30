//! Packages of the laid out files.

use std::env::consts::ARCH;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::compile::Program;
use super::run::{output, run};
use super::{Plan, tools};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The Debian and RPM packages are at most so large, in bytes.
const SIZE_MAX: u64 = 5_000_000;

/// crates/cli/Cargo.toml names the folder of the laid out files to cargo-deb.
pub(super) fn deb(plan: &Plan) -> Result<()> {
    let tools = tools::installed(&plan.source, tools::DEB)?;
    let mut cargo = Command::new(tools.join("cargo-deb"));
    cargo
        .args(["--no-build", "--no-strip", "--locked", "--quiet"])
        .args(["--package", "holdfast-cli", "--output"])
        .arg(&plan.out)
        .current_dir(&plan.source)
        .env("SOURCE_DATE_EPOCH", &plan.epoch);
    run(&mut cargo)?;
    is_small(&plan.out, "deb")
}

/// By rpmbuild: cargo-generate-rpm 0.21 follows links, and would pack the program six times.
pub(super) fn rpm(plan: &Plan, root: &Path) -> Result<()> {
    let folder = root.with_file_name("rpm");
    let mut rpmbuild = Command::new("rpmbuild");
    rpmbuild.args(["-bb", "--quiet", "--target", ARCH]);
    for (name, value) in [
        ("_topdir", folder.display().to_string()),
        ("_rpmdir", plan.out.display().to_string()),
        ("laid_out", root.display().to_string()),
        ("package_version", VERSION.to_owned()),
    ] {
        rpmbuild.args(["--define", &format!("{name} {value}")]);
    }
    rpmbuild
        .arg(plan.source.join("packaging/holdfast.spec"))
        .env("SOURCE_DATE_EPOCH", &plan.epoch);
    run(&mut rpmbuild)?;
    is_small(&plan.out, "rpm")
}

fn is_small(out: &Path, kind: &str) -> Result<()> {
    for entry in fs::read_dir(out)? {
        let entry = entry?;
        let (path, size) = (entry.path(), entry.metadata()?.len());
        if path.extension().is_some_and(|found| found == kind) && size > SIZE_MAX {
            bail!("{} has {size} bytes, more than {SIZE_MAX}", path.display());
        }
    }
    Ok(())
}

/// What lies below /usr in the packages, with a static program and without what names /usr.
pub(super) fn tarball(plan: &Plan, root: &Path, program: &Program) -> Result<()> {
    let name = format!("holdfast-{VERSION}-{}", program.target);
    let folder = root.with_file_name(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    run(Command::new("cp")
        .arg("-a")
        .arg(root.join("usr"))
        .arg(&folder))?;
    fs::remove_dir_all(folder.join("lib"))?;
    fs::copy(&program.stripped, folder.join("bin/holdfast"))?;
    let mut tar = Command::new("tar");
    tar.args(["--create", "--xz", "--sort=name", "--format=gnu"])
        .args(["--owner=0", "--group=0", "--numeric-owner"])
        .arg(format!("--mtime=@{}", plan.epoch))
        .arg("--file")
        .arg(plan.out.join(format!("{name}.tar.xz")))
        .arg("--directory")
        .arg(folder.parent().context("no folder above")?)
        .arg(&name);
    run(&mut tar)
}

/// The symbols of a program: a debugger finds them as `holdfast.debug` beside it.
pub(super) fn symbols(plan: &Plan, program: &Program) -> Result<()> {
    let name = format!("holdfast-{VERSION}-{}.debug", program.target);
    fs::copy(&program.symbols, plan.out.join(name))?;
    Ok(())
}

/// `SHA256SUMS`, for `sha256sum --check`.
pub(super) fn sums(out: &Path) -> Result<()> {
    const SUMS: &str = "SHA256SUMS";
    let mut names = Vec::new();
    for entry in fs::read_dir(out)? {
        names.push(entry?.file_name());
    }
    names.retain(|name| name != SUMS);
    names.sort();
    let text = output(Command::new("sha256sum").args(&names).current_dir(out))?;
    fs::write(out.join(SUMS), &text)?;
    print!("{text}");
    Ok(())
}
