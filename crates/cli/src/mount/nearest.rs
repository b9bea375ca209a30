//! The known name that a misspelt one may mean.

/// The known name nearest to `name`, if it is near enough.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A third of the letters may differ, at most three.
    let most = name.chars().count().div_ceil(3).min(3);
    known
        .map(|candidate| (strsim::levenshtein(name, candidate), candidate))
        .min()
        .and_then(|(distance, candidate)| (distance <= most).then_some(candidate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_understood_and_another_word_is_not() {
        let known = ["noatime", "size", "nr_inodes", "nosuid"];
        assert_eq!(nearest("notime", known.into_iter()), Some("noatime"));
        assert_eq!(nearest("inodes", known.into_iter()), None);
        assert_eq!(nearest("nrinodes", known.into_iter()), Some("nr_inodes"));
        assert_eq!(nearest("encryption", known.into_iter()), None);
    }
}
