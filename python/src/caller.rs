//! The caller that a volume acts for: the user that this process runs as.

use rustix::process::{getegid, geteuid, getgroups};

use holdfast::{Caller, Caps};

/// Where Linux shows the umask without changing it.
const STATUS: &str = "/proc/self/status";
const UMASK: &str = "Umask:";
/// If it cannot be read.
const USUAL_UMASK: u16 = 0o022;

/// This process's user, groups and umask. The superuser, or any user with `superuser`, has all
/// capabilities.
pub(crate) fn of_process(superuser: bool) -> Caller {
    let (user, group) = (geteuid(), getegid());
    let groups: Vec<u32> = getgroups()
        .unwrap_or_default()
        .iter()
        .map(|group| group.as_raw())
        .collect();
    let caller = Caller::user(user.as_raw(), group.as_raw())
        .with_groups(&groups)
        .with_umask(umask());
    match superuser || user.is_root() {
        true => Caller {
            caps: Caps::all(),
            ..caller
        },
        false => caller,
    }
}

fn umask() -> u16 {
    let status = std::fs::read_to_string(STATUS).unwrap_or_default();
    let text = status.lines().find_map(|line| line.strip_prefix(UMASK));
    text.and_then(|text| u16::from_str_radix(text.trim(), 8).ok())
        .unwrap_or(USUAL_UMASK)
}
