use super::*;
use crate::about::About;
use crate::record::Record;
use crate::shape::Shape;
use crate::workloads::cached_read;

const RIVAL: &str = "dir:/dev/shm/x";

fn chapter(layout: &str, records: Vec<Record>) -> Chapter {
    let about = About {
        layout: layout.to_owned(),
        rounds: 1,
        ..About::default()
    };
    Chapter::new(about, records)
}

fn record(target: &str, phase: &str, items: u64, shape: Shape) -> Record {
    Record {
        threads: shape.threads(),
        processes: shape.processes(),
        ..Record::sample(target, phase, items, 1.0)
    }
}

/// What a section says of these runs, and the charts it drew.
fn said(name: &str, chapters: &[Chapter]) -> (Option<String>, Vec<String>) {
    let folder = tempfile::tempdir().expect("temporary directory");
    let plots = Plots::beside(&folder.path().join("page.md")).expect("made");
    let (_, section) = SECTIONS
        .iter()
        .find(|(section, _)| *section == name)
        .expect("a section");
    let text = section(chapters, &plots).expect("written");
    let files = std::fs::read_dir(&plots.folder).expect("listed");
    let names = files.map(|file| file.expect("listed").file_name().into_string());
    (text, names.map(|name| name.expect("UTF-8")).collect())
}

fn contest() -> Chapter {
    let two = Shape::Threads(2);
    let records = vec![
        record("mem:", "create", 4000, two),
        record(RIVAL, "create", 500, two),
        record("mem:", "create", 5000, Shape::Processes(2)),
        record(RIVAL, "create", 1000, Shape::Processes(2)),
    ];
    chapter("files of a contest", records)
}

#[test]
fn a_contest_has_rates_ratios_and_goals() {
    let (text, plots) = said("sharded", &[contest()]);
    let text = text.expect("a section");
    let row = "| create | 4.00 k | 0 % | 500 | 0 % | 8.00 | 10 |\n";
    assert!(text.contains(row), "{text}");
    assert!(text.contains("files of a contest; rounds: 1"), "{text}");
    assert!(text.contains("(plots/sharded.svg)"), "{text}");
    assert_eq!(plots, ["sharded.svg"]);
}

#[test]
fn threads_stand_beside_processes() {
    let (text, plots) = said("scaling", &[contest()]);
    let text = text.expect("a section");
    assert!(text.contains("| create | 0.800 | 0.500 |\n"), "{text}");
    assert_eq!(plots, ["scaling-sharded.svg"]);
}

#[test]
fn memory_is_told_by_the_run_with_the_most_files() {
    let held = |items, bytes| {
        let mut record = record("mem:", "create", items, Shape::Threads(1));
        record.rss_bytes_per_file = Some(bytes);
        record
    };
    let iterated = record("mem:", "iterate", 60_000_000, Shape::Threads(1));
    let dropped = record("made:", "drop-caches", 5_000_000, Shape::Threads(1));
    let few = chapter("few", vec![held(1000, 900.0)]);
    let many = chapter("many", vec![held(9000, 270.4), iterated, dropped]);
    let (text, _) = said("memory", &[few.clone(), many, few]);
    let text = text.expect("a section");
    assert!(text.contains("many; rounds"), "{text}");
    assert!(
        text.contains("| each file of `mem:` | 270 | 280 |\n"),
        "{text}"
    );
    assert!(text.contains("60.0 M a second and thread"), "{text}");
    let dropped = "| drop-caches | `made:` | 1 thread | 0.200 | 0 % | 0.1 |\n";
    assert!(text.contains(dropped), "{text}");
}

#[test]
fn what_readers_keep_beside_a_writer_follows_their_rates() {
    let one = Shape::Threads(1);
    let mut records = vec![
        record("mem:", "read2-4096", 700, one),
        record(RIVAL, "read2-4096", 100, one),
        record("mem:", "append-apart", 500, one),
        record("mem:", "append-beside", 400, one),
    ];
    for record in &mut records {
        record.workload = cached_read::NAME.to_owned();
    }
    let (text, plots) = said("cached-read", &[contest(), chapter("reads", records)]);
    let text = text.expect("a section");
    assert!(text.contains("| read2-4096 | 700 |"), "{text}");
    assert!(text.contains("| 7.00 | 6 |"), "{text}");
    assert!(
        text.contains("| append | 1 thread | `mem:` | 80.0 % |"),
        "{text}"
    );
    assert_eq!(plots, ["cached-read.svg"]);
}

#[test]
fn baselines_are_told_apart_from_contests() {
    let runs = [1, 2].map(|threads| {
        let shape = Shape::Threads(threads);
        vec![
            record("baseline:list", "create", 300, shape),
            record("mem:", "create", 1000 * threads as u64, shape),
        ]
    });
    let list = chapter("list", runs.concat());
    let (text, _) = said("sharded", std::slice::from_ref(&list));
    assert_eq!(text, None, "a baseline is no rival");
    let (text, plots) = said("baselines", &[contest(), list]);
    let text = text.expect("a section");
    assert!(
        text.contains("| create | 2 | 300 | 0 % | 2.00 k | 0 % |"),
        "{text}"
    );
    assert_eq!(plots, ["baselines-sharded.svg"]);
}

#[test]
fn a_part_without_runs_is_left_alone() {
    for (name, _) in SECTIONS {
        assert_eq!(said(name, &[]), (None, Vec::new()), "{name}");
    }
}
