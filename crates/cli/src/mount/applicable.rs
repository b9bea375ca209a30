//! Refuses options that have no effect on the source.

use super::options::{Choice, Plan};
use crate::{
    message::{Failure, Result, refuse as refuse_conflict},
    source::Source,
};

/// An option, ending in `=` or `/` for any value that follows; why it has no effect; the remedy.
type Rule = (&'static str, &'static str, &'static str);

const LASTS: &str = "what `mem:` holds is in memory alone";
const ON_A_VOLUME: &str = "durable files need a volume";
const NEW: &str = "`mem:` is new at each mount";
const NO_JOURNAL: &str = "there is no journal to be replayed";
const NO_DEVICE: &str = "it lies on no device of its own";
const OTHERS: &str = "no other process changes this source";
const FILES: &str = "no files of the host are behind what is mounted here";
const OF_DIRECTORIES: &str = "it is for a directory as SOURCE";
const AS_IT_IS: &str = "a directory is mounted as it is";
const ITS_LIMIT: &str = "the host limits what a directory holds";
const TIMES: &str = "the times are the host's";
const LEAVE_OUT: &str = "leave it out";

const MEMORY: [Rule; 17] = [
    ("memory=", LASTS, "the most that it may hold: size=AMOUNT"),
    ("cache=", LASTS, "the most that it may hold: size=AMOUNT"),
    ("commit=", LASTS, ON_A_VOLUME),
    ("sync", LASTS, ON_A_VOLUME),
    ("dirsync", LASTS, ON_A_VOLUME),
    ("lazytime", LASTS, ON_A_VOLUME),
    ("statahead=", LASTS, LEAVE_OUT),
    ("create", NEW, LEAVE_OUT),
    (
        "create_size=",
        NEW,
        "the most that it may hold: size=AMOUNT",
    ),
    ("norecovery", NO_JOURNAL, LEAVE_OUT),
    ("noload", NO_JOURNAL, LEAVE_OUT),
    ("fuseblk=on", NO_DEVICE, LEAVE_OUT),
    ("discard", NO_DEVICE, LEAVE_OUT),
    ("valid=", OTHERS, OF_DIRECTORIES),
    ("told", OTHERS, OF_DIRECTORIES),
    ("exclusive", OTHERS, OF_DIRECTORIES),
    ("passthrough=", FILES, OF_DIRECTORIES),
];

const VOLUME: [Rule; 6] = [
    (
        "size=",
        "only `mem:` has such a limit",
        "the size of a new image file: --create --size AMOUNT",
    ),
    (
        "nr_inodes=",
        "only `mem:` has such a limit",
        "the size of a new image file: --create --size AMOUNT",
    ),
    ("valid=", OTHERS, OF_DIRECTORIES),
    ("told", OTHERS, OF_DIRECTORIES),
    ("exclusive", OTHERS, OF_DIRECTORIES),
    ("passthrough=", FILES, OF_DIRECTORIES),
];

/// Rules for a volume without `create`.
const VOLUME_AS_IT_IS: [Rule; 4] = [
    ("mode=", HAS_ITS_ROOT, CHANGE_ROOT),
    ("uid=", HAS_ITS_ROOT, CHANGE_ROOT),
    ("gid=", HAS_ITS_ROOT, CHANGE_ROOT),
    (
        "create_size=",
        "no image file is made",
        "to make one where there is none: create",
    ),
];
const HAS_ITS_ROOT: &str = "the root directory of a volume that exists has its own";
const CHANGE_ROOT: &str = "chmod or chown the mount point once it is mounted";

const DIRECTORY: [Rule; 16] = [
    ("create", AS_IT_IS, LEAVE_OUT),
    ("create_size=", AS_IT_IS, LEAVE_OUT),
    ("size=", ITS_LIMIT, LEAVE_OUT),
    ("nr_inodes=", ITS_LIMIT, LEAVE_OUT),
    (
        "commit=",
        "what is written is the host's at once",
        LEAVE_OUT,
    ),
    ("lazytime", TIMES, LEAVE_OUT),
    ("strictatime", TIMES, LEAVE_OUT),
    ("norelatime", TIMES, LEAVE_OUT),
    (
        "mode=",
        "the root directory has its own permissions",
        LEAVE_OUT,
    ),
    ("uid=", "the root directory has its own owner", LEAVE_OUT),
    ("gid=", "the root directory has its own group", LEAVE_OUT),
    ("fuseblk=on", NO_DEVICE, LEAVE_OUT),
    ("norecovery", NO_JOURNAL, LEAVE_OUT),
    ("noload", NO_JOURNAL, LEAVE_OUT),
    ("discard", NO_DEVICE, LEAVE_OUT),
    (
        "cache=",
        "what a directory may take is memory=AMOUNT",
        LEAVE_OUT,
    ),
];

#[cfg(feature = "cluster")]
const CLUSTER: [Rule; 20] = [
    ("create", MADE, MAKE),
    ("create_size=", MADE, LEAVE_OUT),
    ("size=", GROWS, LEAVE_OUT),
    ("nr_inodes=", GROWS, LEAVE_OUT),
    ("commit=", "closed files are durable at once", LEAVE_OUT),
    ("lazytime", NO_ATIME, LEAVE_OUT),
    ("strictatime", NO_ATIME, LEAVE_OUT),
    ("norelatime", NO_ATIME, LEAVE_OUT),
    ("mode=", HAS_ITS_ROOT, CHANGE_ROOT),
    ("uid=", HAS_ITS_ROOT, CHANGE_ROOT),
    ("gid=", HAS_ITS_ROOT, CHANGE_ROOT),
    ("fuseblk=on", NO_DEVICE, LEAVE_OUT),
    ("norecovery", NO_JOURNAL, LEAVE_OUT),
    ("noload", NO_JOURNAL, LEAVE_OUT),
    ("discard", NO_DEVICE, LEAVE_OUT),
    ("valid=", CHOSEN, LEAVE_OUT),
    ("told", CHOSEN, LEAVE_OUT),
    ("passthrough=", FILES, LEAVE_OUT),
    ("exclusive", "other machines change this source", LEAVE_OUT),
    (
        "opens=local",
        "the file system has to know which files are open",
        LEAVE_OUT,
    ),
];
#[cfg(feature = "cluster")]
const MADE: &str = "a mount makes no file system of several machines";
#[cfg(feature = "cluster")]
const MAKE: &str = "holdfast mkfs pg://... makes it";
#[cfg(feature = "cluster")]
const GROWS: &str = "the database and the bucket grow by themselves";
#[cfg(feature = "cluster")]
const NO_ATIME: &str = "reading moves no time in a file system of several machines";
#[cfg(feature = "cluster")]
const CHOSEN: &str = "mkfs has chosen that, with --coherence";

/// Options of a file system of several machines alone.
#[cfg(feature = "cluster")]
const OF_CLUSTERS: [Rule; 4] = [
    ("retry=", OF_SEVERAL, LEAVE_OUT),
    ("dirty=", OF_SEVERAL, LEAVE_OUT),
    ("cache=/", OF_SEVERAL, LEAVE_OUT),
    ("cache_size=", OF_SEVERAL, LEAVE_OUT),
];
#[cfg(feature = "cluster")]
const OF_SEVERAL: &str = "it is for a file system of several machines, pg://...";

/// Refuses options that have no effect on this source.
///
/// # Errors
/// Names the option, the reason and the remedy.
pub(super) fn check(source: &Source, plan: &Plan) -> Result<()> {
    #[cfg(feature = "cluster")]
    if !matches!(source, Source::Cluster(_)) {
        refuse(&OF_CLUSTERS, plan)?;
    }
    match source {
        Source::Memory => refuse(&MEMORY, plan),
        Source::Directory(_) => refuse(&DIRECTORY, plan),
        #[cfg(feature = "cluster")]
        Source::Cluster(_) => {
            let amount =
                |item: &&String| item.starts_with("cache=") && !item.starts_with("cache=/");
            if let Some(item) = plan.given.iter().find(amount) {
                return Err(Failure::new("it takes the absolute path of a directory")
                    .about(format!("option {item}"))
                    .hint("the limit of memory is memory=AMOUNT"));
            }
            refuse(&CLUSTER, plan)
        }
        Source::Volume(_) => {
            refuse(&VOLUME, plan)?;
            if !plan.create {
                refuse(&VOLUME_AS_IT_IS, plan)?;
            }
            refuse_half(plan)
        }
    }
}

fn refuse(rules: &[Rule], plan: &Plan) -> Result<()> {
    for (name, reason, remedy) in rules {
        let is_it = |item: &&String| match name.ends_with(['=', '/']) {
            true => item.starts_with(name),
            false => *item == name,
        };
        if let Some(item) = plan.given.iter().find(is_it) {
            return Err(Failure::new(*reason)
                .about(format!("option {item}"))
                .hint(*remedy));
        }
    }
    Ok(())
}

/// Refuses options of a volume that contradict another option.
fn refuse_half(plan: &Plan) -> Result<()> {
    let name = plan.given.iter().find(|item| item.starts_with("fsname="));
    if let Some(item) = name.filter(|_| plan.block == Choice::On) {
        return Err(
            Failure::new("the first column of a mount as fuseblk is its device")
                .about(format!("option {item}"))
                .hint("leave it out, or fuseblk=on"),
        );
    }
    refuse_conflict([(
        plan.create && plan.no_recovery,
        "an image that is not written to is not made either",
        "create",
        "leave it out, or norecovery",
    )])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(source: &Source, list: &str) -> Option<String> {
        let plan = Plan::parse([list], false).unwrap();
        check(source, &plan)
            .err()
            .map(|failure| failure.to_string())
    }

    #[test]
    fn what_has_no_effect_is_refused_by_name_with_a_remedy() {
        let volume = Source::Volume("/v.hf".into());
        let directory = Source::Directory("/d".into());
        let rules = MEMORY
            .iter()
            .map(|rule| (&Source::Memory, rule))
            .chain(DIRECTORY.iter().map(|rule| (&directory, rule)))
            .chain(VOLUME.iter().map(|rule| (&volume, rule)))
            .chain(VOLUME_AS_IT_IS.iter().map(|rule| (&volume, rule)));
        for (source, (name, reason, _)) in rules {
            let value = match *name {
                "passthrough=" => "off",
                "statahead=" => "on",
                _ if name.ends_with('=') => "7",
                _ => "",
            };
            let item = format!("{name}{value}");
            let refused = refusal(source, &format!("ro,{item}")).unwrap();
            assert!(
                refused.starts_with(&format!("option {item}: {reason} (hint: ")),
                "{refused}"
            );
        }
    }

    #[cfg(feature = "cluster")]
    #[test]
    fn options_of_several_machines_are_for_their_file_systems_alone() {
        let source = Source::of("pg://db/files".as_ref()).unwrap();
        for (name, reason, _) in &CLUSTER {
            let item = match *name {
                "passthrough=" => "passthrough=off".to_owned(),
                name if name.strip_suffix('=').is_some() => format!("{name}7"),
                name => name.to_owned(),
            };
            let refused = refusal(&source, &format!("ro,{item}")).unwrap();
            assert!(refused.contains(reason), "{item}: {refused}");
        }
        let own = "retry=hard,dirty=64m,cache=/c,cache_size=1g,memory=1g,statahead=off,noxattr";
        assert_eq!(refusal(&source, own), None);
        let refused = refusal(&source, "cache=64m").unwrap();
        assert!(refused.contains("memory=AMOUNT"), "{refused}");
        for other in ["mem:", "/v.hf", "dir:/d"] {
            let other = Source::of(other.as_ref()).unwrap();
            for item in ["retry=7", "dirty=7", "cache=/c", "cache_size=7"] {
                assert!(refusal(&other, item).is_some(), "{other}: {item}");
            }
        }
    }

    #[test]
    fn what_goes_together_is_not_refused() {
        let volume = Source::Volume("/v.hf".into());
        for list in [
            "sync,dirsync,lazytime,commit=9,memory=64m,statahead=off,discard,nodiscard",
            "create,create_size=64m,mode=700,uid=7,gid=7",
            "fuseblk=off,fsname=x",
        ] {
            assert_eq!(refusal(&volume, list), None, "{list}");
        }
        assert!(refusal(&volume, "fuseblk=on,fsname=x").is_some());
        assert!(refusal(&volume, "ro,norecovery,create").is_some());
        let directory = Source::Directory("/d".into());
        for list in [
            "sync,dirsync,noatime,memory=64m",
            "valid=3",
            "exclusive",
            "told",
        ] {
            assert_eq!(refusal(&directory, list), None, "{list}");
        }
        assert_eq!(
            refusal(&Source::Memory, "size=1g,nr_inodes=1k,mode=700,noatime"),
            None
        );
    }
}
