//! Processes that keep a mount busy.

use std::{
    fmt, fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::channel,
    },
    thread,
    time::{Duration, Instant},
};

/// Most holders in a message.
const SHOWN_MAX: usize = 8;
/// Scanning threads.
const SCANNERS: usize = 4;
/// Longest scan.
const SCAN_TIME: Duration = Duration::from_secs(2);

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
        for (index, holder) in self.0.iter().take(SHOWN_MAX).enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            holder.fmt(f)?;
        }
        match self.0.len().saturating_sub(SHOWN_MAX) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

/// Finds the processes that use something below `dir` (one reason each).
///
/// Links in `/proc` are read, never followed, so a dead mount does not block this. A process that
/// blocks its reader (during execve(2), say) occupies one of several threads, which is abandoned at
/// the end.
#[must_use]
pub fn holders(dir: &Path) -> Holders {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Holders::default();
    };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let pids: Arc<[u32]> = processes.flatten().filter_map(number).collect();
    let next = Arc::new(AtomicUsize::new(0));
    let (sender, found) = channel();
    for _ in 0..SCANNERS {
        let (pids, next, sender) = (pids.clone(), next.clone(), sender.clone());
        let dir = dir.to_owned();
        let scan = move || {
            while let Some(&pid) = pids.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Some(holder) = look_at(pid, &dir) {
                    // The receiver is dropped when the time is over.
                    let _ = sender.send(holder);
                }
            }
        };
        // With fewer threads it takes longer; with none, no holder is found.
        let _ = thread::Builder::new()
            .name("holdfast-scan".into())
            .spawn(scan);
    }
    drop(sender);
    let deadline = Instant::now() + SCAN_TIME;
    let mut holders = Vec::new();
    while let Some(left) = deadline.checked_duration_since(Instant::now())
        && let Ok(holder) = found.recv_timeout(left)
    {
        holders.push(holder);
    }
    holders.sort_by_key(|holder: &Holder| holder.pid);
    Holders(holders)
}

fn look_at(pid: u32, dir: &Path) -> Option<Holder> {
    let process = Path::new("/proc").join(pid.to_string());
    let (how, path) = reason(&process, dir)?;
    let command = fs::read_to_string(process.join("comm")).unwrap_or_default();
    Some(Holder {
        pid,
        command: command.trim_end().into(),
        how,
        path,
    })
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
    let mut descriptors = fs::read_dir(process.join("fd"))
        .into_iter()
        .flatten()
        .flatten();
    if let Some(target) = descriptors.find_map(|entry| link(entry.path())) {
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
