//! The constants: how many pairs may conflict. They only shrink.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Numbers of conflicting pairs by class.
pub(crate) struct Expected {
    counts: Vec<(String, usize)>,
}

/// How a count compares with its constant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Same,
    /// To be lowered to this.
    Shrunk(usize),
    /// More than this.
    Grown(usize),
    /// There is no constant.
    Unknown,
}

impl Expected {
    /// Reads the constants: lines of a word and a number; `#` begins a comment.
    ///
    /// # Errors
    /// When the file cannot be read, or a line is neither.
    pub(crate) fn load(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut counts = Vec::new();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let (word, number) = line
                .split_once(char::is_whitespace)
                .with_context(|| format!("not a word and a number: {line}"))?;
            let number = number
                .trim()
                .parse()
                .with_context(|| format!("not a number: {line}"))?;
            counts.push((word.to_owned(), number));
        }
        Ok(Self { counts })
    }

    /// Judges a count.
    pub(crate) fn judge(&self, word: &str, count: usize) -> Verdict {
        match self.counts.iter().find(|(known, _)| known == word) {
            None => Verdict::Unknown,
            Some(&(_, constant)) if count > constant => Verdict::Grown(constant),
            Some(&(_, constant)) if count < constant => Verdict::Shrunk(count),
            Some(_) => Verdict::Same,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_judged_against_its_constant() -> Result<()> {
        let expected = Expected::parse("# why\nreading 0\nall  12 # some\n\n")?;
        assert_eq!(expected.judge("reading", 0), Verdict::Same);
        assert_eq!(expected.judge("reading", 1), Verdict::Grown(0));
        assert_eq!(expected.judge("all", 11), Verdict::Shrunk(11));
        assert_eq!(expected.judge("none", 0), Verdict::Unknown);
        assert!(Expected::parse("reading").is_err());
        assert!(Expected::parse("reading few").is_err());
        Ok(())
    }
}
