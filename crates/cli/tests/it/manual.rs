//! The manual, as mandoc(1) and man(1) read it.

use crate::fixture::{Place, call};
use holdfast_testkit::skip::skipped;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

const SECTIONS: [&str; 5] = [
    "EXIT STATUS",
    "ENVIRONMENT",
    "FILES",
    "EXAMPLES",
    "SEE ALSO",
];

/// All pages, written to a folder.
fn pages(place: &Place) -> Vec<PathBuf> {
    let out = place.path("man");
    call(&[&"man", &"--out", &out]).ok();
    let pages: Vec<_> = fs::read_dir(out)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(pages.len() > 25, "{pages:?}");
    pages
}

/// Runs a program, if it is installed.
fn run(command: &mut Command) -> Option<Output> {
    let output = command.output();
    if output.is_err() {
        skipped("a reader of manuals is not installed");
    }
    output.ok()
}

#[test]
fn every_page_of_a_command_has_examples_exit_codes_and_files() {
    let place = Place::new();
    for page in pages(&place) {
        let text = fs::read_to_string(&page).unwrap();
        let name = page.file_name().unwrap().to_str().unwrap();
        let is_command = name.ends_with(".1") || name.ends_with(".8");
        for section in SECTIONS {
            let has = text.contains(&format!(".SH \"{section}\"\n"))
                || text.contains(&format!(".SH {section}\n"));
            assert!(has || !is_command, "{section} of {name}");
        }
        assert!(text.contains("SEE ALSO"), "{name}");
        assert!(!text.contains("EXTRA"), "{name}");
    }
    let mount = fs::read_to_string(place.path("man/holdfast-mount.1")).unwrap();
    let option = ".TP\n\\fBuid=USER, gid=GROUP\\fR\n";
    assert!(mount.contains(option), "{mount}");
}

#[test]
fn no_page_has_a_warning() {
    let place = Place::new();
    let mut said = String::new();
    for page in pages(&place) {
        let name = page.display();
        let Some(lint) = run(Command::new("mandoc")
            .args(["-Tlint", "-Wwarning"])
            .arg(&page))
        else {
            return;
        };
        if !lint.status.success() {
            said.push_str(&String::from_utf8_lossy(&lint.stdout));
        }
        let mut man = Command::new("man");
        man.args(["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"])
            .arg(&page);
        if let Some(shown) = run(man.env("LC_ALL", "C.UTF-8").env("MANWIDTH", "80")) {
            let errors = String::from_utf8_lossy(&shown.stderr);
            if !errors.is_empty() {
                said.push_str(&format!("{name}: {errors}"));
            }
        }
    }
    assert_eq!(said, "");
}
