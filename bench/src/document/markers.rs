//! The parts of a page that are generated: what stands between `<!-- bench:NAME -->` and
//! `<!-- /bench:NAME -->`. All the rest of the page is somebody's, and stays as it is.

use anyhow::{Result, bail, ensure};

/// The page with this content between the markers of this name. A page that has none gets them at
/// its end.
///
/// # Errors
/// Markers that are not one pair: nobody knows what to replace.
pub(super) fn replace(page: &str, name: &str, content: &str) -> Result<String> {
    let (open, close) = (
        format!("<!-- bench:{name} -->"),
        format!("<!-- /bench:{name} -->"),
    );
    let content = content.trim_end();
    let part = format!("{open}\n{content}\n{close}");
    let found = (
        page.matches(&open).count(),
        page.matches(&close).count(),
        page.find(&open),
        page.find(&close),
    );
    match found {
        (0, 0, ..) => Ok(format!("{}\n\n{part}\n", page.trim_end())),
        (1, 1, Some(from), Some(to)) if from < to => {
            let (before, after) = (&page[..from], &page[to + close.len()..]);
            Ok(format!("{before}{part}{after}"))
        }
        (opened, closed, ..) => {
            ensure!(
                opened == closed,
                "{open}: {opened} times, {close}: {closed}"
            );
            bail!("{open} and {close} are not one pair")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Page\n\nBefore.\n\n<!-- bench:a -->\nold\n<!-- /bench:a -->\n\nAfter.\n";

    #[test]
    fn only_what_stands_between_the_markers_is_replaced() {
        let page = replace(PAGE, "a", "new\n\nlines\n\n").expect("one pair");
        let expected =
            "# Page\n\nBefore.\n\n<!-- bench:a -->\nnew\n\nlines\n<!-- /bench:a -->\n\nAfter.\n";
        assert_eq!(page, expected);
        assert_eq!(replace(&page, "a", "old").expect("one pair"), PAGE);
    }

    #[test]
    fn a_part_without_markers_comes_last_and_is_found_again() {
        let page = replace(PAGE, "b", "more").expect("none yet");
        assert!(page.starts_with(PAGE), "{page}");
        assert!(page.ends_with("\n\n<!-- bench:b -->\nmore\n<!-- /bench:b -->\n"));
        assert_eq!(replace(&page, "b", "more").expect("one pair"), page);
    }

    #[test]
    fn markers_that_are_not_one_pair_are_an_error() {
        let open = "<!-- bench:a -->";
        let close = "<!-- /bench:a -->";
        for page in [
            format!("{open} x"),
            format!("x {close}"),
            format!("{close} x {open}"),
            format!("{open}{close}{open}{close}"),
        ] {
            assert!(replace(&page, "a", "new").is_err(), "{page}");
        }
    }
}
