//! Control groups that limit memory: version 2 where it has the controller, else version 1.

use anyhow::{Context, Result};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// Where mounts are told.
const MOUNTS: &str = "/proc/self/mounts";

/// How often the removal of a group is tried: its processes leave it a moment after their end.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// Why there is no control group: no error, but nothing that can be measured in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unfit(String);

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The files of a hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    root: PathBuf,
    limit: &'static str,
    /// Tells `oom_kill N`.
    events: &'static str,
}

/// A control group, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct ControlGroup {
    path: PathBuf,
    events: &'static str,
}

impl ControlGroup {
    /// One of a new name, that may hold so many bytes.
    ///
    /// # Errors
    /// If nothing limits memory here, or this process may not make groups.
    pub(crate) fn new(bytes: u64) -> Result<Self, Unfit> {
        let mounts = fs::read_to_string(MOUNTS).unwrap_or_default();
        let hierarchy = hierarchy(&mounts)
            .ok_or_else(|| Unfit("no control groups limit memory here".to_owned()))?;
        let unfit = |error: std::io::Error| {
            Unfit(format!(
                "no control group can be made in {}: {error}",
                hierarchy.root.display()
            ))
        };
        let group = (0..u32::MAX).find_map(|number| {
            let name = format!("holdfast-bench-{}-{number}", std::process::id());
            let path = hierarchy.root.join(name);
            match fs::create_dir(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => None,
                made => Some(made.map(|()| path)),
            }
        });
        let group = Self {
            path: group
                .ok_or_else(|| Unfit("no name is free".to_owned()))?
                .map_err(unfit)?,
            events: hierarchy.events,
        };
        fs::write(group.path.join(hierarchy.limit), bytes.to_string()).map_err(unfit)?;
        Ok(group)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Processes that the kernel has killed in it because its memory was used up.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub(crate) fn kills(&self) -> Result<u64> {
        let path = self.path.join(self.events);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok(kills(&text))
    }
}

/// Puts this process into the group at this path.
///
/// # Errors
/// If it may not go there.
pub(crate) fn enter(path: &Path) -> Result<()> {
    let processes = path.join("cgroup.procs");
    let own = std::process::id().to_string();
    fs::write(&processes, own).with_context(|| processes.display().to_string())
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let mut tries = 1;
        while let Err(error) = fs::remove_dir(&self.path) {
            if tries == TRIES {
                eprintln!("the control group {} stays: {error}", self.path.display());
                return;
            }
            tries += 1;
            sleep(PAUSE);
        }
    }
}

/// The hierarchy that limits memory, by what is mounted.
fn hierarchy(mounts: &str) -> Option<Hierarchy> {
    let mounted = |kind: &'static str| {
        mounts.lines().filter_map(move |line| {
            let mut fields = line.split(' ').skip(1);
            let (path, found) = (fields.next()?, fields.next()?);
            (found == kind).then(|| (PathBuf::from(path), fields.next().unwrap_or("").to_owned()))
        })
    };
    let unified = mounted("cgroup2").find(|(root, _)| has_memory(root));
    if let Some((root, _)) = unified {
        return Some(Hierarchy {
            root,
            limit: "memory.max",
            events: "memory.events",
        });
    }
    let mut first = mounted("cgroup");
    let (root, _) = first.find(|(_, options)| options.split(',').any(|it| it == "memory"))?;
    Some(Hierarchy {
        root,
        limit: "memory.limit_in_bytes",
        events: "memory.oom_control",
    })
}

/// Do groups below this root have the controller of memory? It is passed on to them if need be.
fn has_memory(root: &Path) -> bool {
    let lists = |file| {
        let text = fs::read_to_string(root.join(file)).unwrap_or_default();
        text.split_whitespace().any(|it| it == "memory")
    };
    lists("cgroup.controllers")
        && (lists("cgroup.subtree_control")
            || fs::write(root.join("cgroup.subtree_control"), "+memory").is_ok())
}

/// The count of kills among a group's events.
fn kills(events: &str) -> u64 {
    let mut lines = events.lines();
    let count = lines.find_map(|line| line.strip_prefix("oom_kill "));
    count
        .and_then(|count| count.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_version_serves_where_the_second_has_no_memory() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        fs::create_dir_all(&two).expect("made");
        let mounts = format!(
            "cgroup2 {} cgroup2 rw 0 0\ncg {}/cpu cgroup rw,cpu 0 0\ncg {} cgroup rw,memory 0 0\n",
            two.display(),
            one.display(),
            one.display()
        );
        let found = hierarchy(&mounts).expect("version 1");
        assert_eq!((found.root, found.limit), (one, "memory.limit_in_bytes"));
        fs::write(two.join("cgroup.controllers"), "cpu memory\n").expect("written");
        let found = hierarchy(&mounts).expect("version 2");
        assert_eq!((&found.root, found.limit), (&two, "memory.max"));
        let passed_on = fs::read_to_string(two.join("cgroup.subtree_control"));
        assert_eq!(passed_on.expect("written"), "+memory");
        assert_eq!(hierarchy("tmpfs /tmp tmpfs rw 0 0\n"), None);
    }

    #[test]
    fn kills_are_counted_in_events_of_either_version() {
        assert_eq!(kills("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"), 2);
        assert_eq!(kills("low 0\noom 5\noom_kill 3\noom_group_kill 1\n"), 3);
        assert_eq!(kills("low 0\n"), 0);
    }

    #[test]
    fn a_group_holds_a_process_and_goes_when_it_is_empty() {
        let group = match ControlGroup::new(1 << 30) {
            Ok(group) => group,
            Err(unfit) => return eprintln!("skipped: {unfit}"),
        };
        let path = group.path().to_owned();
        let child = std::process::Command::new("sleep").arg("100").spawn();
        let mut child = child.expect("started");
        fs::write(path.join("cgroup.procs"), child.id().to_string()).expect("entered");
        let inside = fs::read_to_string(path.join("cgroup.procs")).expect("told");
        assert_eq!(inside.trim(), child.id().to_string());
        assert_eq!(group.kills().expect("told"), 0);
        child.kill().expect("killed");
        child.wait().expect("ended");
        drop(group);
        assert!(!path.exists());
    }
}
