//! PAX records: `LENGTH KEY=VALUE\n`, where the length counts all of it. A value may hold any bytes.

use super::damaged;
use std::io;

/// The records of one member, the last of a key in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Records(Vec<(Vec<u8>, Vec<u8>)>);

impl Records {
    /// Reads the content of a PAX header.
    ///
    /// # Errors
    /// `InvalidData` where a record does not have its length.
    pub(super) fn parse(mut bytes: &[u8]) -> io::Result<Self> {
        let mut records = Vec::new();
        // Some writers fill the rest of a block with zeros.
        while bytes.first().is_some_and(|first| *first != 0) {
            let bad = || damaged("a PAX record is damaged");
            let space = bytes
                .iter()
                .position(|byte| *byte == b' ')
                .ok_or_else(bad)?;
            let length: usize = number(&bytes[..space]).ok_or_else(bad)?;
            let record = bytes.get(space + 1..length).ok_or_else(bad)?;
            let record = record.strip_suffix(b"\n").ok_or_else(bad)?;
            let equals = record.iter().position(|byte| *byte == b'=');
            let (key, value) = record.split_at(equals.ok_or_else(bad)?);
            records.push((key.to_vec(), value[1..].to_vec()));
            bytes = &bytes[length..];
        }
        Ok(Self(records))
    }

    /// The value of a key; an empty one takes a key back.
    pub(super) fn get(&self, key: &str) -> Option<&[u8]> {
        let found = self
            .0
            .iter()
            .rev()
            .find(|(other, _)| other == key.as_bytes());
        found
            .map(|(_, value)| &value[..])
            .filter(|value| !value.is_empty())
    }

    /// The value of a key as a number.
    ///
    /// # Errors
    /// `InvalidData` if it is none.
    pub(super) fn number(&self, key: &str) -> io::Result<Option<u64>> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let parsed = number(value).map(|found: usize| found as u64);
        parsed
            .map(Some)
            .ok_or_else(|| damaged(format!("{key} is not a number")))
    }

    /// All records in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(key, value)| (&key[..], &value[..]))
    }

    /// Puts records of one member over these, which hold for all that follow.
    pub(super) fn over(&self, member: Self) -> Self {
        let mut all = self.0.clone();
        all.extend(member.0);
        Self(all)
    }
}

/// A decimal number.
pub(super) fn number<N: std::str::FromStr>(text: &[u8]) -> Option<N> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn values_hold_any_bytes_and_the_last_of_a_key_counts() {
        let records = Records::parse(b"9 a=1\n2\n\n11 b=four\n0\n8 a=\xff\n=\n").unwrap_err();
        assert_eq!(records.kind(), io::ErrorKind::InvalidData);
        let records = Records::parse(b"9 a=1\n2\n\n11 size=7\n8 a=\xff\n=\n\0\0").unwrap_err();
        assert_eq!(records.kind(), io::ErrorKind::InvalidData);
        let records = Records::parse(b"9 a=1\n2\n\n9 size=7\n8 a=\xff\n=\n\0\0").unwrap();
        assert_eq!(records.get("a"), Some(&b"\xff\n="[..]));
        assert_eq!(records.number("size").unwrap(), Some(7));
        assert_eq!(records.get("b"), None);
        assert!(records.number("a").is_err());
        let taken_back = records.over(Records::parse(b"8 size=\n").unwrap());
        assert_eq!(taken_back.get("size"), None);
    }

    #[test]
    fn a_record_that_lies_about_its_length_is_damage() {
        for bytes in [
            &b"99 a=b\n"[..],
            b"x a=b\n",
            b"2 \n",
            b"5 ab\n",
            b"18446744073709551615 a=b\n",
            b"0 a=b\n",
        ] {
            assert!(Records::parse(bytes).is_err(), "{bytes:?}");
        }
    }
}
