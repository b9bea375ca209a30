//! One member of an archive, decoded from its headers as GNU tar decodes them.
//!
//! The field accessors of the `tar` crate refuse blank, negative and base-256 fields that GNU tar
//! reads, so numbers are decoded here. A field that holds no number costs its value only: the
//! member is unpacked, and the field is reported.

use tar::{EntryType, Header};

use super::acl_text;
use super::owners::{Named, Owners};
use super::pax::Records;
use super::sparse::{self, Runs};
use crate::copy::tree::{About, Xattrs};
use crate::types::{FileType, Time};

/// The kind of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file, directory or the like.
    File(FileType),
    /// Another name of an earlier member.
    HardLink,
    /// A volume label.
    Label,
    /// The rest of a file that began in another archive.
    Continued,
}

/// The mode for a header without one.
const PERM_UNKNOWN: u16 = 0o600;
/// The time for a header without one, as in GNU tar: a second before 1970.
const MTIME_UNKNOWN: i64 = -1;
/// Most bytes of the value of one extended attribute on Linux.
const XATTR_MAX: usize = 64 << 10;

/// One member.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) kind: Kind,
    pub(super) path: Vec<u8>,
    /// The target of a link.
    pub(super) target: Vec<u8>,
    /// Bytes of the file.
    pub(super) size: u64,
    /// Bytes of the member's data in the archive.
    pub(super) stored: u64,
    /// The stored parts of a sparse file.
    pub(super) runs: Option<Runs>,
    /// Does the map of `runs` precede them in the data?
    pub(super) map_in_data: bool,
    /// Why the content cannot be unpacked.
    pub(super) broken: Option<String>,
    perm: u16,
    mtime: (Time, bool),
    rdev: u64,
    header: Header,
    records: Records,
}

impl Member {
    /// A member from its header, the long names before it and its records. Malformed fields are
    /// added to `wrong`. `None`: the size is malformed, so the next header cannot be found.
    pub(super) fn new(
        header: Header,
        long_name: Option<Vec<u8>>,
        long_target: Option<Vec<u8>>,
        records: Records,
        wrong: &mut Vec<String>,
    ) -> Option<Self> {
        let own = |key: &str| records.get(key).map(<[u8]>::to_vec);
        let path = own("GNU.sparse.name").or_else(|| own("path")).or(long_name);
        let path = path.unwrap_or_else(|| header.path_bytes().into_owned());
        let target = own("linkpath").or(long_target);
        let target = target.or_else(|| header.link_name_bytes().map(|name| name.into_owned()));
        let kind = kind(&header, &path);
        let size = records.number("size", wrong).or_else(|| size(&header))?;
        let old = header.as_old();
        let perm = field(&old.mode, "mode", wrong);
        let perm = perm.map_or(PERM_UNKNOWN, |mode| (mode & 0o7777) as u16);
        let seconds = field(&old.mtime, "mtime", wrong).unwrap_or(MTIME_UNKNOWN);
        let rdev = match kind {
            Kind::File(FileType::CharDevice | FileType::BlockDevice) => device(&header, wrong),
            _ => 0,
        };
        let mtime = clamped(seconds, 0);
        let mtime = time(&records, "mtime", wrong).unwrap_or(mtime);
        let stored = if has_data(kind, &header) { size } else { 0 };
        let mut member = Self {
            kind,
            path,
            target: target.unwrap_or_default(),
            size: stored,
            stored,
            runs: None,
            map_in_data: false,
            broken: None,
            perm,
            mtime,
            rdev,
            header,
            records,
        };
        if let Err(why) = member.look_for_holes(wrong) {
            member.broken = Some(why);
        }
        Some(member)
    }

    /// The type of this member, if it is unknown and so unpacked as a file.
    pub(super) fn unknown_type(&self) -> Option<char> {
        let byte = self.header.entry_type().as_byte();
        (self.kind == Kind::File(FileType::Regular) && !matches!(byte, b'0' | b'7' | b'S'))
            .then(|| char::from(byte))
    }

    /// The size in the header of a hard link: that of its data, or of the file without data.
    pub(super) fn size_of_link(&self) -> u64 {
        let own = self.records.number("size", &mut Vec::new());
        match self.kind {
            Kind::HardLink => own.or_else(|| size(&self.header)).unwrap_or(0),
            _ => 0,
        }
    }

    fn look_for_holes(&mut self, wrong: &mut Vec<String>) -> Result<(), String> {
        if self.header.entry_type().is_gnu_sparse() {
            let gnu = self.header.as_gnu().ok_or(sparse::DAMAGED)?;
            self.size = gnu.real_size().map_err(|_| sparse::DAMAGED)?;
            let mut runs = Runs::new();
            for piece in &gnu.sparse {
                sparse::add_piece(&mut runs, piece, self.size)?;
            }
            self.runs = Some(runs);
            return Ok(());
        }
        let real = self.records.number("GNU.sparse.realsize", wrong);
        let real = real.or_else(|| self.records.number("GNU.sparse.size", wrong));
        if let (Some(size), Kind::File(FileType::Regular)) = (real, self.kind) {
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

    /// The attributes for the file. A malformed owner becomes the caller.
    pub(super) fn about(
        &self,
        kind: FileType,
        caller: (u32, u32),
        names: Option<&dyn Owners>,
        wrong: &mut Vec<String>,
    ) -> About {
        let old = self.header.as_old();
        let (user, group) = (self.header.username_bytes(), self.header.groupname_bytes());
        let uid = self.owner("uid", &old.uid, ("uname", user), Named::User, names, wrong);
        let gid = self.owner(
            "gid",
            &old.gid,
            ("gname", group),
            Named::Group,
            names,
            wrong,
        );
        let atime = time(&self.records, "atime", wrong);
        About {
            kind,
            perm: self.perm,
            uid: uid.unwrap_or(caller.0),
            gid: gid.unwrap_or(caller.1),
            rdev: self.rdev,
            size: self.size,
            nlink: 1,
            id: (0, 0),
            sparse: self.runs.is_some(),
            atime: atime.unwrap_or(self.mtime).0,
            mtime: self.mtime.0,
            clamped: self.mtime.1,
        }
    }

    /// The id of the name, if this host knows it, else the number.
    fn owner(
        &self,
        key: &str,
        field: &[u8],
        (name_key, name): (&str, Option<&[u8]>),
        kind: Named,
        names: Option<&dyn Owners>,
        wrong: &mut Vec<String>,
    ) -> Option<u32> {
        let name = self.records.get(name_key).or(name);
        let name = name.filter(|name| !name.is_empty());
        let known = names.zip(name);
        if let Some(known) = known.and_then(|(names, name)| names.number(kind, name)) {
            return Some(known);
        }
        let said = self.records.number(key, wrong).map(i64::try_from);
        let said = said.map_or_else(|| number(field), Result::ok);
        let id = said.and_then(|id| u32::try_from(id).ok());
        if id.is_none() {
            wrong.push(not_a_number(key, field));
        }
        id
    }

    /// Extended attributes and ACLs, and the number of those that cannot be decoded.
    pub(super) fn xattrs(&self, names: Option<&dyn Owners>) -> (Xattrs, u64) {
        use std::os::unix::ffi::OsStringExt as _;
        let mut found = Xattrs::new();
        let mut lost = 0;
        for (key, value) in self.records.iter() {
            let acl = acl_text::KEYS.iter().find(|(acl, _)| key == acl.as_bytes());
            let attribute = if let Some((_, name)) = acl {
                let value = (!value.is_empty()).then(|| acl_text::from_text(value, names));
                value.map(|value| Some((name.as_bytes().to_vec(), value?)))
            } else if let Some(name) = key.strip_prefix(b"LIBARCHIVE.xattr.") {
                Some(from_base64(value).map(|value| (unescaped(name, None), value)))
            } else if let Some(name) = key.strip_prefix(b"SCHILY.xattr.") {
                // bsdtar writes both forms, and escapes more in the name than GNU tar reads.
                let both = [b"LIBARCHIVE.xattr.", name].concat();
                let is_first = self.records.iter().all(|(other, _)| other != both);
                is_first.then(|| Some((unescaped(name, Some(b"=%")), value.to_vec())))
            } else {
                (key == b"SCHILY.acl.ace").then_some(None)
            };
            match attribute {
                Some(Some((name, value))) if value.len() <= XATTR_MAX => {
                    let name = std::ffi::OsString::from_vec(name);
                    found.retain(|(other, _)| *other != name);
                    found.push((name, value));
                }
                Some(_) => lost += 1,
                None => {}
            }
        }
        (found, lost)
    }
}

fn kind(header: &Header, path: &[u8]) -> Kind {
    Kind::File(match header.entry_type() {
        // Before POSIX, a directory was a file with a name that ends in a slash.
        EntryType::Regular | EntryType::Continuous if path.ends_with(b"/") => FileType::Directory,
        EntryType::Link => return Kind::HardLink,
        EntryType::Symlink => FileType::Symlink,
        EntryType::Char => FileType::CharDevice,
        EntryType::Block => FileType::BlockDevice,
        EntryType::Directory => FileType::Directory,
        EntryType::Fifo => FileType::Fifo,
        other => match other.as_byte() {
            b'D' => FileType::Directory,
            b'V' => return Kind::Label,
            b'M' => return Kind::Continued,
            _ => FileType::Regular,
        },
    })
}

/// Does data of the header's size follow? Directories of incremental archives are followed by their
/// names.
fn has_data(kind: Kind, header: &Header) -> bool {
    match kind {
        Kind::HardLink => false,
        Kind::Label | Kind::Continued => true,
        Kind::File(FileType::Directory) => header.entry_type().as_byte() == b'D',
        Kind::File(kind) => kind == FileType::Regular,
    }
}

/// The number of a device; headers from before POSIX have none.
fn device(header: &Header, wrong: &mut Vec<String>) -> u64 {
    let ustar = header.as_ustar();
    let ustar = ustar.map(|ustar| (ustar.dev_major, ustar.dev_minor));
    let gnu = header.as_gnu().map(|gnu| (gnu.dev_major, gnu.dev_minor));
    let Some((major, minor)) = ustar.or(gnu) else {
        return 0;
    };
    let mut part = |bytes: &[u8], name| {
        let found = field(bytes, name, wrong).and_then(|found| u32::try_from(found).ok());
        found.unwrap_or_default()
    };
    rustix::fs::makedev(part(&major, "major"), part(&minor, "minor"))
}

/// The size in a header.
pub(super) fn size(header: &Header) -> Option<u64> {
    number(&header.as_old().size).and_then(|size| u64::try_from(size).ok())
}

/// A number in a header: octal digits, or base 256 where the first bit is set. `None` for a field
/// of blanks or other text; an empty field is zero.
pub(super) fn number(field: &[u8]) -> Option<i64> {
    // Old programs let the preceding field overflow into this one.
    let field = field.strip_prefix(b"\0").unwrap_or(field);
    if let Some((first @ 0x80.., rest)) = field.split_first() {
        // Two's complement; the first bit is only the mark.
        let first = i64::from((first << 1).cast_signed() >> 1);
        return rest.iter().try_fold(first, |sum, byte| {
            sum.checked_mul(256)?.checked_add(i64::from(*byte))
        });
    }
    let text = field.trim_ascii_start();
    let digits = text.iter().take_while(|byte| matches!(byte, b'0'..=b'7'));
    let digits = digits.count();
    match text.get(digits) {
        Some(end) if *end != 0 && !end.is_ascii_whitespace() => return None,
        None if text.is_empty() => return None,
        _ => {}
    }
    text[..digits].iter().try_fold(0_i64, |sum, digit| {
        sum.checked_mul(8)?.checked_add(i64::from(digit - b'0'))
    })
}

/// A number in a header; a malformed field is added to `wrong`.
fn field(bytes: &[u8], name: &str, wrong: &mut Vec<String>) -> Option<i64> {
    let found = number(bytes);
    if found.is_none() {
        wrong.push(not_a_number(name, bytes));
    }
    found
}

fn not_a_number(name: &str, field: &[u8]) -> String {
    let shown = &field[..field.len().min(32)];
    format!("its {name} is no number: \"{}\"", shown.escape_ascii())
}

/// Decodes `%` and two hexadecimal digits: all of them, or only those for a byte in `only`.
fn unescaped(name: &[u8], only: Option<&[u8]>) -> Vec<u8> {
    let mut found = Vec::with_capacity(name.len());
    let mut at = 0;
    while let Some(byte) = name.get(at) {
        let code = name.get(at + 1..at + 3).filter(|_| *byte == b'%');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        match code.filter(|code| only.is_none_or(|only| only.contains(code))) {
            Some(code) => {
                found.push(code);
                at += 3;
            }
            None => {
                found.push(*byte);
                at += 1;
            }
        }
    }
    found
}

/// Base 64 as libarchive writes it, without `=` at the end.
fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.trim_ascii_end();
    let end = text.iter().rposition(|byte| *byte != b'=');
    let mut found = Vec::with_capacity(text.len());
    let (mut bits, mut held) = (0_u32, 0);
    for byte in &text[..end.map_or(0, |end| end + 1)] {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(digit);
        held += 6;
        if held >= 8 {
            held -= 8;
            found.push((bits >> held) as u8);
        }
    }
    Some(found)
}

/// A time clamped to the range of files, and whether it was clamped.
fn clamped(seconds: i64, nanos: u32) -> (Time, bool) {
    let time = Time::new(seconds, nanos);
    (time, time.secs() != seconds)
}

/// A time in the records.
fn time(records: &Records, key: &str, wrong: &mut Vec<String>) -> Option<(Time, bool)> {
    let text = records.get(key)?;
    let parsed = parse_time(text);
    if parsed.is_none() {
        wrong.push(format!("its PAX record {key} is no time"));
    }
    parsed
}

/// `SECONDS[.FRACTION]`, negative ones too.
fn parse_time(text: &[u8]) -> Option<(Time, bool)> {
    let text = std::str::from_utf8(text).ok()?;
    // Python writes small fractions of the first second in this form.
    let small = text.contains("e-").then(|| text.parse::<f64>().ok());
    let small = small.flatten().map(|seconds| format!("{seconds:.9}"));
    let text = small.as_deref().unwrap_or(text);
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
    Some(clamped(seconds, nanos))
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
    fn numbers_are_what_gnu_tar_reads() {
        for (field, value) in [
            (&b"0000644\0"[..], Some(0o644)),
            (b"   644 \0", Some(0o644)),
            (b"00000644", Some(0o644)),
            (b"\x000000017", Some(0o17)),
            (b"644 junk", Some(0o644)),
            (b"\0\0\0\0\0\0\0\0", Some(0)),
            (b"       \0", Some(0)),
            (b"        ", None),
            (b"0000799\0", None),
            (b"abc\0\0\0\0\0", None),
            (b"\x80\0\0\0\x01\0\0\0", Some(1 << 24)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xfe", Some(-2)),
            (b"\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", None),
        ] {
            assert_eq!(number(field), value, "{}", field.escape_ascii());
        }
    }

    #[test]
    fn names_and_values_of_attributes_are_decoded() {
        assert_eq!(
            unescaped(b"user.a%3Db%25c%20%", Some(b"=%")),
            b"user.a=b%c%20%"
        );
        assert_eq!(unescaped(b"%41%4", None), b"A%4");
        for (text, value) in [
            (&b""[..], Some(&b""[..])),
            (b"TQ", Some(b"M")),
            (b"TWE=", Some(b"Ma")),
            (b"TWFu\n", Some(b"Man")),
            (b"T?", None),
        ] {
            assert_eq!(from_base64(text).as_deref(), value);
        }
    }

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
        assert_eq!(parse_time(b"1e-09"), Some((Time(1), false)));
        assert!(parse_time(b"99999999999").is_some_and(|(_, clamped)| clamped));
        for text in [&b""[..], b"-", b"+1", b"1.x", b"--1", b"1e9", b"\xff"] {
            assert_eq!(parse_time(text), None, "{text:?}");
        }
    }
}
