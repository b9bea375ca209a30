//! Conversion of ACLs between the text in archives and Linux' binary form in
//! `system.posix_acl_access` and `system.posix_acl_default`.

use super::pax::number;
use super::{Named, Owners};

/// Keys of PAX records and the attributes for them.
pub(super) const KEYS: [(&str, &str); 2] = [
    ("SCHILY.acl.access", "system.posix_acl_access"),
    ("SCHILY.acl.default", "system.posix_acl_default"),
];

const VERSION: u32 = 2;
const ENTRY_LEN: usize = 8;
/// The id of entries without a user or group.
const NO_ID: u32 = u32::MAX;
const USER: u16 = 0x01;
const GROUP: u16 = 0x04;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;
/// Tags, the word for each, and the kind of its id, if it has one.
const TAGS: [(u16, &str, Option<Named>); 6] = [
    (USER, "user", None),
    (0x02, "user", Some(Named::User)),
    (GROUP, "group", None),
    (0x08, "group", Some(Named::Group)),
    (MASK, "mask", None),
    (OTHER, "other", None),
];

/// The text of an attribute's value; `None` if it is malformed.
pub(super) fn to_text(value: &[u8]) -> Option<Vec<u8>> {
    let (version, entries) = value.split_first_chunk::<4>()?;
    if u32::from_le_bytes(*version) != VERSION {
        return None;
    }
    let (entries, rest) = entries.as_chunks::<ENTRY_LEN>();
    let mut text = String::new();
    for [tag0, tag1, perm, _, id @ ..] in entries {
        let tag = u16::from_le_bytes([*tag0, *tag1]);
        let (_, word, named) = TAGS.iter().find(|(other, _, _)| *other == tag)?;
        let id = match named {
            Some(_) => u32::from_le_bytes(*id).to_string(),
            None => String::new(),
        };
        let bit = |mask, letter| if perm & mask != 0 { letter } else { '-' };
        let (r, w, x) = (bit(4, 'r'), bit(2, 'w'), bit(1, 'x'));
        text.push_str(&format!("{word}:{id}:{r}{w}{x}\n"));
    }
    (rest.is_empty() && !text.is_empty()).then(|| text.into_bytes())
}

/// The attribute's value for a text. For a name that this host does not know, the number after it
/// is used, as star(1) writes it (`user:lisa:rw-:1000`). `None` without a number, and if the text
/// is no ACL.
pub(super) fn from_text(text: &[u8], names: Option<&dyn Owners>) -> Option<Vec<u8>> {
    let mut entries = Vec::new();
    for line in text.split(|byte| matches!(byte, b'\n' | b',')) {
        let line = line.split(|byte| *byte == b'#').next()?.trim_ascii();
        if !line.is_empty() {
            entries.push(entry(line, names)?);
        }
    }
    let count = |wanted| entries.iter().filter(|(tag, ..)| *tag == wanted).count();
    if [USER, GROUP, OTHER].iter().any(|tag| count(*tag) != 1) || count(MASK) > 1 {
        return None;
    }
    if count(MASK) == 0 && entries.len() > 3 {
        // The mask is the union of the permissions it limits, as setfacl(1) computes it.
        let grouped = entries
            .iter()
            .filter(|(tag, ..)| !matches!(*tag, USER | OTHER));
        let perm = grouped.fold(0, |sum, (_, perm, _)| sum | perm);
        entries.push((MASK, perm, NO_ID));
    }
    // Linux demands the order of tags, and of ids for each tag.
    entries.sort_by_key(|(tag, _, id)| (*tag, *id));
    let mut value = VERSION.to_le_bytes().to_vec();
    for (tag, perm, id) in &entries {
        value.extend(tag.to_le_bytes());
        value.extend(perm.to_le_bytes());
        value.extend(id.to_le_bytes());
    }
    Some(value)
}

fn entry(line: &[u8], names: Option<&dyn Owners>) -> Option<(u16, u16, u32)> {
    let mut fields = line.split(|byte| *byte == b':').map(<[u8]>::trim_ascii);
    let (word, name) = (fields.next()?, fields.next()?);
    // `mask` and `other` may omit the empty name.
    let perm = match fields.next() {
        Some(perm) => perm,
        None if matches!(word, b"mask" | b"m" | b"other" | b"o") => name,
        None => return None,
    };
    let word = match word {
        b"u" => &b"user"[..],
        b"g" => b"group",
        b"m" => b"mask",
        b"o" => b"other",
        word => word,
    };
    let is_named = !name.is_empty() && matches!(word, b"user" | b"group");
    let (tag, _, named) = TAGS
        .iter()
        .find(|(_, other, named)| other.as_bytes() == word && named.is_some() == is_named)?;
    let id = match named {
        Some(kind) => names
            .and_then(|names| names.number(*kind, name))
            .or_else(|| number(name))
            .or_else(|| number(fields.next()?))?,
        None => NO_ID,
    };
    let mut bits = 0;
    for letter in perm {
        bits |= match letter {
            b'r' => 4,
            b'w' => 2,
            b'x' => 1,
            b'-' => 0,
            _ => return None,
        };
    }
    Some((*tag, bits, id))
}

#[cfg(test)]
mod unit {
    use super::*;

    #[derive(Debug)]
    struct Lisa;

    impl Owners for Lisa {
        fn number(&self, kind: Named, name: &[u8]) -> Option<u32> {
            (kind == Named::User && name == b"lisa").then_some(77)
        }

        fn name(&self, _: Named, _: u32) -> Option<Vec<u8>> {
            None
        }
    }

    #[test]
    fn text_and_value_are_the_same_acl() {
        let text = b"user::rwx\nuser:1000:r--\ngroup::r-x\ngroup:5:-w-\nmask::rwx\nother::---\n";
        let value = from_text(text, None).unwrap();
        assert_eq!(value.len(), 4 + 6 * ENTRY_LEN);
        assert_eq!(to_text(&value).unwrap(), text);
    }

    #[test]
    fn names_are_looked_up_and_fall_back_to_the_number_behind() {
        let text = b"user::rw-,user:lisa:rw-:1000,group::r--,mask:rw-,other:r--";
        let known = to_text(&from_text(text, Some(&Lisa)).unwrap()).unwrap();
        assert!(known.starts_with(b"user::rw-\nuser:77:rw-\n"));
        let unknown = to_text(&from_text(text, None).unwrap()).unwrap();
        assert!(unknown.starts_with(b"user::rw-\nuser:1000:rw-\n"));
    }

    #[test]
    fn an_acl_without_a_mask_denies_nothing() {
        let text = b"user::rw-,user:7:rwx,group::r--,other::---";
        let whole = to_text(&from_text(text, None).unwrap()).unwrap();
        assert_eq!(
            whole,
            b"user::rw-\nuser:7:rwx\ngroup::r--\nmask::rwx\nother::---\n"
        );
        let small = b"user::rw-\ngroup::r--\nother::---\n";
        assert_eq!(to_text(&from_text(small, None).unwrap()).unwrap(), small);
    }

    #[test]
    fn what_is_no_acl_is_none() {
        for text in [
            &b""[..],
            b"user::rw-,user:7:rw-,other::r--",
            b"user::rw-,user::rw-,group::r--,other::r--",
            b"user",
            b"user::rwz",
            b"user:nobody-here:rw-",
            b"king::rwx",
        ] {
            assert_eq!(from_text(text, None), None, "{text:?}");
        }
        for value in [
            &b""[..],
            b"\x02\0\0\0",
            b"\x01\0\0\0\x01\0\x07\0\0\0\0\0",
            b"\x02\0\0\0\x01",
        ] {
            assert_eq!(to_text(value), None, "{value:?}");
        }
    }
}
