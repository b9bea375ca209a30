//! What a dump shows, before it is text or JSON.

use std::fmt;

/// A value with names for its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// A number.
    Number(u64),
    /// A number that may be negative: times, in nanoseconds.
    Signed(i64),
    /// Words.
    Text(String),
    /// Yes or no.
    Flag(bool),
    /// Parts with names, in an order.
    Fields(Vec<(&'static str, Shown)>),
    /// Several of a kind.
    List(Vec<Shown>),
}

impl Shown {
    /// Bytes that are mostly text.
    pub(super) fn bytes(bytes: &[u8]) -> Self {
        Self::Text(bytes.escape_ascii().to_string())
    }

    /// What prints itself.
    pub(super) fn of(value: impl fmt::Display) -> Self {
        Self::Text(value.to_string())
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        let indent = 2 * depth;
        match self {
            Self::Number(number) => writeln!(f, "{number}"),
            Self::Signed(number) => writeln!(f, "{number}"),
            Self::Text(text) => writeln!(f, "{text}"),
            Self::Flag(flag) => writeln!(f, "{}", if *flag { "yes" } else { "no" }),
            Self::Fields(fields) => fields.iter().try_for_each(|(name, value)| {
                write!(f, "{:indent$}{name}:", "")?;
                value.write_behind(f, depth)
            }),
            Self::List(items) => items.iter().try_for_each(|item| {
                write!(f, "{:indent$}-", "")?;
                item.write_behind(f, depth)
            }),
        }
    }

    fn write_behind(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        match self {
            Self::Fields(parts) if parts.is_empty() => writeln!(f, " none"),
            Self::List(items) if items.is_empty() => writeln!(f, " none"),
            Self::Fields(_) | Self::List(_) => {
                writeln!(f)?;
                self.write(f, depth + 1)
            }
            _ => {
                write!(f, " ")?;
                self.write(f, depth)
            }
        }
    }
}

/// As indented text.
impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_indented_below_their_names() {
        let shown = Shown::Fields(vec![
            ("number", Shown::Number(7)),
            (
                "names",
                Shown::List(vec![Shown::bytes(b"a\n"), Shown::Flag(true)]),
            ),
            ("none", Shown::List(Vec::new())),
            ("inner", Shown::Fields(vec![("time", Shown::Signed(-1))])),
        ]);
        let text = "number: 7\nnames:\n  - a\\n\n  - yes\nnone: none\ninner:\n  time: -1\n";
        assert_eq!(shown.to_string(), text);
    }
}
