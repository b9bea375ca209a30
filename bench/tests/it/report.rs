//! The page on benchmarks.

use super::{entries, run};
use std::fs;
use std::path::Path;

#[test]
fn a_report_fills_its_page_around_what_others_wrote_and_again_from_its_records() {
    let folder = tempfile::tempdir_in("/dev/shm").expect("temporary directory");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (page, records) = (path("page.md"), path("records.json"));
    let rival = format!("dir:{}", path("rival"));
    let written = "# Mine\n\n<!-- bench:conflicts -->\nkept\n<!-- /bench:conflicts -->\n";
    fs::write(&page, written).expect("written");
    let measured = run(&[
        "report", "--quick", "--out", &page, "--json", &records, "--rival", &rival,
    ]);
    let errors = String::from_utf8_lossy(&measured.stderr);
    assert!(measured.status.success(), "{errors}");
    let text = fs::read_to_string(&page).expect("a page");
    assert!(text.starts_with(written), "{text}");
    for part in ["sharded", "memory", "cached-read", "scaling", "baselines"] {
        assert!(
            text.contains(&format!("<!-- bench:{part} -->\n*")),
            "{part}"
        );
    }
    assert!(!Path::new(&path("rival")).exists(), "what was made is gone");
    let plots = folder.path().join("plots");
    assert_eq!(entries(&plots), 7);
    for (_, rest) in text
        .match_indices("](plots/")
        .map(|(at, _)| text.split_at(at))
    {
        let name = rest[2..].split(')').next().expect("a link");
        assert!(folder.path().join(name).is_file(), "{name}");
    }

    fs::write(&page, written).expect("written");
    fs::remove_dir_all(&plots).expect("removed");
    let again = run(&["report", "--from", &records, "--out", &page]);
    assert!(again.status.success(), "{again:?}");
    assert_eq!(fs::read_to_string(&page).expect("a page"), text);
    assert_eq!(entries(&plots), 7);

    let foreign = run(&["report", "--from", &page, "--out", &page]);
    let errors = String::from_utf8_lossy(&foreign.stderr);
    assert!(!foreign.status.success());
    assert!(errors.contains("page.md:1: no record"), "{errors}");
}
