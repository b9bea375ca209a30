//! The commands of the guides, as an ordinary user runs them in an empty folder.

use crate::private::{HELPERS, well, with_fusermount};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the book.
fn book() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book")
}

/// The Markdown pages of a folder.
fn in_folder(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).expect("a folder of the book");
    let paths = entries.map(|entry| entry.expect("a page").path());
    paths.filter(|path| path.extension().is_some_and(|it| it == "md"))
}

/// The pages with commands that run without a network, another program or another machine.
fn pages() -> Vec<PathBuf> {
    let guides = in_folder(&book().join("guides"));
    let mut pages: Vec<_> = guides.chain([book().join("start.md")]).collect();
    pages.sort();
    pages
}

/// The blocks for a shell of a page. A block of `sh,ignore` needs what a test does not have.
fn commands(page: &Path) -> String {
    let text = fs::read_to_string(page).expect("a page");
    let blocks = text.split("```sh\n").skip(1);
    blocks
        .filter_map(|block| block.split("```").next())
        .collect()
}

#[test]
fn the_commands_of_the_guides_work_for_an_ordinary_user() {
    let mut tried = 0;
    for page in pages() {
        let lines = commands(&page);
        if lines.is_empty() {
            continue;
        }
        let Some(place) = with_fusermount() else {
            return;
        };
        fs::write(place.path("lines"), format!("set -x\n{lines}")).unwrap();
        let script = r#"
            user sh -eu "$T/lines" 2>&1 || { echo "of $(cat "$T/lines")"; exit 1; }
            ! grep " $T/user/" /proc/self/mounts
        "#;
        let out = well(&place, HELPERS, script);
        assert!(out.contains("+ holdfast "), "{}: {out}", page.display());
        tried += 1;
    }
    assert!(tried >= 5, "{tried} pages have commands");
}

#[test]
fn each_page_of_the_book_is_in_its_summary_once() {
    let summary = fs::read_to_string(book().join("../SUMMARY.md")).expect("the summary");
    for folder in ["", "guides", "reference"] {
        for page in in_folder(&book().join(folder)) {
            let name = page.strip_prefix(book()).expect("a page of the book");
            let link = format!("](book/{})", name.display());
            assert_eq!(
                summary.matches(&link).count(),
                1,
                "{link} in docs/SUMMARY.md"
            );
        }
    }
}
