//! The text of an address.

use super::secret::Secret;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use thiserror::Error;

/// The schema of a file system that the address does not name.
const DEFAULT_FILE_SYSTEM: &str = "holdfast";
/// PostgreSQL truncates longer names.
const NAME_MAX: usize = 63;
const SCHEMES: [&str; 3] = ["pg://", "postgres://", "postgresql://"];
/// Parameters that an address may have beside those of [`Address`] itself.
const CONNECTION: [&str; 8] = [
    "connect_timeout",
    "passfile",
    "password",
    "service",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
];

/// An address that cannot be used.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum AddressError {
    /// The text does not begin with a known scheme.
    #[error("begins with none of pg://, postgres:// and postgresql://")]
    Scheme,
    /// An escape does not stand for UTF-8.
    #[error("{0} is not UTF-8 after its %-escapes are replaced")]
    Escape(&'static str),
    /// A port is not a number.
    #[error("port {0:?} is not a number from 1 to 65535")]
    Port(String),
    /// A parameter is unknown.
    #[error("parameter {0}= is unknown{hint}", hint = hint(.0))]
    Parameter(String),
    /// A parameter stands there twice.
    #[error("parameter {0}= stands there twice")]
    Twice(String),
    /// The name of a file system is not the name of a schema.
    #[error(
        "fs={0} is not a name of 1 to 63 letters, digits and underscores that begins with a letter"
    )]
    FileSystem(String),
    /// A parameter has a value that it cannot have.
    #[error("{0}={1} is not one of: {2}")]
    Value(&'static str, String, &'static str),
    /// A file that the address or the environment names cannot be used.
    #[error("{0}")]
    File(String),
}

fn hint(given: &str) -> String {
    let known = OWN.iter().chain(&CONNECTION);
    let near = known.min_by_key(|known| strsim::damerau_levenshtein(known, given));
    near.filter(|near| strsim::damerau_levenshtein(near, given) <= 3)
        .map_or_else(String::new, |near| format!("; did you mean {near}=?"))
}

const OWN: [&str; 4] = ["fs", "bucket", "endpoint", "region"];

/// A file system in a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub(super) user: Option<String>,
    pub(super) password: Option<Secret>,
    /// Several: the first that can be written is used.
    pub(super) hosts: Vec<(String, Option<u16>)>,
    pub(super) database: Option<String>,
    pub(super) parameters: BTreeMap<String, String>,
    pub(super) file_system: String,
}

impl Address {
    /// Does a text look like an address of a file system in a database?
    #[must_use]
    pub fn is_one(text: &str) -> bool {
        SCHEMES.iter().any(|scheme| text.starts_with(scheme))
    }

    /// Parses an address.
    ///
    /// # Errors
    /// If it is not one.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let rest = SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme));
        let rest = rest.ok_or(AddressError::Scheme)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(decode(password, "the password")?)),
            None => (login, None),
        };
        let mut parameters = parameters(query)?;
        let file_system = parameters.remove("fs");
        let file_system = file_system.unwrap_or_else(|| DEFAULT_FILE_SYSTEM.into());
        if !is_schema(&file_system) {
            return Err(AddressError::FileSystem(file_system));
        }
        let in_query = parameters.remove("password");
        Ok(Self {
            user: some(decode(user, "the user")?),
            password: password.or(in_query).map(Secret::new),
            hosts: split_hosts(hosts)?,
            database: some(decode(database, "the database")?),
            parameters,
            file_system,
        })
    }

    /// The name of the file system: the schema with its tables.
    #[must_use]
    pub fn file_system(&self) -> &str {
        &self.file_system
    }

    /// Where the bytes go: `s3://BUCKET/PREFIX` or `file:///FOLDER`.
    #[must_use]
    pub fn bucket(&self) -> Option<&str> {
        self.parameters.get("bucket").map(String::as_str)
    }

    /// The endpoint of a bucket that is not Amazon's.
    #[must_use]
    pub fn endpoint(&self) -> Option<&str> {
        self.parameters.get("endpoint").map(String::as_str)
    }

    /// The region of the bucket.
    #[must_use]
    pub fn region(&self) -> Option<&str> {
        self.parameters.get("region").map(String::as_str)
    }

    /// The password in it, which any user of the machine can read.
    #[must_use]
    pub fn password(&self) -> Option<&Secret> {
        self.password.as_ref()
    }

    /// Adds a password that came another way.
    pub fn set_password(&mut self, password: String) {
        self.password = Some(Secret::new(password));
    }

    /// Makes the paths in it absolute: those that are relative begin in this directory.
    pub fn begin_paths_in(&mut self, dir: &Path) {
        for name in ["passfile", "sslcert", "sslkey", "sslrootcert"] {
            if let Some(path) = self.parameters.get_mut(name) {
                *path = dir.join(&*path).to_string_lossy().into_owned();
            }
        }
    }

    /// The address for another process: with all that a connection needs but the password.
    #[must_use]
    pub fn argument(&self) -> String {
        let mut text = self.to_string();
        let kept = |(name, _): &(&String, &String)| CONNECTION.contains(&name.as_str());
        for (name, value) in self.parameters.iter().filter(kept) {
            let value = utf8_percent_encode(value, &PLAIN_VALUE);
            text.push_str(&format!("&{name}={value}"));
        }
        text
    }
}

/// Bytes of a part of an address that stand for themselves.
const PLAIN: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// The same of a parameter.
const PLAIN_VALUE: AsciiSet = PLAIN.remove(b'/').remove(b':').remove(b',');

/// The address without its password, and without what the database keeps itself.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("pg://")?;
        if let Some(user) = &self.user {
            write!(f, "{}@", utf8_percent_encode(user, &PLAIN))?;
        }
        for (index, (host, port)) in self.hosts.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { "," })?;
            match host.contains(':') {
                true => write!(f, "[{host}]")?,
                false => write!(f, "{}", utf8_percent_encode(host, &PLAIN))?,
            }
            if let Some(port) = port {
                write!(f, ":{port}")?;
            }
        }
        let database = self.database.as_deref().unwrap_or("");
        write!(f, "/{}", utf8_percent_encode(database, &PLAIN))?;
        write!(f, "?fs={}", self.file_system)
    }
}

pub(super) fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

fn decode(text: &str, what: &'static str) -> Result<String, AddressError> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded
        .map(Into::into)
        .map_err(|_| AddressError::Escape(what))
}

fn parameters(query: &str) -> Result<BTreeMap<String, String>, AddressError> {
    let mut all = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !OWN.contains(&key) && !CONNECTION.contains(&key) {
            return Err(AddressError::Parameter(key.into()));
        }
        let value = decode(value, "a parameter")?;
        if all.insert(key.to_owned(), value).is_some() {
            return Err(AddressError::Twice(key.into()));
        }
    }
    Ok(all)
}

fn split_hosts(hosts: &str) -> Result<Vec<(String, Option<u16>)>, AddressError> {
    let each = hosts.split(',').filter(|host| !host.is_empty());
    each.map(|host| {
        let (name, port) = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
            Some((name, after)) => (name, after.strip_prefix(':')),
            None => match host.split_once(':') {
                Some((name, port)) => (name, Some(port)),
                None => (host, None),
            },
        };
        let bad = |port: &str| AddressError::Port(port.into());
        let number = |port: &str| match port.parse() {
            Ok(0) | Err(_) => Err(bad(port)),
            Ok(port) => Ok(port),
        };
        Ok((decode(name, "a host")?, port.map(number).transpose()?))
    })
    .collect()
}

/// May a schema have this name without being quoted?
fn is_schema(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let first = name.chars().next();
    name.len() <= NAME_MAX
        && first.is_some_and(|first| first.is_ascii_lowercase())
        && name.chars().all(is_part)
        && !name.starts_with("pg_")
}
