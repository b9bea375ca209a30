//! A slow host's directory.

use super::fuse::can_mount;
use super::{entries, told};

#[test]
fn a_slow_host_is_listed_as_it_is_and_behind_the_store_and_nothing_stays() {
    if !can_mount() {
        return;
    }
    let folder = tempfile::tempdir().expect("temporary directory");
    let target = |way: &str| format!("{way}:{}", folder.path().join("x").display());
    let (host, dir) = (target("host"), target("dir"));
    let line = format!("--target {host} --target {dir} --files 300 --plain 40 --delay 1");
    let (records, errors) = told(&format!("listing {line} --rounds 1"));
    assert!(errors.contains("times as fast a file as dir:"), "{errors}");
    // There is no call for a listing with attributes by system calls.
    assert_eq!(records.len(), 7 + 6);
    for record in &records {
        let plain = record["target"] == dir;
        let phase = record["phase"].as_str().expect("text");
        let alone = match phase {
            "listing-plain" | "listing-plus" => false,
            "listing-random" => true,
            _ => plain,
        };
        let number = |field: &str| record[field].as_i64().expect("number");
        assert_eq!(number("items"), if alone { 40 } else { 300 }, "{record}");
        let asked = number("waits");
        match (phase, alone) {
            ("listing-plain", _) => assert!(asked < 20, "{record}"),
            // Each directory of ten is looked up, opened, listed to its end.
            ("walk", _) => {
                let (dirs, more) = (number("items") / 10, asked - number("items"));
                assert!((0..6 * dirs + 30).contains(&more), "{record}");
            }
            // One for each file, and a few for the directory: not another for what the host was not
            // asked for.
            _ => assert!((0..30).contains(&(asked - number("items"))), "{record}"),
        }
    }
    assert_eq!(entries(folder.path()), 0);
}
