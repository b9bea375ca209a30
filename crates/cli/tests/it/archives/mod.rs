//! `holdfast unpack` and `holdfast pack` beside GNU tar, bsdtar, Python's `tarfile` and pax.
//!
//! Each case follows from a seed: a tree or hand-made headers become an archive, which may be
//! compressed and damaged. GNU tar unpacks it on the host, `holdfast unpack` into a volume. Exit
//! codes and trees must be the same. The output of `holdfast pack` must be that tree for all
//! readers of archives.
//!
//! A failed case prints its seed.

mod makers;
mod raw;
mod seen;
mod tree;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use holdfast::Volume;
use holdfast_testkit::rng::Rng;
use holdfast_testkit::skip::skipped;
use holdfast_testkit::{effort, seed};
use makers::Maker;
use seen::Tree;

/// Cases in one volume.
const TOGETHER: u64 = 20;

/// Messages of holdfast about things that GNU tar accepts. A case with such a message and exit code
/// 1 is not compared further.
const DELIBERATE: [(&str, &str); 6] = [
    (
        "is no time",
        "GNU tar takes the digits that a damaged time begins with",
    ),
    (
        "the archive ends in the middle of a header",
        "GNU tar takes a part of a block for the end, and says nothing",
    ),
    (
        "the archive ends in front of a member whose name was told",
        "GNU tar takes this for the end, and says nothing",
    ),
    (
        "this is no tar archive",
        "GNU tar says nothing of a compressed stream of no bytes",
    ),
    (
        "the map of this sparse file is damaged",
        "GNU tar writes what it can, or runs that overlap, and leaves files that are in part wrong",
    ),
    (
        "is damaged: its size",
        "GNU tar takes what is left of the archive for the header",
    ),
];

/// The environment of the cases.
struct Place {
    dir: PathBuf,
    makers: Vec<Maker>,
    /// Seconds since 1970; no archive has a later time.
    begun: i64,
}

impl Place {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// An empty directory.
    fn fresh(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        if path.exists() {
            fs::remove_dir_all(&path).expect("it is ours");
        }
        fs::create_dir(&path).expect("there is room");
        path
    }
}

/// The command under test: `$HOLDFAST`, as for the scripts, or the built one.
fn holdfast() -> Command {
    let built = env!("CARGO_BIN_EXE_holdfast").into();
    Command::new(std::env::var_os("HOLDFAST").unwrap_or(built))
}

fn run(command: &mut Command) -> Output {
    command
        .stdin(Stdio::null())
        .output()
        .expect("it ran before")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Makes the archive of a case; returns its description, and whether it was damaged.
fn prepare(rng: &mut Rng, place: &Place) -> (PathBuf, String, Damage) {
    let plain = place.path("plain");
    // Of the case before.
    let _ = fs::remove_file(&plain);
    let mut shown = if rng.one_in(3) {
        fs::write(&plain, raw::archive(rng)).expect("there is room");
        "hand-made headers".to_owned()
    } else {
        let tree = place.fresh("tree");
        tree::grow(rng, &tree).expect("a tree");
        let maker = *rng.pick(&place.makers);
        makers::make(rng, maker, &tree, &plain)
    };
    let mut bytes = fs::read(&plain).expect("it was made");
    let archive = place.path("archive");
    let mut suffix = "tar";
    if rng.one_in(2) {
        suffix = makers::compress(rng, &bytes, &archive);
        bytes = fs::read(&archive).expect("it was made");
    }
    let is_compressed = suffix != "tar";
    let mut damage = Damage::None;
    match rng.below(8) {
        0 => {
            for _ in 0..1 + rng.below(3) {
                let at = rng.index(bytes.len());
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << rng.below(8);
                }
            }
            shown += ", bytes changed";
            damage = if is_compressed {
                Damage::Stream
            } else {
                Damage::Plain
            };
        }
        1 => {
            bytes.truncate(rng.index(bytes.len() + 1));
            shown += ", cut off";
            damage = if is_compressed {
                Damage::Stream
            } else {
                Damage::Plain
            };
        }
        2 if is_compressed => {
            bytes.extend(*rng.pick(&[&[0; 1024][..], b"behind the end", b"\0\0\0\0behind"]));
            shown += ", more behind it";
            damage = Damage::Stream;
        }
        _ => {}
    }
    let archive = archive.with_extension(suffix);
    fs::write(&archive, bytes).expect("there is room");
    (archive, format!("{shown}, {suffix}"), damage)
}

/// How an archive was damaged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Damage {
    None,
    /// Damage that any program sees.
    Plain,
    /// Damage that a decompressor reports, after an unspecified part of the output.
    Stream,
}

/// GNU tar with options that restore everything.
fn gnu_tar(archive: &Path, to: &Path) -> Output {
    let mut command = Command::new("tar");
    command.args([
        "-xp",
        "--xattrs",
        "--xattrs-include=*",
        "--acls",
        "--numeric-owner",
    ]);
    // Otherwise directories are finished before their last members, which then change the times.
    command.arg("--delay-directory-restore");
    // It does not know the skippable frame of pzstd.
    if archive.extension().is_some_and(|suffix| suffix == "zst") {
        command.arg("--zstd");
    }
    run(command.arg("-f").arg(archive).arg("-C").arg(to))
}

/// Runs one case; returns the differences.
fn case(
    rng: &mut Rng,
    place: &Place,
    image: &Path,
    number: u64,
    kept: &mut PathBuf,
) -> Result<(), String> {
    let (archive, shown, damage) = prepare(rng, place);
    kept.clone_from(&archive);
    let host = place.fresh("host");
    let theirs = gnu_tar(&archive, &host);
    let goal = PathBuf::from(format!("/{number}"));
    let mut command = holdfast();
    command
        .args(["unpack", "-q", "--numeric-owner"])
        .arg(&archive);
    let ours = run(command.arg(format!("{}:{}", image.display(), goal.display())));
    let told = said(&ours);
    let wrong = |what: String| {
        Err(format!(
            "{shown}\n{what}\ntar:\n{}holdfast:\n{told}",
            said(&theirs)
        ))
    };
    if !matches!(ours.status.code(), Some(0 | 1)) {
        return wrong(format!("it ended with {}", ours.status));
    }
    let is_deliberate = DELIBERATE.iter().any(|(text, _)| told.contains(text));
    if ours.status.code() == Some(1) && is_deliberate {
        return Ok(());
    }
    if ours.status.success() != theirs.status.success() {
        return wrong(format!("tar: {}, holdfast: {}", theirs.status, ours.status));
    }
    if !ours.status.success() && told.is_empty() {
        return wrong("it does not say why".to_owned());
    }
    if damage == Damage::Stream && !ours.status.success() {
        return Ok(());
    }
    let mut expected = seen::on_host(&host, place.begun).map_err(|error| error.to_string())?;
    let volume = Volume::open_read_only(image).map_err(|error| error.to_string())?;
    let found = seen::in_volume(volume.file_system(), &goal, place.begun);
    let mut tree = match found {
        Ok(tree) => tree,
        Err(error) => return wrong(error.to_string()),
    };
    let whole = tree.clone();
    if told.contains("ends in the middle of") {
        // Both leave the begin of the file; GNU tar leaves all directories as they were made.
        return Ok(());
    }
    let both = (&mut expected, &mut tree);
    forget_deliberate(both, &shown, &told, place).map_err(|error| error.to_string())?;
    let differences = seen::differences(&expected, &tree);
    if !differences.is_empty() {
        return wrong(differences.join("\n"));
    }
    if ours.status.success() && damage == Damage::None {
        drop(volume);
        return packed_again(rng, place, image, &goal, &whole)
            .map_err(|what| format!("{shown}\nand packed again: {what}"));
    }
    Ok(())
}

/// Removes deliberate differences between GNU tar and holdfast.
fn forget_deliberate(
    (expected, tree): (&mut Tree, &mut Tree),
    shown: &str,
    told: &str,
    place: &Place,
) -> io::Result<()> {
    if told.contains("its mode is no number") {
        // GNU tar gives such a file all rights, of its owner too.
        forget(expected, |seen| seen.mode &= !0o7777);
        forget(tree, |seen| seen.mode &= !0o7777);
    }
    if shown.starts_with("\"python3") {
        // It writes 0.000000001 as 1e-09, which GNU tar takes for 1.
        let is_plain = |time: &(i64, i64)| !matches!(time.0, 0 | 1);
        forget(expected, |seen| seen.mtime = seen.mtime.filter(is_plain));
        forget(tree, |seen| seen.mtime = seen.mtime.filter(is_plain));
    }
    if shown.starts_with("\"bsdtar") {
        // GNU tar does not decode all that bsdtar encodes in names of attributes.
        let packed = seen::on_host(&place.path("tree"), place.begun)?;
        for (path, seen) in expected {
            if let Some(packed) = packed.get(path).filter(|_| !seen.xattrs.is_empty()) {
                seen.xattrs.clone_from(&packed.xattrs);
            }
        }
    }
    Ok(())
}

fn forget(tree: &mut Tree, what: impl Fn(&mut seen::Seen)) {
    tree.values_mut().for_each(what);
}

/// Forgets what a program does not restore, or not as it is.
fn not_restored_by(reader: Maker, tree: &mut Tree) {
    match reader {
        Maker::Gnu | Maker::Pax => {}
        Maker::Bsd => {
            // All of the directory that it is told to unpack in, and times before 1970.
            tree.remove(Path::new(""));
            forget(tree, |seen| {
                seen.data.clear();
                seen.mtime = seen.mtime.filter(|time| time.0 >= 0);
            });
        }
        Maker::Python => forget(tree, |seen| {
            seen.data.clear();
            seen.xattrs.clear();
            // Fractions of seconds are not exact, and links have no times.
            let has_time = seen.mode & seen::KIND != seen::SYMLINK;
            seen.mtime = seen.mtime.filter(|time| has_time && time.0 >= 0);
            seen.mtime = seen.mtime.map(|time| (time.0, 0));
        }),
    }
}

const EXTRACTALL: &str = "
import sys, tarfile
with tarfile.open(sys.argv[1]) as tar:
    tar.extractall(sys.argv[2], numeric_owner=True, filter='fully_trusted')
";

/// What the volume has is packed, and unpacked by one of the other programs.
fn packed_again(
    rng: &mut Rng,
    place: &Place,
    image: &Path,
    goal: &Path,
    tree: &Tree,
) -> Result<(), String> {
    let suffix = *rng.pick(&["tar", "tar.gz", "tar.xz", "tar.zst"]);
    let archive = place.path(&format!("again.{suffix}"));
    let mut command = holdfast();
    command
        .arg("pack")
        .arg(format!("{}:{}", image.display(), goal.display()));
    let packed = run(command.arg("-o").arg(&archive));
    if !packed.status.success() {
        return Err(format!("{}: {}", packed.status, said(&packed)));
    }
    let host = place.fresh("host");
    let mut expected = tree.clone();
    let reader = *rng.pick(&place.makers);
    let read = match reader {
        Maker::Gnu | Maker::Pax => gnu_tar(&archive, &host),
        Maker::Bsd => {
            let mut command = Command::new("bsdtar");
            command.args(["-xp", "--xattrs", "--acls", "--numeric-owner", "-f"]);
            command.env("LC_ALL", "C.UTF-8");
            run(command.arg(&archive).arg("-C").arg(&host))
        }
        // It knows no zstd everywhere.
        Maker::Python if suffix == "tar.zst" => return Ok(()),
        Maker::Python => {
            let mut command = Command::new("python3");
            run(command.args(["-c", EXTRACTALL]).arg(&archive).arg(&host))
        }
    };
    if !read.status.success() {
        return Err(format!("{reader:?}: {}: {}", read.status, said(&read)));
    }
    let mut found = seen::on_host(&host, place.begun).map_err(|error| error.to_string())?;
    for tree in [&mut expected, &mut found] {
        not_restored_by(reader, tree);
    }
    if reader == Maker::Bsd {
        // It does not decode what GNU tar encodes in names of attributes.
        forget(&mut expected, |seen| {
            let names = std::mem::take(&mut seen.xattrs).into_iter();
            let raw = |name: String| name.replace('%', "%25").replace('=', "%3D");
            seen.xattrs = names.map(|(name, value)| (raw(name), value)).collect();
        });
    }
    let differences = seen::differences(&found, &expected);
    if differences.is_empty() {
        return Ok(());
    }
    Err(format!("{reader:?}:\n{}", differences.join("\n")))
}

#[test]
fn archives_are_the_same_trees_as_for_other_programs() {
    if !rustix::process::geteuid().is_root() {
        return skipped("only root restores owners");
    }
    let makers = makers::makers();
    if !makers.contains(&Maker::Gnu) {
        return;
    }
    let (cases, seed) = (effort().of(30, 600), seed(1));
    let dir = tempfile::tempdir().expect("a directory");
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a clock");
    let place = Place {
        dir: dir.path().to_owned(),
        makers,
        begun: since.as_secs().cast_signed() - 1,
    };
    // In memory, where there is such a place: each run of the command makes its volume durable.
    let memory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let memory = memory.expect("a directory");
    let image = memory.path().join("volume.hf");
    let mut failures = Vec::new();
    for number in 0..cases {
        if number % TOGETHER == 0 {
            let mut command = holdfast();
            let made = run(command
                .args(["mkfs", "--force", "--size", "64m"])
                .arg(&image));
            assert!(made.status.success(), "{}", said(&made));
        }
        let seed = seed.wrapping_add(number);
        let mut archive = PathBuf::new();
        if let Err(what) = case(&mut Rng::new(seed), &place, &image, number, &mut archive) {
            let suffix = archive.extension().unwrap_or_default().display();
            let kept = format!("{}/archive-{seed}.{suffix}", env!("CARGO_TARGET_TMPDIR"));
            fs::copy(&archive, &kept).expect("there is room");
            let repeat = format!("HOLDFAST_SEED={seed}");
            failures.push(format!("{repeat}, kept as {kept}: {what}\n"));
        }
    }
    let count = failures.len();
    assert!(
        failures.is_empty(),
        "{count} of {cases} differ:\n{}",
        failures.join("\n")
    );
}
