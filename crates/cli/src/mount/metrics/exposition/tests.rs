use super::super::tests::openmetrics::{self, Family};
use super::super::tests::promtool;
use super::*;
use crate::info::report::{MemoryUse, Reclaimed, RequestTimes, Transfers, VolumeUse, Work};
use std::collections::{BTreeMap, BTreeSet};

fn memory_use() -> MemoryUse {
    MemoryUse {
        budget_bytes: Some(1 << 30),
        limit_bytes: Some(1 << 29),
        slack_bytes: Some(u64::MAX),
        by_class: [("content".to_owned(), 4096), ("names".to_owned(), 64)].into(),
        by_shrinker: [(
            "metadata".to_owned(),
            Reclaimed {
                passes: 2,
                scanned: 1000,
                freed: 900,
                deferred: 7,
                nanoseconds: 1_500_000_000,
                nanoseconds_followed: 500_000_000,
            },
        )]
        .into(),
        promoted: 5,
        refaults: 6,
        content_refaults: 8,
        ..MemoryUse::default()
    }
}

/// A report of which every part is there.
fn full() -> Report {
    let transfers = |count| Transfers {
        count,
        bytes: count * 4096,
        nanoseconds: count * 1000,
    };
    let work = |count| Work {
        count,
        nanoseconds: count * 500_000_000,
        under_way: 1,
    };
    let mut buckets = vec![0; 24];
    (buckets[0], buckets[5], buckets[23]) = (3, 4, 1);
    Report {
        mount_point: "/a \"strange\"\n\\ place".to_owned(),
        state: State::ReadOnly,
        inodes: 12,
        rss_bytes: 1 << 40,
        inodes_away: 9,
        space_bytes: Some(1 << 30),
        space_free_bytes: Some(1 << 29),
        memory: Some(memory_use()),
        requests: [("LOOKUP".to_owned(), 5)].into(),
        request_errors: [("LOOKUP".to_owned(), [("EIO".to_owned(), 2)].into())].into(),
        request_times: [(
            "LOOKUP".to_owned(),
            RequestTimes {
                count: 8,
                nanoseconds: 2_000_000_000,
                buckets,
            },
        )]
        .into(),
        read_bytes: 77,
        statahead_issued: 30,
        statahead_used: 20,
        statahead_wasted: 4,
        volume: Some(VolumeUse {
            journal_used_bytes: 8192,
            journal_capacity_bytes: 1 << 26,
            pages_waiting: 3,
            commits: work(4),
            checkpoints: work(2),
            writer_waits: work(1),
            node_hits: 99,
            node_misses: 1,
            device_reads: transfers(1),
            device_writes: transfers(2),
            device_flushes: transfers(3),
        }),
        ..Report::default()
    }
}

fn exposed(report: Report) -> BTreeMap<String, Family> {
    let text = text(&report, Format::OpenMetrics);
    openmetrics::parse(&text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

#[test]
fn every_number_of_the_report_is_exposed_under_its_name() {
    let families = exposed(full());
    let value = |name: &str, labels: &[(&str, &str)]| families[name].value(labels).unwrap();
    let metadata = [("class", "metadata")];
    for (name, labels, expected) in [
        ("holdfast_inodes", &[][..], 12.0),
        ("holdfast_memory_rss_bytes", &[], (1_u64 << 40) as f64),
        ("holdfast_memory_budget_bytes", &[], (1 << 30) as f64),
        ("holdfast_memory_slack_bytes", &[], u64::MAX as f64),
        ("holdfast_memory_bytes", &[("class", "names")], 64.0),
        ("holdfast_reclaim_scanned", &metadata, 1000.0),
        ("holdfast_reclaim_evicted", &metadata, 900.0),
        ("holdfast_reclaim_promoted", &metadata, 5.0),
        ("holdfast_reclaim_refaults", &metadata, 6.0),
        ("holdfast_reclaim_refaults", &[("class", "content")], 8.0),
        ("holdfast_reclaim_deferred", &metadata, 7.0),
        ("holdfast_reclaim_seconds", &[("who", "operation")], 1.0),
        ("holdfast_reclaim_seconds", &[("who", "thread")], 0.5),
        ("holdfast_kernel_held_inodes", &[], 9.0),
        ("holdfast_statahead_wasted", &[], 4.0),
        ("holdfast_requests", &[("operation", "LOOKUP")], 5.0),
        ("holdfast_request_errors", &[("error", "EIO")], 2.0),
        (
            "holdfast_build",
            &[("version", env!("CARGO_PKG_VERSION"))],
            1.0,
        ),
        ("holdfast_read_bytes", &[], 77.0),
        ("holdfast_commit_seconds", &[], 2.0),
        ("holdfast_waiting_writers", &[], 1.0),
        ("holdfast_device_bytes", &[("operation", "write")], 8192.0),
        ("holdfast_device_requests", &[("operation", "flush")], 3.0),
        ("holdfast_read_only", &[], 1.0),
        ("holdfast_failed", &[], 0.0),
        // Escapes in the path are undone.
        (
            "holdfast_mount",
            &[("mount_point", "/a \"strange\"\n\\ place")],
            1.0,
        ),
    ] {
        assert_eq!(value(name, labels), expected, "{name}");
    }
    assert_eq!(families["holdfast_reclaim_evicted"].kind, "counter");
    assert_eq!(families["holdfast_reclaim_deferred"].kind, "gauge");
}

#[test]
fn times_of_requests_are_a_histogram_in_seconds() {
    let families = exposed(full());
    let samples = &families["holdfast_request_seconds"].samples;
    let of = |name: &str, le: Option<f64>| {
        let bound = |labels: &openmetrics::Labels| labels.get("le").map(|le| le.parse().unwrap());
        let mut found = samples.iter();
        found
            .find(|(sample, labels, _)| sample == name && bound(labels) == le)
            .map(|(_, _, value)| *value)
    };
    assert_eq!(of("holdfast_request_seconds_sum", None), Some(2.0));
    assert_eq!(of("holdfast_request_seconds_count", None), Some(8.0));
    let bucket = |le| of("holdfast_request_seconds_bucket", Some(le));
    assert_eq!(bucket(1e-6), Some(3.0));
    assert_eq!((bucket(16e-6), bucket(32e-6)), (Some(3.0), Some(7.0)));
    assert_eq!(
        (bucket(4.194_304), bucket(f64::INFINITY)),
        (Some(7.0), Some(8.0))
    );
}

#[test]
fn the_text_format_names_families_as_their_samples() {
    let openmetrics = text(&full(), Format::OpenMetrics);
    let plain = text(&full(), Format::Text);
    // Numbers of the process differ from moment to moment.
    let samples = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with(['#', 'p']));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(samples(&plain), samples(&openmetrics));
    assert!(!plain.contains("# EOF"), "{plain}");
    for part in [
        "# HELP holdfast_requests_total Requests of the kernel\n# TYPE holdfast_requests_total counter\n\
         holdfast_requests_total{operation=\"LOOKUP\"} 5\n",
        "# TYPE holdfast_mount_info gauge\nholdfast_mount_info{",
        "# TYPE holdfast_inodes gauge\nholdfast_inodes 12\n",
        "# TYPE holdfast_request_seconds histogram\nholdfast_request_seconds_sum{",
    ] {
        assert!(plain.contains(part), "{part} in {plain}");
    }
    let (mut family, mut kind) = ("", "");
    for line in plain.lines() {
        match line.strip_prefix("# TYPE ") {
            Some(rest) => (family, kind) = rest.split_once(' ').unwrap(),
            None if line.starts_with('#') => {}
            None => {
                let name = line.split(['{', ' ']).next().unwrap();
                let is_of = match kind {
                    "histogram" => name.starts_with(&format!("{family}_")),
                    _ => name == family,
                };
                assert!(is_of, "{line} in the {kind} {family}");
            }
        }
    }
}

#[test]
fn promtool_finds_nothing_wrong() {
    for report in [full(), Report::default()] {
        let text = text(&report, Format::Text);
        if let Some(said) = promtool::check(&text) {
            assert_eq!(said, "", "{text}");
        }
    }
}

#[test]
fn what_is_not_counted_is_left_out() {
    let families = exposed(Report::default());
    for absent in [
        "holdfast_memory_budget_bytes",
        "holdfast_memory_bytes",
        "holdfast_reclaim_evicted",
        "holdfast_requests",
        "holdfast_request_seconds",
        "holdfast_request_errors",
        "holdfast_commits",
        "holdfast_space_bytes",
    ] {
        assert!(!families.contains_key(absent), "{absent}");
    }
    assert_eq!(families["holdfast_inodes"].value(&[]), Some(0.0));
}

/// The names as queries have them.
fn names() -> BTreeSet<String> {
    let families = exposed(full()).into_iter();
    let queried = families.map(|(name, family)| match family.kind.as_str() {
        "counter" => format!("{name}_total"),
        "info" => format!("{name}_info"),
        _ => name,
    });
    queried.collect()
}

/// All names of metrics in a text.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
    let ours = words.filter(|word| word.starts_with("holdfast_") || word.starts_with("process_"));
    ours.map(str::to_owned).collect()
}

/// The queries of the board, as for one mount.
fn queries() -> Vec<String> {
    let board = include_str!("../../../../../../docs/grafana.json");
    let board: serde_json::Value = serde_json::from_str(board).unwrap();
    let panels = board["panels"].as_array().unwrap().iter();
    let queries = panels
        .filter(|panel| panel["type"] != "row")
        .flat_map(|panel| {
            let targets = panel["targets"]
                .as_array()
                .map(Vec::as_slice)
                .unwrap_or_default();
            assert!(!targets.is_empty(), "{panel}");
            targets
                .iter()
                .map(|target| target["expr"].as_str().unwrap())
        });
    let queries = queries.map(|query| {
        let query = query.replace("$__rate_interval", "5m");
        query.replace("$instance", "a")
    });
    queries.collect()
}

#[test]
fn the_board_asks_for_metrics_that_there_are() {
    let there = names();
    let asked = named(&queries().join(" "));
    for name in &asked {
        let parts = ["_bucket", "_sum", "_count"];
        let family = parts.iter().find_map(|part| name.strip_suffix(part));
        let is_there = there.contains(name) || family.is_some_and(|it| there.contains(it));
        assert!(is_there, "{name}");
    }
    for name in ["holdfast_request_errors_total", "holdfast_build_info"] {
        assert!(asked.contains(name), "{name}");
    }
}

#[test]
fn each_query_of_the_board_has_data_of_a_mount_that_counts_everything() {
    let exposed = text(&full(), Format::Text);
    let samples = exposed.lines().filter(|line| !line.starts_with('#'));
    let series = samples.map(|line| {
        let (name, _) = line.rsplit_once(' ').unwrap();
        let (name, labels) = name.split_once('{').unwrap_or((name, "}"));
        let labels = labels.trim_end_matches('}');
        // Each sample grows, so that no rate is that of nothing.
        serde_json::json!({
            "series": format!("{name}{{instance=\"a\", {labels}}}").replace(", }", "}"),
            "values": "1+1x20",
        })
    });
    let series: Vec<_> = series.collect();
    let asked = queries().into_iter().map(|query| {
        let one = serde_json::json!([{"labels": "{}", "value": 1}]);
        let some = format!("count({query}) > bool 0");
        serde_json::json!({"expr": some, "eval_time": "15m", "exp_samples": one})
    });
    let asked: Vec<_> = asked.collect();
    let tests = serde_json::json!({
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": asked}],
    });
    let file = tempfile::Builder::new().suffix(".yml").tempfile().unwrap();
    std::fs::write(file.path(), tests.to_string()).unwrap();
    let path = file.path().to_str().unwrap();
    if let Some((succeeded, said)) = promtool::run(&["test", "rules", path], "") {
        assert!(succeeded, "{said}");
    }
}

#[test]
fn the_alarms_ask_for_metrics_that_there_are() {
    let alarms = include_str!("../../../../../../packaging/alerts.yml");
    let asked = alarms
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let asked: Vec<&str> = asked.filter(|line| !line.contains("$labels")).collect();
    assert!(named(&asked.join(" ")).is_subset(&names()), "{asked:?}");
}

#[test]
fn promtool_understands_the_alarms_and_each_comes_when_its_case_is_provoked() {
    let packaging = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging");
    let [alarms, cases] =
        ["alerts.yml", "alerts.test.yml"].map(|name| format!("{packaging}/{name}"));
    for arguments in [["check", "rules", &alarms], ["test", "rules", &cases]] {
        if let Some((succeeded, said)) = promtool::run(&arguments, "") {
            assert!(succeeded, "{said}");
        }
    }
    let names = |text: &str, key: &str| -> BTreeSet<String> {
        let lines = text
            .lines()
            .filter_map(|line| line.trim_start().split_once(key));
        lines.map(|(_, name)| name.trim().to_owned()).collect()
    };
    let [alarms, cases] = [alarms, cases].map(|path| std::fs::read_to_string(path).unwrap());
    assert_eq!(names(&alarms, "alert:"), names(&cases, "alertname:"));
}

#[test]
fn the_manual_names_each_metric_and_no_other() {
    let manual = include_str!("../../../../../../docs/book/reference/metrics.md");
    let rows = manual.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells: Vec<&str> = rows.filter_map(|row| row.split(" |").next()).collect();
    assert_eq!(named(&cells.join(" ")), names());
}
