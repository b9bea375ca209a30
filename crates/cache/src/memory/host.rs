//! How much memory there is: of the machine, and of the control groups of this process.

use std::fs;
use std::path::{Path, PathBuf};

/// The files of a control group that limit memory. Files without a limit say `max`.
const LIMITS: [&str; 3] = ["memory.max", "memory.high", "memory.limit_in_bytes"];

/// Bytes of the machine.
#[must_use]
pub fn machine() -> u64 {
    let info = rustix::system::sysinfo();
    // The fields' width depends on the processor.
    (info.totalram as u64).saturating_mul(u64::from(info.mem_unit).max(1))
}

/// The tightest limit of the control groups that this process is in, in bytes.
#[must_use]
pub fn control_groups() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let folders = mounts.lines().filter_map(Hierarchy::of_mount);
    let limits = folders.filter_map(|hierarchy| {
        let path = hierarchy.path_in(&groups)?;
        tightest(&hierarchy.mounted_at, &path)
    });
    limits.min()
}

/// A mounted hierarchy of control groups that may limit memory.
#[derive(Debug, PartialEq, Eq)]
struct Hierarchy {
    unified: bool,
    /// The group at the root of the mount.
    root: String,
    mounted_at: PathBuf,
}

impl Hierarchy {
    /// Parses a line of proc(5)'s `mountinfo`.
    fn of_mount(line: &str) -> Option<Self> {
        let (place, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let (name, _source, options) = (kind.next()?, kind.next()?, kind.next()?);
        let unified = match name {
            "cgroup2" => true,
            "cgroup" if options.split(',').any(|option| option == "memory") => false,
            _ => return None,
        };
        let mut place = place.split(' ').skip(3);
        let root = place.next()?.to_owned();
        let mounted_at = PathBuf::from(place.next()?.replace("\\040", " "));
        Some(Self {
            unified,
            root,
            mounted_at,
        })
    }

    /// The group of the process below the mount, by proc(5)'s `cgroup`.
    fn path_in(&self, groups: &str) -> Option<String> {
        let path = groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            let is_it = match self.unified {
                true => number == "0" && controllers.is_empty(),
                false => controllers.split(',').any(|name| name == "memory"),
            };
            is_it.then_some(path)
        })?;
        // In a container the mount shows a part of the tree.
        let below = match self.root.as_str() {
            "/" => path,
            root => path.strip_prefix(root).unwrap_or("/"),
        };
        (!below.split('/').any(|part| part == "..")).then(|| below.to_owned())
    }
}

/// The least limit of a group and the groups above it.
fn tightest(mounted_at: &Path, below: &str) -> Option<u64> {
    let mut group = mounted_at.join(below.trim_start_matches('/'));
    let mut least = None;
    loop {
        let limits = LIMITS.iter().filter_map(|name| {
            let text = fs::read_to_string(group.join(name)).ok()?;
            // `max` is no limit.
            text.trim_end().parse::<u64>().ok()
        });
        least = limits.chain(least).min();
        if group == mounted_at || !group.pop() {
            return least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str =
        "30 20 0:26 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory";
    const V2: &str = "31 20 0:27 /docker/ab /sys/fs/cg\\040roup rw - cgroup2 cgroup2 rw";

    #[test]
    fn hierarchies_are_found_in_the_mount_table() {
        let v1 = Hierarchy::of_mount(V1).unwrap();
        assert!(!v1.unified);
        assert_eq!(v1.mounted_at, Path::new("/sys/fs/cgroup/memory"));
        let v2 = Hierarchy::of_mount(V2).unwrap();
        assert!(v2.unified);
        assert_eq!(v2.mounted_at, Path::new("/sys/fs/cg roup"));
        for other in [
            "30 20 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu",
            "22 1 8:1 / / rw - ext4 /dev/sda1 rw",
            "",
        ] {
            assert_eq!(Hierarchy::of_mount(other), None, "{other}");
        }
    }

    #[test]
    fn a_process_is_found_in_its_hierarchy() {
        let groups = "9:cpu,memory:/a/b\n1:name=systemd:/x\n0::/docker/ab/c\n";
        let v1 = Hierarchy::of_mount(V1).unwrap();
        let v2 = Hierarchy::of_mount(V2).unwrap();
        assert_eq!(v1.path_in(groups).as_deref(), Some("/a/b"));
        assert_eq!(v2.path_in(groups).as_deref(), Some("/c"));
        assert_eq!(v2.path_in("0::/elsewhere\n").as_deref(), Some("/"));
        assert_eq!(
            v1.path_in("5:memory:/../x\n"),
            None,
            "outside of what is mounted"
        );
        assert_eq!(v1.path_in("0::/a\n"), None);
    }

    #[test]
    fn the_tightest_limit_on_the_way_up_counts() {
        let place = std::env::temp_dir().join(format!("holdfast-cgroup-{}", std::process::id()));
        let inner = place.join("a/b");
        fs::create_dir_all(&inner).unwrap();
        assert_eq!(tightest(&place, "/a/b"), None);
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        fs::write(inner.join("memory.high"), "9000\n").unwrap();
        fs::write(place.join("a/memory.max"), "5000\n").unwrap();
        assert_eq!(tightest(&place, "/a/b"), Some(5000));
        assert_eq!(tightest(&place, "/a"), Some(5000));
        assert_eq!(tightest(&place, "/"), None);
        fs::write(place.join("memory.limit_in_bytes"), "4000\n").unwrap();
        assert_eq!(tightest(&place, "/a/b"), Some(4000));
        fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn the_machine_has_memory() {
        assert!(machine() > 1 << 24);
    }
}
