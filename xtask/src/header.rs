//! `cargo xtask header`: `holdfast.h`, made by cbindgen from the functions and types of
//! `crates/capi`.
//!
//! cbindgen expands no macros. So it gets the table as the macro makes it, without the bodies'
//! surroundings: each `fn` of the table as an exported function of C.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

/// Another version could make another header.
const VERSION: &str = "0.29.4";
const TYPES: &str = "crates/capi/src/types.rs";
const TABLE: &str = "crates/capi/src/exports.rs";
const CONFIG: &str = "crates/capi/cbindgen.toml";
const HEADER: &str = "crates/capi/include/holdfast.h";

/// Makes the header; with `check`, only compares it with the one in the tree.
pub(crate) fn run(root: &Path, check: bool) -> Result<ExitCode> {
    let read = |path| fs::read_to_string(root.join(path)).context(path);
    let source = source(&read(TYPES)?, &read(TABLE)?)?;
    let made = generate(root, &source)?;
    if !check {
        fs::write(root.join(HEADER), made).context(HEADER)?;
        return Ok(ExitCode::SUCCESS);
    }
    if read(HEADER)? == made {
        println!("{HEADER} is as cbindgen makes it");
        return Ok(ExitCode::SUCCESS);
    }
    println!("{HEADER} differs from {TYPES} and {TABLE}; run `cargo xtask header`");
    Ok(ExitCode::FAILURE)
}

/// The source that cbindgen reads: the types, and the functions of the table.
fn source(types: &str, table: &str) -> Result<String> {
    let (_, functions) = (table.split_once("\nborder! {\n"))
        .with_context(|| format!("{TABLE} has no table `border! {{`"))?;
    let functions = (functions.rsplit_once("\n}"))
        .with_context(|| format!("the table in {TABLE} has no end"))?;
    let exported = "    #[unsafe(no_mangle)]\n    pub extern \"C\" fn hf_";
    Ok(types.to_owned() + &functions.0.replace("    fn hf_", exported))
}

fn generate(root: &Path, source: &str) -> Result<String> {
    let folder = target(root).join("header");
    fs::create_dir_all(&folder)?;
    let file = folder.join("holdfast.rs");
    fs::write(&file, source)?;
    let output = Command::new(cbindgen(root)?)
        .args([Path::new("--config"), Path::new(CONFIG), &file])
        .current_dir(root)
        .output()
        .context("cannot start cbindgen")?;
    if !output.status.success() {
        bail!("cbindgen: {}", String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout).context("cbindgen printed no text")
}

/// The folder of cargo's output.
fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// cbindgen: that of the path if it has the version, else one in `target/tools`, installed if need
/// be.
fn cbindgen(root: &Path) -> Result<OsString> {
    let tools = target(root).join("tools");
    let ours = tools.join("bin/cbindgen").into_os_string();
    for program in ["cbindgen".into(), ours.clone()] {
        let output = Command::new(&program).arg("--version").output();
        let version = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        if version.is_ok_and(|version| version.trim() == format!("cbindgen {VERSION}")) {
            return Ok(program);
        }
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let installed = Command::new(cargo)
        .args([
            "install",
            "--debug",
            "--locked",
            "--quiet",
            "--version",
            VERSION,
            "cbindgen",
            "--root",
        ])
        .arg(&tools)
        // Apart from the tree: its target folder and settings are not for this build.
        .current_dir(std::env::temp_dir())
        .env_remove("CARGO_TARGET_DIR")
        .status()
        .context("cannot start cargo")?;
    if !installed.success() {
        bail!(
            "cbindgen {VERSION} could not be installed; `cargo install cbindgen --version {VERSION}`"
        );
    }
    Ok(ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_of_the_table_becomes_one_of_c() -> Result<()> {
        let table = "use x;\n\nborder! {\n    /// One.\n    fn hf_one() -> c_int {\n        a()\n    }\n}\n";
        let wanted = "struct S;\n    /// One.\n    #[unsafe(no_mangle)]\n    pub extern \"C\" fn hf_one() -> c_int {\n        a()\n    }";
        assert_eq!(source("struct S;\n", table)?, wanted);
        assert!(source("", "fn hf_one() {}").is_err());
        Ok(())
    }
}
