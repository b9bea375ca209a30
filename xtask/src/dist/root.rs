//! The files of the packages, laid out in a folder as they are installed.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::run::{bytes, output, run};
use super::{Plan, licences};

/// Files of the source tree, and where below /usr they go.
const FILES: [(&str, &str); 6] = [
    (
        "packaging/61-holdfast.rules",
        "lib/udev/rules.d/61-holdfast.rules",
    ),
    ("packaging/holdfast.magic", "share/holdfast/magic"),
    ("packaging/alerts.yml", "share/holdfast/alerts.yml"),
    ("docs/grafana.json", "share/holdfast/grafana.json"),
    ("packaging/copyright", "share/doc/holdfast/copyright"),
    ("README.md", "share/doc/holdfast/README.md"),
];
/// Units are installed; what else lies there is an example.
const UNITS: &str = "packaging/systemd";

/// Links in /usr/sbin: mount(8), mkfs(8) and fsck(8) look for these names. `mount.fuse.holdfast` is
/// for a line of fstab of type `fuse.holdfast`. Each with its page of the manual.
const HELPERS: [(&str, &str); 5] = [
    ("mount.holdfast", "mount.holdfast"),
    ("umount.holdfast", "umount.holdfast"),
    ("mkfs.holdfast", "mkfs.holdfast"),
    ("fsck.holdfast", "fsck.holdfast"),
    ("mount.fuse.holdfast", "mount.holdfast"),
];

/// Shells, and where each looks for completions.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/holdfast"),
    ("zsh", "share/zsh/vendor-completions/_holdfast"),
    ("fish", "share/fish/vendor_completions.d/holdfast.fish"),
];

/// Where the files are laid out: crates/cli/Cargo.toml names this folder to cargo-deb.
pub(super) const ROOT: &str = "target/package/root";

/// Makes the folder anew.
pub(super) fn lay_out(plan: &Plan, program: &Path) -> Result<PathBuf> {
    let root = plan.source.join(ROOT);
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    let usr = root.join("usr");
    copy(program, &usr.join("bin/holdfast"), 0o755)?;
    for (source, place) in FILES {
        copy(&plan.source.join(source), &usr.join(place), 0o644)?;
    }
    units(&plan.source.join(UNITS), &usr)?;
    for (shell, place) in SHELLS {
        let script = bytes(Command::new(program).args(["completions", shell]))?;
        write(&usr.join(place), &script)?;
    }
    manual(program, &usr.join("share/man"))?;
    fs::create_dir_all(usr.join("sbin"))?;
    for (helper, page) in HELPERS {
        symlink("../bin/holdfast", usr.join("sbin").join(helper))?;
        if page != helper {
            let link = usr.join(format!("share/man/man8/{helper}.8.gz"));
            symlink(format!("{page}.8.gz"), link)?;
        }
    }
    let folder = usr.join("share/doc/holdfast");
    changelogs(plan, &folder)?;
    let crates = folder.join("crates");
    write(&crates, licences::texts(&plan.source)?.as_bytes())?;
    compress(&crates)?;
    Ok(root)
}

fn units(folder: &Path, usr: &Path) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("{}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        let place = match path.extension().is_some_and(|kind| kind == "service") {
            true => usr.join("lib/systemd/system").join(name),
            false => usr.join("share/doc/holdfast/examples").join(name),
        };
        copy(&path, &place, 0o644)?;
    }
    Ok(())
}

/// The pages of all commands, each in the folder of its section.
fn manual(program: &Path, folder: &Path) -> Result<()> {
    let flat = folder.with_file_name("pages");
    run(Command::new(program).args(["man", "--out"]).arg(&flat))?;
    for entry in fs::read_dir(&flat)? {
        let path = entry?.path();
        let section = path.extension().context("a page without a section")?;
        let section = folder.join(format!("man{}", section.to_string_lossy()));
        fs::create_dir_all(&section)?;
        let place = section.join(path.file_name().unwrap_or_default());
        fs::rename(&path, &place)?;
        compress(&place)?;
    }
    fs::remove_dir(&flat)?;
    Ok(())
}

/// The changelog of users, and that of the Debian package, which has no changes of its own.
fn changelogs(plan: &Plan, folder: &Path) -> Result<()> {
    let changes = folder.join("changelog");
    copy(&plan.source.join("CHANGELOG.md"), &changes, 0o644)?;
    compress(&changes)?;
    let mut date = Command::new("date");
    date.args(["--utc", "--rfc-email", "--date"])
        .arg(format!("@{}", plan.epoch));
    let version = env!("CARGO_PKG_VERSION");
    let text = format!(
        "holdfast ({version}-1) unstable; urgency=medium\n\n  * Release {version}, see \
         changelog.gz.\n\n -- {}  {}\n",
        env!("CARGO_PKG_AUTHORS"),
        output(&mut date)?.trim()
    );
    let debian = folder.join("changelog.Debian");
    write(&debian, text.as_bytes())?;
    compress(&debian)
}

/// Without a time and a name in it.
fn compress(path: &Path) -> Result<()> {
    run(Command::new("gzip").args(["-9", "--no-name"]).arg(path))
}

fn copy(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let content = fs::read(from).with_context(|| format!("{} cannot be read", from.display()))?;
    write(to, &content)?;
    fs::set_permissions(to, Permissions::from_mode(mode))?;
    Ok(())
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, content).with_context(|| format!("{} cannot be written", path.display()))
}
