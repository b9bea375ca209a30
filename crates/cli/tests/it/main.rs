//! The `holdfast` command as its users run it: by arguments, exit codes and output, with real
//! mounts where the machine has them.

mod fixture;
#[path = "../../src/mount/metrics/tests/openmetrics.rs"]
mod openmetrics;
#[path = "../../src/mount/metrics/tests/promtool.rs"]
mod promtool;

mod archives;
mod bench;
mod by_name;
mod care;
#[cfg(feature = "cluster")]
mod cluster;
mod completions;
mod daemon;
mod directories;
mod engine;
mod failed;
mod first_contact;
mod force;
mod forms;
mod fstab;
mod hanging;
mod held;
mod into_mount;
mod lasting;
mod listed;
mod logged;
mod manual;
mod metrics;
mod mounts;
mod notified;
mod options;
mod pages;
mod passthrough;
mod private;
mod promised;
mod refusals;
mod remounts;
mod reports;
mod surroundings;
mod terminal;
mod tools;
mod top;
mod trace;
mod volumes;
mod warm;
mod whole;
mod without_root;
mod written;
mod wrong;
