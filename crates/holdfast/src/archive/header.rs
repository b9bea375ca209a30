//! One member of an archive, as its headers tell it.

use std::io;

use tar::{EntryType, Header};

use super::acl_text;
use super::owners::{Named, Owners};
use super::pax::Records;
use super::sparse::{self, Runs};
use super::{UnpackOptions, damaged};
use crate::copy::tree::{About, Xattrs};
use crate::types::{FileType, Time};

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file, directory or the like.
    File(FileType),
    /// One more name of a member before.
    HardLink,
    /// What only the program that wrote the archive knows.
    Unknown(u8),
}

/// One member.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) kind: Kind,
    pub(super) path: Vec<u8>,
    /// Where a link leads.
    pub(super) target: Vec<u8>,
    /// Bytes of the file.
    pub(super) size: u64,
    /// Bytes of it in the archive.
    pub(super) stored: u64,
    /// Which of its bytes those are, if not all.
    pub(super) runs: Option<Runs>,
    /// Is the map of those in front of them?
    pub(super) map_in_data: bool,
    header: Header,
    records: Records,
}

impl Member {
    /// From its header, the long names before it and the records that hold for it.
    ///
    /// # Errors
    /// `InvalidData`.
    pub(super) fn new(
        header: Header,
        long_name: Option<Vec<u8>>,
        long_target: Option<Vec<u8>>,
        records: Records,
    ) -> io::Result<Self> {
        let stored = match records.number("size")? {
            Some(size) => size,
            None => header.entry_size()?,
        };
        let own = |key: &str| records.get(key).map(<[u8]>::to_vec);
        let name = own("GNU.sparse.name").or_else(|| own("path")).or(long_name);
        let path = name.unwrap_or_else(|| header.path_bytes().into_owned());
        let target = own("linkpath").or(long_target);
        let target = target.or_else(|| header.link_name_bytes().map(|name| name.into_owned()));
        let kind = kind(&header, &path);
        let mut member = Self {
            kind,
            path,
            target: target.unwrap_or_default(),
            size: stored,
            stored,
            runs: None,
            map_in_data: false,
            header,
            records,
        };
        member.look_for_holes()?;
        Ok(member)
    }

    fn look_for_holes(&mut self) -> io::Result<()> {
        if self.header.entry_type().is_gnu_sparse() {
            let gnu = self.header.as_gnu();
            let gnu = gnu.ok_or_else(|| damaged("a sparse file without a map"))?;
            self.size = gnu.real_size()?;
            let mut runs = Runs::new();
            for piece in gnu.sparse.iter().filter(|piece| !piece.is_empty()) {
                sparse::add(&mut runs, piece.offset()?, piece.length()?, self.size)?;
            }
            self.runs = Some(runs);
            return Ok(());
        }
        let real = self.records.number("GNU.sparse.realsize")?;
        if let Some(size) = real.or(self.records.number("GNU.sparse.size")?) {
            self.size = size;
            self.map_in_data = self.records.get("GNU.sparse.major") == Some(b"1");
            if !self.map_in_data {
                self.runs = sparse::from_records(&self.records, size)?;
            }
        }
        Ok(())
    }

    /// Does a block with more of the map follow the header?
    pub(super) fn map_goes_on(&self) -> bool {
        let is_sparse = self.header.entry_type().is_gnu_sparse();
        is_sparse && self.header.as_gnu().is_some_and(|gnu| gnu.is_extended())
    }

    /// The attributes that the copy gets, as the options say; owners are the archive's.
    ///
    /// # Errors
    /// `InvalidData`.
    pub(super) fn about(&self, kind: FileType, options: &UnpackOptions) -> io::Result<About> {
        let names = options.names.as_deref();
        let header = &self.header;
        let (uid, gid) = (header.uid(), header.gid());
        let uid = self.owner(
            ("uid", "uname"),
            uid,
            header.username_bytes(),
            Named::User,
            names,
        )?;
        let gid = self.owner(
            ("gid", "gname"),
            gid,
            header.groupname_bytes(),
            Named::Group,
            names,
        )?;
        let mtime = match self.time("mtime")? {
            Some(time) => time,
            None => (
                Time::new(i64::try_from(header.mtime()?).unwrap_or(i64::MAX), 0),
                false,
            ),
        };
        let atime = self.time("atime")?.map_or(mtime.0, |(time, _)| time);
        let number = |number: io::Result<Option<u32>>| Ok::<_, io::Error>(number?.unwrap_or(0));
        let rdev = match kind {
            FileType::CharDevice | FileType::BlockDevice => rustix::fs::makedev(
                number(header.device_major())?,
                number(header.device_minor())?,
            ),
            _ => 0,
        };
        Ok(About {
            kind,
            perm: (header.mode()? & 0o7777) as u16,
            uid,
            gid,
            rdev,
            size: self.size,
            nlink: 1,
            id: (0, 0),
            sparse: self.runs.is_some(),
            atime,
            mtime: mtime.0,
            clamped: mtime.1,
        })
    }

    /// A name that this host knows, else the number.
    fn owner(
        &self,
        (number_key, name_key): (&str, &str),
        number: io::Result<u64>,
        name: Option<&[u8]>,
        kind: Named,
        names: Option<&dyn Owners>,
    ) -> io::Result<u32> {
        let name = self
            .records
            .get(name_key)
            .or(name)
            .filter(|name| !name.is_empty());
        if let Some(known) = name
            .zip(names)
            .and_then(|(name, names)| names.number(kind, name))
        {
            return Ok(known);
        }
        let number = match self.records.number(number_key)? {
            Some(number) => number,
            None => number?,
        };
        u32::try_from(number).map_err(|_| damaged(format!("{number_key} {number} is too large")))
    }

    /// A time of the records, and whether it is beyond what a file can have.
    fn time(&self, key: &str) -> io::Result<Option<(Time, bool)>> {
        let Some(text) = self.records.get(key) else {
            return Ok(None);
        };
        let parsed = parse_time(text);
        parsed
            .map(Some)
            .ok_or_else(|| damaged(format!("{key} is not a time")))
    }

    /// Extended attributes and ACLs, and how many of the latter cannot be told.
    pub(super) fn xattrs(&self, names: Option<&dyn Owners>) -> (Xattrs, u64) {
        use std::os::unix::ffi::OsStringExt as _;
        let mut found = Xattrs::new();
        let mut lost = 0;
        for (key, value) in self.records.iter() {
            if let Some(name) = key.strip_prefix(b"SCHILY.xattr.") {
                found.push((std::ffi::OsString::from_vec(name.to_vec()), value.to_vec()));
            }
            for (acl, name) in acl_text::KEYS {
                if key != acl.as_bytes() || value.is_empty() {
                    continue;
                }
                match acl_text::from_text(value, names) {
                    Some(value) => found.push((name.into(), value)),
                    None => lost += 1,
                }
            }
        }
        (found, lost)
    }
}

fn kind(header: &Header, path: &[u8]) -> Kind {
    match header.entry_type() {
        // Before POSIX a directory was a file whose name ends so.
        EntryType::Regular if path.ends_with(b"/") => Kind::File(FileType::Directory),
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
            Kind::File(FileType::Regular)
        }
        EntryType::Link => Kind::HardLink,
        EntryType::Symlink => Kind::File(FileType::Symlink),
        EntryType::Char => Kind::File(FileType::CharDevice),
        EntryType::Block => Kind::File(FileType::BlockDevice),
        EntryType::Directory => Kind::File(FileType::Directory),
        EntryType::Fifo => Kind::File(FileType::Fifo),
        other => Kind::Unknown(other.as_byte()),
    }
}

/// `SECONDS[.FRACTION]`, negative ones too.
fn parse_time(text: &[u8]) -> Option<(Time, bool)> {
    let text = std::str::from_utf8(text).ok()?;
    let (digits, negative) = match text.strip_prefix('-') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let seconds: i64 = whole
        .parse()
        .ok()
        .filter(|_| whole.starts_with(|c: char| c.is_ascii_digit()))?;
    let nine: String = fraction
        .chars()
        .chain("000000000".chars())
        .take(9)
        .collect();
    let nanos: u32 = nine.parse().ok()?;
    let (seconds, nanos) = match (negative, nanos) {
        (false, nanos) => (seconds, nanos),
        (true, 0) => (-seconds, 0),
        (true, nanos) => (-seconds - 1, 1_000_000_000 - nanos),
    };
    let time = Time::new(seconds, nanos);
    Some((time, time.secs() != seconds))
}

/// The text of a time.
pub(super) fn time_text(time: Time) -> String {
    let (seconds, nanos) = (time.secs(), time.subsec_nanos());
    let (sign, seconds, nanos) = match (seconds < 0, nanos) {
        (false, nanos) => ("", seconds, nanos),
        (true, 0) => ("-", -seconds, 0),
        (true, nanos) => ("-", -seconds - 1, 1_000_000_000 - nanos),
    };
    let text = format!("{sign}{seconds}.{nanos:09}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn times_before_and_after_1970_are_the_same_as_text() {
        for nanos in [
            0,
            1,
            -1,
            1_500_000_000,
            -1_500_000_000,
            -2_000_000_000,
            i64::MAX,
            i64::MIN + 1,
        ] {
            let time = Time(nanos);
            let text = time_text(time);
            assert_eq!(parse_time(text.as_bytes()), Some((time, false)), "{text}");
        }
        assert_eq!(time_text(Time(-1_500_000_000)), "-1.5");
        assert_eq!(
            parse_time(b"1.0000000019"),
            Some((Time(1_000_000_001), false))
        );
        assert!(parse_time(b"99999999999").is_some_and(|(_, clamped)| clamped));
        for text in [&b""[..], b"-", b"+1", b"1.x", b"--1", b"1e9", b"\xff"] {
            assert_eq!(parse_time(text), None, "{text:?}");
        }
    }
}
