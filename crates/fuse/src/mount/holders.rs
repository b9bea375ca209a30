//! Who keeps a mount busy.

use std::{
    collections::BTreeMap,
    fmt, fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::mpsc::{Sender, channel},
    thread,
    time::{Duration, Instant},
};

/// Holders that are told, at most.
const TOLD_MAX: usize = 8;
/// How long they are looked for.
const PATIENCE: Duration = Duration::from_secs(2);

/// A process that uses something below a mount point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// Its command's name.
    pub command: String,
    /// What it uses, such as `working directory` or `open file`.
    pub how: &'static str,
    /// The file or directory.
    pub path: PathBuf,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (pid {}): {} {:?}",
            self.command, self.pid, self.how, self.path
        )
    }
}

/// A list of holders, for messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders(pub Vec<Holder>);

impl fmt::Display for Holders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("by a process that cannot be seen from here, or a mount below it");
        }
        f.write_str("by ")?;
        for (index, holder) in self.0.iter().take(TOLD_MAX).enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            holder.fmt(f)?;
        }
        match self.0.len().saturating_sub(TOLD_MAX) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

/// Finds the processes that use something below `dir` (one reason each). Links in `/proc` are
/// read, never followed, so a dead mount does not hang this; but looking at a process that
/// itself hangs can, so what has not been found in two seconds is not told.
#[must_use]
pub fn holders(dir: &Path) -> Holders {
    let (found, all_found) = channel();
    let below = dir.to_owned();
    // The thread may stay behind, waiting for a process that hangs.
    let search = thread::Builder::new()
        .name("holders".into())
        .spawn(move || search(&below, &found));
    let deadline = Instant::now() + PATIENCE;
    let mut holders = BTreeMap::new();
    while search.is_ok()
        && let Ok(holder) =
            all_found.recv_timeout(deadline.saturating_duration_since(Instant::now()))
    {
        let holder: Holder = holder;
        holders.insert(holder.pid, holder);
    }
    Holders(holders.into_values().collect())
}

fn search(dir: &Path, found: &Sender<Holder>) {
    let Ok(processes) = fs::read_dir("/proc") else {
        return;
    };
    for process in processes.flatten() {
        let name = process.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if let Some((how, path)) = reason(&process.path(), dir) {
            let command = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            let command = command.trim_end().into();
            if found
                .send(Holder {
                    pid,
                    command,
                    how,
                    path,
                })
                .is_err()
            {
                return;
            }
        }
    }
}

/// Why this process holds the mount.
fn reason(process: &Path, dir: &Path) -> Option<(&'static str, PathBuf)> {
    let link = |path: PathBuf| {
        fs::read_link(path)
            .ok()
            .filter(|target| target.starts_with(dir))
    };
    for (file, how) in [
        ("cwd", "working directory"),
        ("root", "root directory"),
        ("exe", "program"),
    ] {
        if let Some(target) = link(process.join(file)) {
            return Some((how, target));
        }
    }
    let descriptors = fs::read_dir(process.join("fd"))
        .into_iter()
        .flatten()
        .flatten();
    if let Some(target) = descriptors.filter_map(|entry| link(entry.path())).next() {
        return Some(("open file", target));
    }
    let maps = fs::read(process.join("maps")).ok()?;
    maps.split(|&byte| byte == b'\n').find_map(|line| {
        let start = line.iter().position(|&byte| byte == b'/')?;
        let path = Path::new(std::ffi::OsStr::from_bytes(line.get(start..)?));
        path.starts_with(dir)
            .then(|| ("mapped file", path.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_found_by_the_file_it_holds() {
        let dir = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(dir.path()).unwrap();
        assert_eq!(holders(&path).0, []);
        let _file = fs::File::create(path.join("held")).unwrap();
        let found = holders(&path);
        assert_eq!(found.0.len(), 1);
        assert_eq!(found.0[0].pid, std::process::id());
        assert!(found.to_string().contains("open file"), "{found}");
    }
}
