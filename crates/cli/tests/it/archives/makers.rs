//! Programs that write archives.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use holdfast_testkit::rng::Rng;
use holdfast_testkit::skip::skipped;

/// What Python runs: the format, the archive and the tree are its arguments.
const TARFILE: &str = "
import sys, tarfile, os
kind, archive, tree, mark = sys.argv[1:]
os.chdir(tree)
more = {'pax_headers': {'comment': 'x', 'mtime': '77.5'}} if mark == 'global' else {}
with tarfile.open(archive, 'w', format=getattr(tarfile, kind), **more) as tar:
    for name in sorted(os.listdir(b'.')):
        try:
            tar.add(os.fsdecode(name))
        except ValueError:
            pass
";

/// A program that is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Maker {
    Gnu,
    Bsd,
    Python,
    Pax,
}

/// Is a program installed?
pub(crate) fn runs(program: &str, argument: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(argument).stdin(Stdio::null());
    let output = command.output();
    output.is_ok_and(|output| program != "tar" || output.stdout.starts_with(b"tar (GNU tar)"))
}

/// The installed programs; others are printed as skipped.
pub(crate) fn makers() -> Vec<Maker> {
    let all = [
        (Maker::Gnu, "tar", "--version"),
        (Maker::Bsd, "bsdtar", "--version"),
        (Maker::Python, "python3", "--version"),
        (Maker::Pax, "pax", "-V"),
    ];
    let mut found = Vec::new();
    for (maker, program, argument) in all {
        if runs(program, argument) {
            found.push(maker);
        } else {
            skipped(&format!("there is no {program} here"));
        }
    }
    found
}

fn arguments(line: &str) -> Vec<OsString> {
    line.split(' ')
        .filter(|word| !word.is_empty())
        .map(OsString::from)
        .collect()
}

/// Writes a tree into an archive; returns the command line. Files that the format cannot hold are
/// left out.
pub(crate) fn make(rng: &mut Rng, maker: Maker, tree: &Path, archive: &Path) -> String {
    let mut command;
    match maker {
        Maker::Gnu => {
            let format = *rng.pick(&["v7", "oldgnu", "gnu", "ustar", "posix", "posix"]);
            command = Command::new("tar");
            command.arg(format!("--format={format}"));
            if format == "posix" {
                let versions = ["0.0", "0.1", "1.0"];
                command.arg(format!("--sparse-version={}", rng.pick(&versions)));
                if rng.one_in(2) {
                    command.args(["--xattrs", "--xattrs-include=*", "--acls"]);
                }
            }
            let rest = ["gnu", "oldgnu", "posix"].contains(&format);
            for (option, odds) in [("-S", 2), ("-Vlabel", 5), ("-g/dev/null", 5)] {
                if rest && rng.one_in(odds) {
                    command.arg(option);
                }
            }
            for (option, odds) in [
                ("--hard-dereference", 6),
                ("--numeric-owner", 2),
                ("-b1", 3),
            ] {
                if rng.one_in(odds) {
                    command.arg(option);
                }
            }
            command.arg("-cf").arg(archive).arg("-C").arg(tree);
            command.args(*rng.pick(&[&["."][..], &["--transform=s,^\\.,x/y,", "."]]));
        }
        Maker::Bsd => {
            let format = *rng.pick(&["pax", "pax", "rpax", "gnutar", "ustar", "v7"]);
            command = Command::new("bsdtar");
            command.arg(format!("--format={format}"));
            if rng.one_in(2) {
                command.args(["--xattrs", "--acls"]);
            }
            if rng.one_in(2) {
                command.args(arguments("--no-read-sparse"));
            }
            command.arg("-cf").arg(archive).arg("-C").arg(tree).arg(".");
        }
        Maker::Python => {
            let format = *rng.pick(&["USTAR_FORMAT", "GNU_FORMAT", "PAX_FORMAT"]);
            command = Command::new("python3");
            command.args(["-c", TARFILE, format]).arg(archive).arg(tree);
            command.arg(rng.pick(&["none", "global"]));
        }
        Maker::Pax => {
            command = Command::new("pax");
            command.args(["-w", "-x", *rng.pick(&["ustar", "tar"]), "-f"]);
            command.arg(archive).arg(".").current_dir(tree);
        }
    }
    command.stdin(Stdio::null());
    let shown = format!("{command:?}");
    // Some warn of names and types that their format cannot hold.
    let output = command.output().expect("it ran before");
    if !archive.exists() {
        panic!("{shown}: {}", String::from_utf8_lossy(&output.stderr));
    }
    shown
}

/// A compression, by the program of that name.
const PROGRAMS: [(&str, &str); 4] = [
    ("gzip", "gz"),
    ("xz", "xz"),
    ("zstd", "zst"),
    ("pzstd", "zst"),
];

/// Compresses an archive by one of the programs, in one piece or several; returns the new name.
pub(crate) fn compress(rng: &mut Rng, plain: &[u8], archive: &Path) -> &'static str {
    let (program, suffix) = *rng.pick(&PROGRAMS);
    let pieces = 1 + rng.index(3);
    let mut compressed = Vec::new();
    let mut rest = plain;
    for left in (0..pieces).rev() {
        let (piece, more) = rest.split_at(if left == 0 {
            rest.len()
        } else {
            rng.index(rest.len() + 1)
        });
        rest = more;
        // pzstd reads files only.
        let file = archive.with_extension("piece");
        fs::write(&file, piece).expect("there is room");
        let mut command = Command::new(program);
        command.args(["-q", "-c"]).arg(&file).stdin(Stdio::null());
        match command.output() {
            Ok(output) if output.status.success() => compressed.extend(output.stdout),
            _ => {
                skipped(&format!("there is no {program} here"));
                fs::write(archive, plain).expect("there is room");
                return "tar";
            }
        }
    }
    let mut file = fs::File::create(archive).expect("there is room");
    file.write_all(&compressed).expect("there is room");
    suffix
}
