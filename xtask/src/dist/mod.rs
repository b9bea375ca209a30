//! `cargo xtask dist`: the packages of a release.
//!
//! [`compile`] builds the program for a target, [`root`] lays out the files as they are installed,
//! [`package`] puts them into a `.deb`, a `.rpm` and a tarball. Two runs over one commit make the
//! same bytes: each time is that of the commit, and no path of this host is in a file.

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

mod compile;
mod licences;
mod package;
mod root;
mod run;
mod tools;

use run::{output, run};

const USAGE: &str = "\
usage: cargo xtask dist --out DIR [--only deb|rpm|tar]… [--target TRIPLE]… [--check-reproducible]

  --out DIR             where the packages go
  --only KIND           make these kinds of packages; without this all three
  --target TRIPLE       for tarballs: x86_64-unknown-linux-musl, aarch64-unknown-linux-musl (needs
                        zig: pip install ziglang); without this both
  --check-reproducible  make them a second time from a copy in another folder, and compare";

/// Tarballs are static.
const STATIC: [&str; 2] = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];
const KINDS: [&str; 3] = ["deb", "rpm", "tar"];

/// What is made, and of what.
pub(crate) struct Plan {
    /// The source tree.
    source: PathBuf,
    /// Where packages go.
    out: PathBuf,
    /// Seconds of the commit, for all times in packages.
    epoch: String,
    kinds: Vec<String>,
    targets: Vec<String>,
    check: bool,
}

/// # Errors
/// If an argument is wrong, or a step fails; the error names it.
pub(crate) fn run_dist(source: &Path, arguments: &[&str]) -> Result<ExitCode> {
    let Some(mut plan) = plan(source, arguments)? else {
        println!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    };
    plan.epoch = epoch(source)?;
    fs::create_dir_all(&plan.out)
        .with_context(|| format!("{} cannot be made", plan.out.display()))?;
    make(&plan)?;
    if plan.check {
        check_reproducible(&plan)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// `None` if the usage was asked for.
fn plan(source: &Path, arguments: &[&str]) -> Result<Option<Plan>> {
    let mut plan = Plan {
        source: source.to_path_buf(),
        out: PathBuf::new(),
        epoch: String::new(),
        kinds: Vec::new(),
        targets: Vec::new(),
        check: false,
    };
    let mut rest = arguments.iter();
    while let Some(&argument) = rest.next() {
        let mut value = || {
            rest.next()
                .with_context(|| format!("{argument} takes a value\n{USAGE}"))
        };
        match argument {
            "--out" => plan.out = std::path::absolute(value()?)?,
            "--only" => plan.kinds.push(one_of(value()?, &KINDS)?),
            "--target" => plan.targets.push(one_of(value()?, &STATIC)?),
            "--check-reproducible" => plan.check = true,
            "--help" | "-h" => return Ok(None),
            other => bail!("unknown argument: {other}\n{USAGE}"),
        }
    }
    if plan.out.as_os_str().is_empty() {
        bail!("--out is missing\n{USAGE}");
    }
    if plan.kinds.is_empty() {
        plan.kinds = KINDS.map(str::to_owned).to_vec();
    }
    if plan.targets.is_empty() {
        plan.targets = STATIC.map(str::to_owned).to_vec();
    }
    Ok(Some(plan))
}

fn one_of(value: &str, known: &[&str]) -> Result<String> {
    if !known.contains(&value) {
        bail!("`{value}` is none of {}\n{USAGE}", known.join(", "));
    }
    Ok(value.to_owned())
}

/// The time of the commit, unless the environment says another: a copy has no history.
fn epoch(source: &Path) -> Result<String> {
    if let Ok(epoch) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(epoch);
    }
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%ct"]).current_dir(source);
    Ok(output(&mut git)?.trim().to_owned())
}

impl Plan {
    fn makes(&self, kind: &str) -> bool {
        self.kinds.iter().any(|made| made == kind)
    }
}

fn make(plan: &Plan) -> Result<()> {
    let of_system = plan.makes("deb") || plan.makes("rpm");
    // The `.deb` and the `.rpm` are for the C library of this host.
    let libc = if of_system { "gnu" } else { "musl" };
    let program = compile::compile(plan, &format!("{ARCH}-unknown-linux-{libc}"))?;
    let root = root::lay_out(plan, &program.stripped)?;
    if plan.makes("deb") {
        package::deb(plan)?;
    }
    if plan.makes("rpm") {
        package::rpm(plan, &root)?;
    }
    if of_system {
        package::symbols(plan, &program)?;
    }
    if plan.makes("tar") {
        for target in &plan.targets {
            let Some(program) = compile::compile_static(plan, target)? else {
                continue;
            };
            package::tarball(plan, &root, &program)?;
            package::symbols(plan, &program)?;
        }
    }
    package::sums(&plan.out)
}

/// Makes the packages of the commit once more, in a folder of another name, and compares all bytes.
fn check_reproducible(plan: &Plan) -> Result<()> {
    let copy = compile::target_dir(&plan.source).join("another/copy");
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    fs::create_dir_all(&copy)?;
    let mut archive = Command::new("sh");
    archive
        .args(["-c", "git archive HEAD | tar -x -C \"$0\""])
        .arg(&copy)
        .current_dir(&plan.source);
    run(&mut archive)?;
    let out = copy.join("out");
    let mut cargo = Command::new("cargo");
    cargo
        .args([
            "run",
            "--quiet",
            "--package",
            "xtask",
            "--",
            "dist",
            "--out",
        ])
        .arg(&out)
        .args(plan.kinds.iter().flat_map(|kind| ["--only", kind]))
        .args(plan.targets.iter().flat_map(|target| ["--target", target]))
        .current_dir(&copy)
        .env("SOURCE_DATE_EPOCH", &plan.epoch)
        .env(tools::SHARED, tools::folder(&plan.source))
        .env("CARGO_TARGET_DIR", copy.join("target"));
    run(&mut cargo)?;
    let mut compare = Command::new("diff");
    compare
        .arg("--recursive")
        .args([&plan.out, &out])
        .current_dir(&plan.source);
    run(&mut compare).context("two builds of one commit differ")?;
    fs::remove_dir_all(&copy)?;
    println!("dist: two builds are the same, byte for byte");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(arguments: &[&str]) -> Result<Plan> {
        plan(Path::new("/source"), arguments)?.context("the usage was asked for")
    }

    fn refusal(arguments: &[&str]) -> String {
        planned(arguments)
            .map(|plan| plan.kinds.join(","))
            .expect_err("these arguments are wrong")
            .to_string()
    }

    #[test]
    fn all_kinds_are_made_for_all_targets_unless_some_are_named() {
        let plan = planned(&["--out", "/out"]).expect("right");
        assert_eq!(plan.kinds, KINDS);
        assert_eq!(plan.targets, STATIC);
        assert!(!plan.check);
        let arguments = [
            "--only", "rpm", "--out", "/out", "--only", "tar", "--target", STATIC[1],
        ];
        let plan = planned(&arguments).expect("right");
        assert_eq!(plan.kinds, ["rpm", "tar"]);
        assert_eq!(plan.targets, [STATIC[1]]);
        assert!(plan.makes("tar") && !plan.makes("deb"));
    }

    #[test]
    fn wrong_arguments_are_named() {
        assert!(refusal(&[]).starts_with("--out is missing"));
        assert!(refusal(&["--out"]).starts_with("--out takes a value"));
        assert!(refusal(&["--only", "zip"]).starts_with("`zip` is none of deb, rpm, tar"));
        assert!(refusal(&["--outer"]).starts_with("unknown argument: --outer"));
    }

    #[test]
    fn a_program_that_fails_is_named_with_what_it_said() {
        let mut sh = Command::new("sh");
        let error = output(sh.args(["-c", "echo gone wrong >&2; exit 3"])).expect_err("it failed");
        let error = error.to_string();
        assert!(error.starts_with("sh -c: exit status: 3"), "{error}");
        assert!(error.contains("gone wrong"), "{error}");
        let error = run(&mut Command::new("/no/such/program")).expect_err("it is not there");
        assert!(error.to_string().contains("/no/such/program"), "{error}");
    }
}
