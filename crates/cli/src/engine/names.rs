//! Names of users and groups of this host.

use std::collections::HashMap;

use holdfast::{Named, Owners};
use nix::unistd::{Gid, Group, Uid, User};
use parking_lot::Mutex;

use crate::message::{Failure, Result};

/// A cache of the host's user and group databases.
#[derive(Debug, Default)]
pub(super) struct HostNames {
    numbers: Mutex<Known<Vec<u8>, u32>>,
    names: Mutex<Known<u32, Vec<u8>>>,
}

/// Lookups and their results, negative ones included.
type Known<K, V> = HashMap<(Named, K), Option<V>>;

impl Owners for HostNames {
    fn number(&self, kind: Named, name: &[u8]) -> Option<u32> {
        let key = (kind, name.to_vec());
        *self.numbers.lock().entry(key).or_insert_with(|| {
            let name = std::str::from_utf8(name).ok()?;
            number(kind, name)
        })
    }

    fn name(&self, kind: Named, number: u32) -> Option<Vec<u8>> {
        let mut names = self.names.lock();
        let found = names.entry((kind, number)).or_insert_with(|| match kind {
            Named::User => User::from_uid(Uid::from_raw(number))
                .ok()?
                .map(|user| user.name.into_bytes()),
            Named::Group => Group::from_gid(Gid::from_raw(number))
                .ok()?
                .map(|group| group.name.into_bytes()),
        });
        found.clone()
    }
}

/// The number of a user or group; `None` also if the database cannot be read.
fn number(kind: Named, name: &str) -> Option<u32> {
    match kind {
        Named::User => Some(User::from_name(name).ok()??.uid.as_raw()),
        Named::Group => Some(Group::from_name(name).ok()??.gid.as_raw()),
    }
}

/// `USER`, `USER:GROUP`, `:GROUP`; each a name or a number.
pub(crate) fn parse_owner(text: &str) -> Result<(Option<u32>, Option<u32>)> {
    let (user, group) = text.split_once(':').unwrap_or((text, ""));
    let find = |kind, name: &str| match name {
        "" => Ok(None),
        name => parse_id(kind, name).map(Some),
    };
    let found = (find(Named::User, user)?, find(Named::Group, group)?);
    if found == (None, None) {
        return Err(Failure::new("names no owner")
            .about(format!("`{text}`"))
            .hint("USER, USER:GROUP or :GROUP"));
    }
    Ok(found)
}

/// The number of a user or group that is given as a name or as a number.
pub(crate) fn parse_id(kind: Named, name: &str) -> Result<u32> {
    let what = match kind {
        Named::User => "user",
        Named::Group => "group",
    };
    number(kind, name)
        .or_else(|| name.parse().ok())
        // System calls use it for "no id".
        .filter(|&number| number != u32::MAX)
        .ok_or_else(|| {
            Failure::new(format!("there is no {what} of this name"))
                .about(name)
                .hint("a number does as well")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_names_or_numbers() {
        assert_eq!(parse_owner("root").unwrap(), (Some(0), None));
        assert_eq!(parse_owner("root:root").unwrap(), (Some(0), Some(0)));
        assert_eq!(parse_owner(":77").unwrap(), (None, Some(77)));
        assert_eq!(parse_owner("5:6").unwrap(), (Some(5), Some(6)));
        for text in [
            "",
            ":",
            "no-such-user",
            "root:no-such-group",
            "-1",
            "4294967295",
            "4294967296",
        ] {
            assert!(parse_owner(text).is_err(), "{text}");
        }
    }

    #[test]
    fn root_is_known_by_name_and_number() {
        let names = HostNames::default();
        for kind in [Named::User, Named::Group] {
            assert_eq!(names.number(kind, b"root"), Some(0));
            assert_eq!(names.name(kind, 0), Some(b"root".to_vec()));
            assert_eq!(names.number(kind, b"no such one\xff"), None);
            assert_eq!(names.name(kind, 4_000_000_001), None);
        }
    }
}
