//! The commands of the guides, as an ordinary user runs them in an empty folder.

use crate::private::{HELPERS, well, with_fusermount};
use std::fs;
use std::path::{Path, PathBuf};

/// The pages with commands that run without a network, another program or another machine.
fn pages() -> Vec<PathBuf> {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book");
    let guides = fs::read_dir(book.join("guides")).expect("the guides");
    let guides = guides.map(|guide| guide.expect("a guide").path());
    let mut pages: Vec<_> = guides.chain([book.join("start.md")]).collect();
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
