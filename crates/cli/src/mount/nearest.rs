//! The known name that a misspelt one may mean.

/// The known name nearest to `name`, if it is near enough.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A third of the letters may differ, at most three.
    let most = name.chars().count().div_ceil(3).min(3);
    known
        .map(|candidate| (distance(name, candidate), candidate))
        .min()
        .and_then(|(distance, candidate)| (distance <= most).then_some(candidate))
}

/// The Levenshtein distance.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, letter) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_single_letters() {
        for (from, to, letters) in [
            ("", "", 0),
            ("", "abc", 3),
            ("ro", "rw", 1),
            ("sise", "size", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(from, to), letters, "{from} {to}");
            assert_eq!(distance(to, from), letters, "{to} {from}");
        }
    }

    #[test]
    fn a_slip_is_understood_and_another_word_is_not() {
        let known = ["noatime", "size", "nr_inodes", "nosuid"];
        assert_eq!(nearest("notime", known.into_iter()), Some("noatime"));
        assert_eq!(nearest("inodes", known.into_iter()), None);
        assert_eq!(nearest("nrinodes", known.into_iter()), Some("nr_inodes"));
        assert_eq!(nearest("encryption", known.into_iter()), None);
    }
}
