//! The program, built for a target with the profile `dist`, and its symbols apart from it.

use std::env::{self, consts::ARCH};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::run::{output, run};
use super::{Plan, tools};

/// A program for one target.
pub(super) struct Program {
    pub(super) target: String,
    /// Without symbols; it names the file with them.
    pub(super) stripped: PathBuf,
    /// Names and lines, for debuggers.
    pub(super) symbols: PathBuf,
}

/// Where cargo puts what it builds.
pub(super) fn target_dir(source: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| source.join("target"), PathBuf::from)
}

/// Builds a static program; `None`, and a line that says why, if this host cannot.
pub(super) fn compile_static(plan: &Plan, target: &str) -> Result<Option<Program>> {
    if target.starts_with(ARCH) {
        return compile(plan, target).map(Some);
    }
    let mut zig = Command::new("python3");
    if output(zig.args(["-m", "ziglang", "version"])).is_err() {
        println!("dist: no tarball for {target}: pip install ziglang, its C compiler, is missing");
        return Ok(None);
    }
    compile(plan, target).map(Some)
}

/// Builds the program and splits it.
pub(super) fn compile(plan: &Plan, target: &str) -> Result<Program> {
    let mut rustup = Command::new("rustup");
    run(rustup.args(["target", "add", target]))?;
    let built = target_dir(&plan.source).join(target).join("dist");
    let mut cargo = Command::new("cargo");
    cargo
        .args(["auditable", "build", "--locked", "--profile", "dist"])
        .args(["--package", "holdfast-cli", "--target", target])
        .current_dir(&plan.source)
        .env("PATH", search_path(plan)?)
        .env("SOURCE_DATE_EPOCH", &plan.epoch)
        .env("CARGO_ENCODED_RUSTFLAGS", rust_flags(plan, target)?)
        .env("CFLAGS", c_flags(plan)?)
        // Of the run of cargo that runs this.
        .env_remove("RUSTFLAGS");
    if !target.starts_with(ARCH) {
        cross(plan, target, &mut cargo)?;
    }
    run(&mut cargo)?;

    let program = Program {
        target: target.to_owned(),
        stripped: built.join("stripped/holdfast"),
        symbols: built.join("stripped/holdfast.debug"),
    };
    let folder = built.join("stripped");
    fs::create_dir_all(&folder)?;
    let whole = built.join("holdfast");
    let mut split = objcopy()?;
    split.args(["--only-keep-debug", "--compress-debug-sections=zlib"]);
    run(split.arg(&whole).arg(&program.symbols))?;
    let mut strip = objcopy()?;
    strip
        .current_dir(&folder)
        .args(["--strip-all", "--add-gnu-debuglink=holdfast.debug"]);
    run(strip.arg(&whole).arg(&program.stripped))?;
    Ok(program)
}

/// The compiler's own: it knows the files of all targets.
fn objcopy() -> Result<Command> {
    let mut rustc = Command::new("rustc");
    let libraries = output(rustc.args(["--print", "target-libdir"]))?;
    let tools = Path::new(libraries.trim()).with_file_name("bin");
    Ok(Command::new(tools.join("rust-objcopy")))
}

/// What stands in files in place of folders of this host.
fn renamed(plan: &Plan) -> Result<[(PathBuf, &'static str); 3]> {
    let cargo = match env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => PathBuf::from(env::var_os("HOME").context("neither CARGO_HOME nor HOME is set")?)
            .join(".cargo"),
    };
    // A later one wins, and the target's folder may lie in the source tree.
    Ok([
        (plan.source.clone(), "/holdfast"),
        (target_dir(&plan.source), "/holdfast/target"),
        (cargo.join("registry/src"), "/crates"),
    ])
}

fn rust_flags(plan: &Plan, target: &str) -> Result<String> {
    let flag = |(folder, name): (PathBuf, &str)| {
        format!("--remap-path-prefix={}={name}", folder.display())
    };
    let mut flags = renamed(plan)?.map(flag).to_vec();
    if !target.starts_with(ARCH) {
        flags.push("-Clinker=rust-lld".to_owned());
    }
    Ok(flags.join("\x1f"))
}

fn c_flags(plan: &Plan) -> Result<String> {
    let flag =
        |(folder, name): (PathBuf, &str)| format!("-ffile-prefix-map={}={name}", folder.display());
    Ok(renamed(plan)?.map(flag).join(" "))
}

fn search_path(plan: &Plan) -> Result<std::ffi::OsString> {
    let auditable = tools::installed(&plan.source, tools::AUDITABLE)?;
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = [auditable].into_iter().chain(env::split_paths(&path));
    Ok(env::join_paths(folders)?)
}

/// Zig compiles the parts in C: it has the headers of each C library. Its `--target` is another one
/// than that of clang, which it is taken for.
fn cross(plan: &Plan, target: &str, cargo: &mut Command) -> Result<()> {
    let folder = tools::folder(&plan.source);
    fs::create_dir_all(&folder)?;
    let arch = target.split('-').next().unwrap_or_default();
    let compiler = format!(
        "#!/bin/sh\nfor argument do\n    shift\n    \
         case $argument in --target=*) continue ;; esac\n    \
         set -- \"$@\" \"$argument\"\ndone\n\
         exec python3 -m ziglang cc -fno-sanitize=undefined -target {arch}-linux-musl \"$@\"\n"
    );
    let archiver = "#!/bin/sh\nexec python3 -m ziglang ar \"$@\"\n";
    for (variable, text) in [("CC", compiler.as_str()), ("AR", archiver)] {
        let path = folder.join(format!("zig-{variable}-{arch}"));
        fs::write(&path, text)?;
        fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        cargo.env(format!("{variable}_{}", target.replace('-', "_")), path);
    }
    Ok(())
}
