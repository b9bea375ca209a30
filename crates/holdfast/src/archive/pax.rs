//! PAX records: `LENGTH KEY=VALUE\n`, where the length is that of the whole record.
//!
//! A value may hold any bytes, also newlines. `tar::PaxExtensions` ends values at the first
//! newline.

use std::rc::Rc;

/// Keys and values.
type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// The records of one member; the last record of a key counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Records {
    /// Records of global headers, which hold for all following members.
    global: Rc<Pairs>,
    own: Pairs,
}

impl Records {
    /// Parses the content of a PAX header, up to the first damaged record.
    pub(super) fn parse(mut bytes: &[u8], wrong: &mut Vec<String>) -> Self {
        let mut own = Pairs::new();
        // Some writers pad the content with zeros.
        while bytes.first().is_some_and(|first| *first != 0) {
            let Some((key, value, length)) = record(bytes) else {
                wrong.push("a PAX record before it is damaged".to_owned());
                break;
            };
            own.push((key.to_vec(), value.to_vec()));
            bytes = &bytes[length..];
        }
        let global = Rc::default();
        Self { global, own }
    }

    /// The value of a key; an empty value deletes the key.
    pub(super) fn get(&self, key: &str) -> Option<&[u8]> {
        let pairs = self.own.iter().rev().chain(self.global.iter().rev());
        let mut pairs = pairs.filter(|(other, _)| other == key.as_bytes());
        let (_, value) = pairs.next()?;
        (!value.is_empty()).then_some(&value[..])
    }

    /// The value of a key as a number that is not negative.
    pub(super) fn number(&self, key: &str, wrong: &mut Vec<String>) -> Option<u64> {
        let found = number(self.get(key)?).and_then(|found: i64| u64::try_from(found).ok());
        if found.is_none() {
            wrong.push(format!("its PAX record {key} is no number"));
        }
        found
    }

    /// All records in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let pairs = self.global.iter().chain(&self.own);
        pairs.map(|(key, value)| (&key[..], &value[..]))
    }

    /// Adds records that hold for all following members.
    pub(super) fn add_global(&mut self, more: Self) {
        Rc::make_mut(&mut self.global).extend(more.own);
    }

    /// Bytes of all records.
    pub(super) fn bytes(&self) -> usize {
        self.iter()
            .map(|(key, value)| key.len() + value.len())
            .sum()
    }

    /// Combines the global records with those of one member.
    pub(super) fn under(&self, member: Self) -> Self {
        let global = Rc::clone(&self.global);
        Self { global, ..member }
    }
}

/// The first record, and its length.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8], usize)> {
    let space = bytes.iter().position(|byte| *byte == b' ')?;
    let length: usize = number(&bytes[..space])?;
    let record = bytes.get(space + 1..length)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|byte| *byte == b'=')?;
    Some((&record[..equals], &record[equals + 1..], length))
}

/// A decimal number.
pub(super) fn number<N: std::str::FromStr>(text: &[u8]) -> Option<N> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod unit {
    use super::*;

    fn parsed(bytes: &[u8]) -> (Records, usize) {
        let mut wrong = Vec::new();
        let records = Records::parse(bytes, &mut wrong);
        (records, wrong.len())
    }

    #[test]
    fn values_hold_any_bytes_and_the_last_of_a_key_counts() {
        assert_eq!(parsed(b"9 a=1\n2\n\n11 b=four\n0\n8 a=\xff\n=\n").1, 1);
        let (records, wrong) = parsed(b"9 a=1\n2\n\n9 size=7\n8 a=\xff\n=\n\0\0");
        assert_eq!(wrong, 0);
        assert_eq!(records.get("a"), Some(&b"\xff\n="[..]));
        assert_eq!(records.number("size", &mut Vec::new()), Some(7));
        assert_eq!(records.get("b"), None);
        let mut wrong = Vec::new();
        assert_eq!(records.number("a", &mut wrong), None);
        assert_eq!(wrong.len(), 1);
        let mut global = Records::default();
        global.add_global(records);
        assert_eq!(
            global.under(Records::default()).get("size"),
            Some(&b"7"[..])
        );
        let taken_back = global.under(parsed(b"8 size=\n").0);
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
            assert_eq!(parsed(bytes), (Records::default(), 1), "{bytes:?}");
        }
    }
}
