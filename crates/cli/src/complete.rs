//! What may follow on a command line, for the shells' completions.
//!
//! The shell calls this program with `COMPLETE=SHELL`, and `clap_complete` finds the argument. The
//! functions here answer for its value. An error means that there is nothing to propose.

use crate::copy::place::Place;
use crate::mount::{known::KNOWN, options::words};
use clap_complete::CompletionCandidate as Candidate;
use clap_complete::engine::{PathCompleter, ValueCompleter as _};
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};
use holdfast::{FileSystem, Volume};
use holdfast_fuse::mount::mounts;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

/// The environment variable that asks for completions, and has the name of the shell.
pub(crate) const VARIABLE: &str = "COMPLETE";
/// The shells that completions are for.
pub(crate) const SHELLS: Shells<'static> =
    Shells(&[&WholeWords, &Elvish, &Fish, &Powershell, &Zsh]);
/// Most files of a directory that are looked into for a volume.
const LOOKED_INTO: usize = 64;

/// bash, whose words end at `=` and `:`: the script puts them together.
struct WholeWords;

impl EnvCompleter for WholeWords {
    fn name(&self) -> &'static str {
        Bash.name()
    }

    fn is(&self, name: &str) -> bool {
        Bash.is(name)
    }

    fn write_registration(
        &self,
        var: &str,
        _name: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn io::Write,
    ) -> io::Result<()> {
        let script = include_str!("../shell/holdfast.bash");
        let quoted = format!("'{}'", completer.replace('\'', r"'\''"));
        let script = script
            .replace("VARIABLE", var)
            .replace("COMPLETER", &quoted);
        buf.write_all(script.replace("BIN", bin).as_bytes())
    }

    fn write_complete(
        &self,
        cmd: &mut clap::Command,
        args: Vec<OsString>,
        current_dir: Option<&Path>,
        buf: &mut dyn io::Write,
    ) -> io::Result<()> {
        Bash.write_complete(cmd, args, current_dir, buf)
    }
}

/// The last option of a list of `-o`: its name, or its value.
pub(crate) fn mount_options(current: &OsStr) -> Vec<Candidate> {
    let Some(text) = current.to_str() else {
        return Vec::new();
    };
    let (before, item) = text.split_at(text.rfind(',').map_or(0, |at| at + 1));
    let (begin, tails) = match item.split_once('=') {
        None => (item, KNOWN.to_vec()),
        Some((name, value)) => (value, words(name)),
    };
    let fixed = &text[..before.len() + item.len() - begin.len()];
    let tails = tails.into_iter().filter(|tail| tail.starts_with(begin));
    tails
        .map(|tail| Candidate::new(format!("{fixed}{tail}")))
        .collect()
}

/// The mount points of holdfast.
pub(crate) fn mount_points(current: &OsStr) -> Vec<Candidate> {
    let mounts = mounts().unwrap_or_default().into_iter();
    let points = mounts.filter(|mounted| mounted.is_holdfast());
    let points = points.map(|mounted| mounted.mount_point.into_os_string());
    let points = points.filter(|point| point.as_bytes().starts_with(current.as_bytes()));
    points.map(Candidate::new).collect()
}

/// Mount points of holdfast, and all paths.
pub(crate) fn targets(current: &OsStr) -> Vec<Candidate> {
    let mut found = mount_points(current);
    for path in PathCompleter::any().complete(current) {
        if !found
            .iter()
            .any(|other| other.get_value() == path.get_value())
        {
            found.push(path);
        }
    }
    found
}

/// What can be mounted.
pub(crate) fn sources(current: &OsStr) -> Vec<Candidate> {
    let memory = "mem:";
    let mut found = PathCompleter::any().complete(current);
    if memory.as_bytes().starts_with(current.as_bytes()) {
        found.push(Candidate::new(memory));
    }
    found
}

/// Paths of the host, of mounts, and in volumes that are not mounted: `VOLUME:/PATH`.
pub(crate) fn places(current: &OsStr) -> Vec<Candidate> {
    let place = Place::of(current);
    if let Some(image) = place.image() {
        return inside(current, image, place.path()).unwrap_or_default();
    }
    let mut found = targets(current);
    let volumes: Vec<_> = found
        .iter()
        .map(|candidate| candidate.get_value())
        .filter(|path| Path::new(path).is_file())
        .take(LOOKED_INTO)
        .filter(|path| Volume::inspect(path).is_ok())
        .map(|path| [path.as_bytes(), b":/"].concat())
        .collect();
    found.extend(
        volumes
            .into_iter()
            .map(OsString::from_vec)
            .map(Candidate::new),
    );
    found
}

/// The names in a volume that continue `path`, each after the text before its last name.
fn inside(current: &OsStr, image: &Path, path: &Path) -> io::Result<Vec<Candidate>> {
    let volume = Volume::open_read_only(image)?;
    let found = below(volume.file_system(), current, path);
    volume.close()?;
    found
}

fn below(fs: &FileSystem, current: &OsStr, path: &Path) -> io::Result<Vec<Candidate>> {
    let path = path.as_os_str().as_bytes();
    let at = path
        .iter()
        .rposition(|&byte| byte == b'/')
        .map_or(0, |at| at + 1);
    let (dir, begin) = path.split_at(at);
    let before = &current.as_bytes()[..current.len() - begin.len()];
    let mut found = Vec::new();
    for entry in fs.read_dir(OsStr::from_bytes(dir))? {
        let entry = entry?;
        let name = entry.file_name();
        if name.as_bytes().starts_with(begin) {
            let end: &[u8] = if entry.file_type()?.is_dir() {
                b"/"
            } else {
                b""
            };
            let whole = [before, name.as_bytes(), end].concat();
            found.push(Candidate::new(OsString::from_vec(whole)));
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(found: Vec<Candidate>) -> Vec<String> {
        let texts = found.iter().map(|found| found.get_value().display());
        texts.map(|text| text.to_string()).collect()
    }

    #[test]
    fn names_and_values_of_options_are_proposed() {
        let of = |text: &str| values(mount_options(text.as_ref()));
        assert_eq!(of("allow_"), ["allow_other"]);
        assert_eq!(of("ro,nr_"), ["ro,nr_inodes="]);
        assert_eq!(
            of("ro,transport="),
            [
                "ro,transport=auto",
                "ro,transport=uring",
                "ro,transport=dev"
            ]
        );
        assert_eq!(of("locks=s"), ["locks=served"]);
        assert!(of("frob").is_empty() && of("commit=").is_empty());
        assert_eq!(of("").len(), KNOWN.len());
    }

    #[test]
    fn paths_in_a_volume_are_proposed() {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("data.hf");
        let volume = Volume::builder().size(64 << 20).create(&image).unwrap();
        volume.create_dir_all("/docs/deep").unwrap();
        volume.write("/docs/dot", "x").unwrap();
        volume.close().unwrap();
        let of = |text: String| values(places(text.as_ref()));
        let image = image.to_str().unwrap();
        assert_eq!(
            of(image.to_owned()),
            [image.to_owned(), format!("{image}:/")]
        );
        assert_eq!(of(format!("{image}:/")), [format!("{image}:/docs/")]);
        let both = [format!("{image}:/docs/deep/"), format!("{image}:/docs/dot")];
        assert_eq!(of(format!("{image}:/docs/d")), both);
        assert!(of(format!("{image}:/none/x")).is_empty());
        assert!(of(format!("{image}.no:/")).is_empty());
    }
}
