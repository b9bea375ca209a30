//! What directories and files are called: the same in a tree that is made call by call and in one
//! that is computed.

/// Names of files and directories have 24 bytes.
pub(crate) const FILE: &str = "file-";
pub(crate) const DIR: &str = "dir--";

/// The digits of a file's number, enough for all.
pub(crate) const DIGITS: usize = 19;

/// A thread's own directory.
pub(crate) fn top(thread: usize) -> String {
    format!("t{thread}")
}

/// A directory of files below a thread's own.
pub(crate) fn folder(number: usize) -> String {
    format!("d{number:07}")
}

/// A file.
pub(super) fn file(number: usize) -> String {
    format!("{FILE}{number:0DIGITS$}")
}

/// The number of which `name` is the name, in the form that `named` gives.
pub(super) fn number(name: &[u8], prefix: &str, named: fn(usize) -> String) -> Option<usize> {
    let digits = std::str::from_utf8(name).ok()?.strip_prefix(prefix)?;
    let number = digits.parse().ok()?;
    (named(number).as_bytes() == name).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_number_and_no_other_form_of_it_does() {
        for value in [0, 7, 999_999, 12_345_678] {
            assert_eq!(number(top(value).as_bytes(), "t", top), Some(value));
            assert_eq!(number(folder(value).as_bytes(), "d", folder), Some(value));
            assert_eq!(number(file(value).as_bytes(), FILE, file), Some(value));
        }
        for name in [&b"t01"[..], b"t+1", b"t", b"d1", b"\xff", b"t1 "] {
            assert_eq!(number(name, "t", top), None, "{name:?}");
        }
    }
}
