//! Records of trees and journal.

use holdfast_core::store::{Change, InodeRecord};
use holdfast_types::FileType;

use super::Shown;
use crate::journal::Record;
use crate::tree::{Data, DataKey, Entry, EntryKey, Extent, HashKey, Inode, XattrValue};

/// Parts with names.
type Fields = Vec<(&'static str, Shown)>;

fn kind(kind: FileType) -> Shown {
    Shown::Text(format!("{kind:?}"))
}

fn attributes(record: &InodeRecord) -> Fields {
    vec![
        ("inode", Shown::Number(record.ino.0)),
        ("type", kind(record.kind)),
        ("permissions", Shown::Text(format!("{:04o}", record.perm))),
        ("links", Shown::Number(record.nlink.into())),
        ("owner", Shown::Number(record.uid.into())),
        ("group", Shown::Number(record.gid.into())),
        ("device", Shown::Number(record.rdev)),
        ("size", Shown::Number(record.size)),
        ("atime", Shown::Signed(record.atime.0)),
        ("mtime", Shown::Signed(record.mtime.0)),
        ("ctime", Shown::Signed(record.ctime.0)),
        ("btime", Shown::Signed(record.btime.0)),
        ("parent", Shown::Number(record.parent.0)),
        ("may have xattrs", Shown::Flag(record.xattrs)),
        ("file flags", Shown::Text(format!("{:#x}", record.flags))),
        ("project", Shown::Number(record.project.into())),
    ]
}

pub(super) fn inode(inode: &Inode) -> Fields {
    let mut fields = attributes(&inode.record);
    fields.push(("next cookie", Shown::Number(inode.next_cookie)));
    fields.push(("flags", Shown::Number(inode.flags.into())));
    if let Some(blocks) = inode.record.space.beside_size() {
        fields.push(("blocks", Shown::Number(blocks)));
    }
    fields
}

pub(super) fn entry(key: &EntryKey, entry: &Entry<'_>) -> Shown {
    Shown::Fields(vec![
        ("directory", Shown::Number(key.dir.0)),
        ("cookie", Shown::Number(key.cookie)),
        ("name", Shown::bytes(entry.name)),
        ("inode", Shown::Number(entry.ino.0)),
        ("type", kind(entry.kind)),
    ])
}

pub(super) fn hash(key: &HashKey) -> Shown {
    Shown::Fields(vec![
        ("directory", Shown::Number(key.dir.0)),
        ("hash", Shown::Text(format!("{:#010x}", key.hash))),
        ("cookie", Shown::Number(key.cookie)),
    ])
}

fn extent(extent: &Extent) -> Fields {
    vec![
        ("block", Shown::Number(extent.block)),
        ("blocks", Shown::Number(extent.blocks.into())),
        ("generation", Shown::Number(extent.birth)),
        ("unwritten", Shown::Flag(extent.unwritten)),
    ]
}

pub(super) fn data(key: &DataKey, data: &Data<'_>) -> Shown {
    let mut fields = vec![
        ("inode", Shown::Number(key.ino.0)),
        ("kind", Shown::Text(format!("{:?}", key.kind))),
        ("offset", Shown::Number(key.offset)),
    ];
    match data {
        Data::Inline(bytes) => {
            fields.push(("length", Shown::Number(bytes.len() as u64)));
            fields.push(("bytes", Shown::bytes(bytes)));
        }
        Data::Extent(of_file) => fields.extend(extent(of_file)),
        Data::Xattr { name, value } => {
            fields.push(("name", Shown::bytes(name)));
            match value {
                XattrValue::Inline(bytes) => fields.push(("value", Shown::bytes(bytes))),
                XattrValue::External { extent: at, len } => {
                    fields.push(("length", Shown::Number((*len).into())));
                    fields.extend(extent(at));
                }
            }
        }
    }
    Shown::Fields(fields)
}

/// A range of a file.
fn range(name: &'static str, ino: u64, offset: u64, len: u64) -> Fields {
    vec![
        ("change", Shown::of(name)),
        ("inode", Shown::Number(ino)),
        ("offset", Shown::Number(offset)),
        ("length", Shown::Number(len)),
    ]
}

/// A change of the journal.
pub(super) fn change(record: &Record<'_>) -> Shown {
    Shown::Fields(match record {
        Record::Change(change) => made(change),
        Record::Map(map) => {
            let mut fields = range("map", map.ino.0, map.offset, map.blocks);
            fields.push(("block", Shown::Number(map.start)));
            fields.push(("generation", Shown::Number(map.birth)));
            fields.push(("unwritten", Shown::Flag(map.unwritten)));
            fields
        }
        Record::Numbers(upto) => vec![
            ("change", Shown::of("numbers")),
            ("up to", Shown::Number(upto.0)),
        ],
        Record::Overwrite(bytes) => vec![
            ("change", Shown::of("overwrite")),
            ("block", Shown::Number(bytes.block)),
            ("offset", Shown::Number(bytes.from as u64)),
            ("length", Shown::Number(bytes.data.len() as u64)),
        ],
    })
}

/// A change that the core made.
fn made(change: &Change<'_>) -> Fields {
    let named = |name| ("change", Shown::of(name));
    match *change {
        Change::Create { ref inode, target } => {
            let mut fields = vec![named("create")];
            fields.extend(attributes(inode));
            fields.extend(target.map(|target| ("target", Shown::bytes(target))));
            fields
        }
        Change::Attributes { ref inode } => {
            let mut fields = vec![named("attributes")];
            fields.extend(attributes(inode));
            fields
        }
        Change::Enter {
            dir,
            name,
            cookie,
            ino,
            kind: of,
        } => vec![
            named("enter"),
            ("directory", Shown::Number(dir.0)),
            ("cookie", Shown::Number(cookie)),
            ("name", Shown::bytes(name)),
            ("inode", Shown::Number(ino.0)),
            ("type", kind(of)),
        ],
        Change::Leave { dir, name, cookie } => vec![
            named("leave"),
            ("directory", Shown::Number(dir.0)),
            ("cookie", Shown::Number(cookie)),
            ("name", Shown::bytes(name)),
        ],
        Change::Write { ino, offset, data } => range("write", ino.0, offset, data.len() as u64),
        Change::Truncate { ino, size } => vec![
            named("truncate"),
            ("inode", Shown::Number(ino.0)),
            ("size", Shown::Number(size)),
        ],
        Change::Zero {
            ino,
            offset,
            len,
            keep,
        } => {
            let mut fields = range("zero", ino.0, offset, len);
            fields.push(("space is kept", Shown::Flag(keep)));
            fields
        }
        Change::Allocate { ino, offset, len } => range("allocate", ino.0, offset, len),
        Change::Collapse { ino, offset, len } => range("collapse", ino.0, offset, len),
        Change::Insert { ino, offset, len } => range("insert", ino.0, offset, len),
        Change::Xattr { ino, name, value } => vec![
            named("extended attribute"),
            ("inode", Shown::Number(ino.0)),
            ("name", Shown::bytes(name)),
            ("goes", Shown::Flag(value.is_none())),
            ("length", Shown::Number(value.map_or(0, <[u8]>::len) as u64)),
        ],
        Change::Free { ino } => vec![named("free"), ("inode", Shown::Number(ino.0))],
    }
}
