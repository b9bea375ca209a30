//! How an inode is printed.

use holdfast::types::{Attr, FileType, Time};
use std::fmt::Write as _;

/// The line that is printed for each inode.
#[derive(Clone, Debug)]
pub(super) enum Format {
    /// One JSON object a line.
    Json,
    /// Text with directives.
    Text(Vec<Part>),
}

/// A piece of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    Field(char),
}

/// What is printed if nothing else is asked for.
pub(super) const STANDARD: &str = "%i\\t%F\\t%a\\t%h\\t%u\\t%g\\t%s\\t%Y";

/// The letters of stat(1) that there are.
const FIELDS: &str = "iFafhugsbrXYZW";

impl Format {
    /// Reads directives and escapes.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            match (letter, letters.clone().next()) {
                ('%', Some('%')) => plain.push('%'),
                ('%', Some(field)) if FIELDS.contains(field) => {
                    if !plain.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut plain)));
                    }
                    parts.push(Part::Field(field));
                }
                ('%', _) => return Err(format!("{text:?}: there are %{}", spread(FIELDS))),
                ('\\', Some('t')) => plain.push('\t'),
                ('\\', Some('n')) => plain.push('\n'),
                ('\\', Some('0')) => plain.push('\0'),
                ('\\', Some('\\')) => plain.push('\\'),
                ('\\', _) => return Err(format!("{text:?}: there are \\t, \\n, \\0 and \\\\")),
                _ => {
                    plain.push(letter);
                    continue;
                }
            }
            letters.next();
        }
        plain.push('\n');
        parts.push(Part::Text(plain));
        Ok(Self::Text(parts))
    }

    /// Adds a line.
    pub(super) fn line(&self, attr: &Attr, out: &mut String) {
        // Writing to a string does not fail.
        let _ = match self {
            Self::Json => json(attr, out),
            Self::Text(parts) => parts.iter().try_for_each(|part| match part {
                Part::Text(text) => out.write_str(text),
                Part::Field(field) => write_field(*field, attr, out),
            }),
        };
    }
}

fn spread(letters: &str) -> String {
    let letters: Vec<String> = letters.chars().map(String::from).collect();
    letters.join(" %")
}

fn kind(kind: FileType) -> &'static str {
    match kind {
        FileType::Regular => "file",
        FileType::Directory => "directory",
        FileType::Symlink => "symlink",
        FileType::Fifo => "fifo",
        FileType::Socket => "socket",
        FileType::CharDevice => "chardev",
        FileType::BlockDevice => "blockdev",
    }
}

fn time(time: Time, out: &mut String) -> std::fmt::Result {
    write!(out, "{}.{:09}", time.secs(), time.subsec_nanos())
}

fn write_field(field: char, attr: &Attr, out: &mut String) -> std::fmt::Result {
    match field {
        'i' => write!(out, "{}", attr.ino.0),
        'F' => out.write_str(kind(attr.kind)),
        'a' => write!(out, "{:o}", attr.perm),
        'f' => write!(out, "{:x}", attr.mode()),
        'h' => write!(out, "{}", attr.nlink),
        'u' => write!(out, "{}", attr.uid),
        'g' => write!(out, "{}", attr.gid),
        's' => write!(out, "{}", attr.size),
        'b' => write!(out, "{}", attr.blocks),
        'r' => write!(out, "{}", attr.rdev),
        'X' => time(attr.atime, out),
        'Y' => time(attr.mtime, out),
        'Z' => time(attr.ctime, out),
        _ => time(attr.btime, out),
    }
}

fn json(attr: &Attr, out: &mut String) -> std::fmt::Result {
    write!(
        out,
        "{{\"ino\":{},\"type\":\"{}\",\"mode\":{},\"nlink\":{},\"uid\":{},\"gid\":{},\"rdev\":{},\
         \"size\":{},\"blocks\":{}",
        attr.ino.0,
        kind(attr.kind),
        attr.mode(),
        attr.nlink,
        attr.uid,
        attr.gid,
        attr.rdev,
        attr.size,
        attr.blocks
    )?;
    for (name, value) in [
        ("atime", attr.atime),
        ("mtime", attr.mtime),
        ("ctime", attr.ctime),
        ("btime", attr.btime),
    ] {
        // In nanoseconds: a number of seconds as JSON's readers hold it would lose some.
        write!(out, ",\"{name}_ns\":{}", value.0)?;
    }
    out.write_str("}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast::types::Ino;

    const ATTR: Attr = Attr {
        ino: Ino(7),
        kind: FileType::Regular,
        perm: 0o644,
        nlink: 1,
        uid: 2,
        gid: 3,
        rdev: 0,
        size: 4,
        blocks: 8,
        atime: Time(0),
        mtime: Time(1_500_000_000),
        ctime: Time(-1),
        btime: Time(0),
    };

    fn line(format: &Format) -> String {
        let mut out = String::new();
        format.line(&ATTR, &mut out);
        out
    }

    #[test]
    fn directives_stand_for_attributes() {
        let text = |format: &str| line(&Format::parse(format).unwrap());
        assert_eq!(text("%i %F %a|%f"), "7 file 644|81a4\n");
        assert_eq!(
            text("100%%\\t%Y\\\\%Z"),
            "100%\t1.500000000\\-1.999999999\n"
        );
        assert_eq!(text(STANDARD), "7\tfile\t644\t1\t2\t3\t4\t1.500000000\n");
        for wrong in ["%", "%q", "a\\", "\\x"] {
            assert!(Format::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_line_of_json_is_an_object() {
        let value: serde_json::Value = serde_json::from_str(&line(&Format::Json)).unwrap();
        assert_eq!(value["ino"], 7);
        assert_eq!(value["mode"], 0o100_644);
        assert_eq!(value["mtime_ns"], 1_500_000_000_u64);
    }
}
