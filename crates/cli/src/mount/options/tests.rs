use super::super::known::{KNOWN, WITHOUT_EFFECT};
use super::*;

fn plan(list: &str) -> Plan {
    Plan::parse([list], false).unwrap()
}

fn refusal(list: &str) -> String {
    Plan::parse([list], false).unwrap_err().to_string()
}

#[test]
fn every_option_of_the_list_is_understood_and_every_value_checked() {
    for &option in KNOWN {
        let value = match option {
            "transport=" => "dev",
            "fuseblk=" | "statahead=" | "passthrough=" => "off",
            "locks=" | "opens=" => "served",
            "subtype=" | "fsname=" | "comment=" | "user=" | "log=" => "x",
            "mode=" => "755",
            "metrics=" => "127.0.0.1:0",
            _ if option.ends_with('=') => "4096",
            "norecovery" | "noload" => ",ro",
            _ => "",
        };
        plan(&format!("{option}{value}"));
        if option.ends_with('=') && value != "x" {
            let refused = refusal(&format!("{option}%"));
            assert!(refused.contains(option.trim_end_matches('=')), "{refused}");
        }
    }
}

#[cfg(feature = "cluster")]
#[test]
fn a_wait_for_a_database_has_a_unit_or_no_end() {
    let retry = |value: &str| plan(&format!("retry={value}")).retry.unwrap();
    assert_eq!(retry("30s"), Duration::from_secs(30));
    assert_eq!(retry("7"), Duration::from_secs(7));
    assert_eq!(retry("2m"), Duration::from_secs(120));
    assert!(retry("hard") > Duration::from_secs(1 << 30));
    for value in ["0", "1h", "s", "99999999999999999999", "-1", "86401"] {
        let refused = refusal(&format!("retry={value}"));
        assert!(refused.contains("such as 30s"), "{value}: {refused}");
    }
    let plan = plan("cache=/var/cache/x,cache_size=2g,dirty=64m");
    assert_eq!(plan.cache_dir.unwrap(), PathBuf::from("/var/cache/x"));
    assert_eq!(
        (plan.cache_size, plan.dirty),
        (Some(2 << 30), Some(64 << 20))
    );
    assert_eq!(plan.core.memory, None);
}

#[test]
fn options_reach_their_owners_and_later_ones_win() {
    let lists = [
        "ro,noatime,size=1g,nr_inodes=2k",
        "rw,nosuid,mode=1777,transport=dev",
    ];
    let plan = Plan::parse(lists, false).unwrap();
    assert!(!plan.core.read_only && !plan.mount.read_only);
    assert!(plan.core.nosuid && plan.mount.nosuid);
    assert_eq!(plan.core.atime, AtimePolicy::None);
    assert_eq!(plan.core.root_perm, 0o1777);
    assert_eq!(
        plan.limits,
        MemoryLimits {
            bytes: Some(1 << 30),
            inodes: Some(2048)
        }
    );
    assert_eq!(plan.transport, TransportChoice::Dev);
    assert_eq!(plan.given.len(), 8);
}

#[test]
fn defaults_take_back_what_stands_before_them() {
    let plan = plan("ro,nosuid,defaults,atime");
    assert!(!plan.core.read_only && !plan.core.nosuid);
    assert_eq!(plan.core.atime, AtimePolicy::Relatime);
}

#[test]
fn zero_is_no_limit_and_half_of_memory_is_the_default() {
    let without = plan("size=0,nr_inodes=0");
    assert_eq!(without.limits, MemoryLimits::default());
    assert_eq!(plan("").limits.bytes, Some(memory_bytes() / 2));
    assert_eq!(plan("size=50%").limits.bytes, plan("").limits.bytes);
}

#[test]
fn memory_is_one_number_and_cache_was_half_of_it() {
    assert_eq!(plan("").core.memory, None);
    assert_eq!(plan("memory=256m").core.memory, Some(256 << 20));
    assert_eq!(plan("memory=25%").core.memory, Some(memory_bytes() / 4));
    assert_eq!(plan("memory=max").core.memory, Some(u64::MAX));
    assert_eq!(plan("cache=100m").core.memory, Some(200 << 20));
    assert!(refusal("memory=most").contains("\"most\" is not a number of bytes"));
}

#[test]
fn inodes_come_ahead_unless_that_is_switched_off() {
    assert!(plan("").core.statahead);
    assert!(!plan("statahead=off").core.statahead);
    assert!(plan("statahead=off,statahead=on").core.statahead);
}

#[test]
fn an_unknown_option_is_named_with_the_one_nearest_to_it() {
    assert!(refusal("rw,notime").contains("option notime"));
    assert!(refusal("rw,notime").contains("did you mean noatime?"));
    assert!(refusal("ro=yes").contains("it takes no value: ro"));
    assert!(refusal("encryption=aes").contains("--help"));
    assert!(refusal("size").contains("needs a value"));
    for (name, reason, _) in WITHOUT_EFFECT {
        assert!(refusal(name).contains(reason), "{name}");
    }
    assert!(refusal("auto_unmount=1").contains("takes no value"));
    assert!(Plan::parse(["rw,encryption=aes"], true).unwrap().given == ["rw"]);
}

#[test]
fn values_that_make_no_sense_are_told_with_their_option() {
    for (list, part) in [
        ("size=lots", "\"lots\" is not a number of bytes"),
        ("mode=9", "\"9\" is not octal"),
        ("uid=no-such-user", "there is no user \"no-such-user\""),
        ("gid=", "there is no group"),
        ("transport=pigeon", "none of auto, uring, dev"),
        ("locks=never", "none of local, served"),
        ("statahead=no", "none of on, off"),
        ("statahead", "none of on, off"),
        ("commit=0", "seconds from 1"),
        ("commit=1.5", "seconds from 1"),
        ("metrics=9464", "is no HOST:PORT"),
        ("opens=local,locks=served", "leave out opens=local"),
        ("opens=local,strictatime", "leave out opens=local"),
        ("max_read=1", "from 4096"),
    ] {
        let refused = refusal(list);
        assert!(refused.contains(part), "{refused}");
        assert!(
            refused.contains(list.split('=').next().unwrap()),
            "{refused}"
        );
    }
}

#[test]
fn validity_is_a_time_and_the_last_word_counts() {
    let millis = |millis| Some(Coherence::For(Duration::from_millis(millis)));
    assert_eq!(plan("").coherence, None);
    assert_eq!(plan("valid=0.5").coherence, millis(500));
    assert_eq!(plan("exclusive,valid=0").coherence, millis(0));
    assert_eq!(
        plan("valid=3,exclusive").coherence,
        Some(Coherence::Exclusive)
    );
    for wrong in ["valid=-1", "valid=nan", "valid=86401", "valid=1s"] {
        assert!(refusal(wrong).contains("number of seconds"), "{wrong}");
    }
}

#[test]
fn the_kernel_opens_files_unless_the_daemon_keeps_locks() {
    assert!(!plan("").serves_opens());
    assert!(plan("locks=served").serves_opens());
    assert!(plan("opens=served").serves_opens() && !plan("opens=served").serve_locks);
    assert!(plan("strictatime").serves_opens());
    assert!(!plan("strictatime,ro").serves_opens());
    assert!(!plan("strictatime,relatime,opens=local").serves_opens());
}

#[test]
fn a_comma_can_be_part_of_a_value() {
    let plan = plan(r"fsname=a\,b\\c,x-systemd.automount,comment=x");
    assert_eq!(plan.mount.fsname, r"a,b\c");
    assert_eq!(plan.given, [r"fsname=a,b\c"]);
    assert_eq!(escaped(&plan.given[0]), r"fsname=a\,b\\c");
}
