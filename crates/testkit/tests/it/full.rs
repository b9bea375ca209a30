//! Full file systems.

use holdfast_testkit::full::{Settings, run};
use holdfast_testkit::{effort, seed};

#[test]
fn a_full_file_system_refuses_what_has_no_room_and_nothing_else_fails() {
    let settings = Settings {
        seed: seed(1),
        operations: effort().of(5_000, 50_000),
    };
    match run(&settings, &|line| println!("{line}")) {
        Ok(summary) => assert!(summary.refused > settings.operations / 100, "{summary}"),
        Err(failure) => panic!("{failure}"),
    }
}
