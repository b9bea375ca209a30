use super::*;
use crate::info::report::RequestTimes;

fn volume(times: u64) -> VolumeUse {
    let work = Work {
        count: 10 * times,
        nanoseconds: 20_000_000 * times,
        under_way: 1,
    };
    let transfers = |count| Transfers {
        count: count * times,
        bytes: 4096 * count * times,
        nanoseconds: 1_000 * count * times,
    };
    VolumeUse {
        journal_used_bytes: 1 << 20,
        journal_capacity_bytes: 64 << 20,
        pages_waiting: 300,
        commits: work,
        checkpoints: work,
        writer_waits: work,
        node_hits: 99 * times,
        node_misses: times,
        device_reads: transfers(8),
        device_writes: transfers(16),
        device_flushes: transfers(2),
    }
}

/// The report of a volume that has done everything `times` times.
pub(in crate::top) fn report(times: u64) -> Report {
    let reclaimed = Reclaimed {
        passes: times,
        scanned: 3_000 * times,
        freed: 1_000 * times,
        deferred: 12,
        nanoseconds: 500_000_000 * times,
        nanoseconds_followed: 0,
    };
    let timed = RequestTimes {
        count: 2 * times,
        nanoseconds: 8_000 * times,
        buckets: Vec::new(),
    };
    let held = [
        ("inodes", 60),
        ("content", 30),
        ("nodes", 10),
        ("kernel-held", 0),
    ];
    let shrinkers = ["metadata", "content", "nodes", "kernel"];
    Report {
        mount_point: "/mnt".to_owned(),
        source: "/data.hf".to_owned(),
        version: "0.1.0".to_owned(),
        transport: "io_uring".to_owned(),
        pid: 7,
        uptime_seconds: 60 + times,
        rss_bytes: 90 << 20,
        inodes: 1000,
        names: 900,
        pages: 5,
        bytes: 5 << 12,
        inodes_away: 77,
        memory: Some(MemoryUse {
            budget_bytes: Some(128 << 20),
            limit_bytes: Some(200),
            counted_bytes: 100,
            slack_bytes: Some(1 << 20),
            by_class: held.map(|(name, bytes)| (name.to_owned(), bytes)).into(),
            by_shrinker: shrinkers.map(|name| (name.to_owned(), reclaimed)).into(),
            promoted: 40 * times,
            refaults: 4 * times,
            content_refaults: 3 * times,
        }),
        volume: Some(volume(times)),
        requests: [("LOOKUP", 100), ("READ", 300), ("MKDIR", 0)]
            .map(|(name, count)| (name.to_owned(), count * times))
            .into(),
        request_times: [("READ".to_owned(), timed)].into(),
        read_bytes: 1000 * times,
        written_bytes: 500 * times,
        statahead_issued: 20 * times,
        ..Report::default()
    }
}

fn between(before: u64, now: u64, seconds: u64) -> Rates {
    Rates::between(&report(before), &report(now), Duration::from_secs(seconds))
}

#[test]
fn counts_become_rates_and_what_is_held_stays_as_it_is() {
    let rates = between(3, 7, 2);
    assert_eq!((rates.seconds, rates.pid, rates.inodes), (2.0, 7, 1000));
    assert_eq!(rates.read_bytes_per_second, 2000.0);
    assert_eq!(rates.statahead_issued_per_second, 40.0);
    let memory = rates.memory.as_ref().unwrap();
    assert_eq!(memory.pressure, Some(0.5));
    let volume = rates.volume.as_ref().unwrap();
    assert_eq!((volume.waiting_pages, volume.waiting_writers), (300, 1));
    assert_eq!(volume.commits.per_second, 20.0);
    assert_eq!(volume.commits.mean_seconds, Some(0.002));
    assert_eq!(volume.writers_wait, 0.04);
    assert_eq!(volume.written_bytes_per_second, 4096.0 * 32.0);
    assert_eq!(volume.flushes.mean_seconds, Some(1e-6));
}

#[test]
fn classes_have_the_figures_of_their_shrinkers_and_the_largest_comes_first() {
    let rates = between(0, 1, 1);
    let names: Vec<&str> = rates.classes.iter().map(|it| it.class.as_str()).collect();
    assert_eq!(names, ["inodes", "content", "nodes", "kernel-held"]);
    let inodes = &rates.classes[0];
    assert_eq!((inodes.bytes, inodes.share), (60, 0.6));
    assert_eq!(inodes.scanned_per_second, Some(3000.0));
    assert_eq!(inodes.evicted_per_second, Some(1000.0));
    assert_eq!(inodes.promoted_per_second, Some(40.0));
    assert_eq!(inodes.refaults_per_second, Some(4.0));
    assert_eq!((inodes.deferred, inodes.busy), (Some(12), Some(0.5)));
    assert_eq!(rates.classes[1].refaults_per_second, Some(3.0));
    assert_eq!(rates.classes[1].promoted_per_second, None, "not counted");
    assert_eq!(rates.classes[2].hit_share, Some(0.99));
}

#[test]
fn requests_that_came_are_listed_with_the_time_of_those_that_were_timed() {
    let rates = between(1, 2, 1);
    assert_eq!(rates.requests_per_second, 400.0);
    let names: Vec<&str> = rates
        .requests
        .iter()
        .map(|it| it.operation.as_str())
        .collect();
    assert_eq!(names, ["READ", "LOOKUP"]);
    assert_eq!(rates.requests[0].mean_seconds, Some(4e-6));
    assert_eq!(rates.requests[1].mean_seconds, None);
}

#[test]
fn no_time_a_count_that_fell_and_an_empty_report_make_no_strange_numbers() {
    for rates in [
        between(1, 2, 0),
        between(9, 2, 1),
        Rates::between(&Report::default(), &report(1), Duration::from_secs(1)),
        Rates::between(&report(1), &Report::default(), Duration::from_secs(1)),
        Rates::between(&Report::default(), &Report::default(), Duration::ZERO),
    ] {
        let text = serde_json::to_value(&rates).unwrap();
        finite(&text);
    }
    assert_eq!(between(9, 2, 1).requests_per_second, 0.0);
    assert_eq!(between(1, 2, 0).requests_per_second, 0.0);
}

/// JSON has no NaN or infinity: those would be null.
fn finite(value: &serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => fields.values().for_each(finite),
        serde_json::Value::Array(items) => items.iter().for_each(finite),
        serde_json::Value::Number(number) => assert!(number.as_f64().is_some_and(|it| it >= 0.0)),
        _ => {}
    }
}
