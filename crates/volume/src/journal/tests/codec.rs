//! Records to bytes and back.

use crate::journal::context::Context;
use crate::journal::decode::{self, Decoder, Undecodable};
use crate::journal::encode;
use crate::journal::opcode::LAST;
use crate::journal::record::{BatchHead, Map, Overwrite, Record};
use crate::journal::tests::creation;
use crate::varint::Reader;
use holdfast_core::store::{Change, InodeRecord, Lsn, StoredSpace};
use holdfast_types::{FileFlags, FileType, Ino, Time};
use proptest::collection::vec;
use proptest::prelude::*;

/// A record with owned bytes, from which changes borrow.
#[derive(Clone, Debug)]
struct Material {
    which: u8,
    inode: InodeRecord,
    other: InodeRecord,
    numbers: [u64; 5],
    bytes: Vec<u8>,
    more: Option<Vec<u8>>,
    sign: bool,
}

impl Material {
    fn records(&self) -> Vec<Record<'_>> {
        let [a, offset, len, d, e] = self.numbers;
        let (ino, bytes, more) = (Ino(a), &self.bytes[..], self.more.as_deref());
        let (inode, kind) = (self.inode.clone(), self.inode.kind);
        let enter = |dir, ino, kind| Change::Enter {
            dir,
            name: bytes,
            cookie: d,
            ino,
            kind,
        };
        let change = match self.which {
            0 => {
                let mut directory = self.other.clone();
                directory.kind = FileType::Directory;
                let enter = enter(directory.ino, inode.ino, kind);
                let create = Change::Create {
                    inode,
                    target: None,
                };
                let after = Change::Attributes { inode: directory };
                return [create, enter, after].map(Record::Change).to_vec();
            }
            1 => Change::Create {
                inode,
                target: more,
            },
            2 => Change::Attributes { inode },
            3 => enter(ino, Ino(e), kind),
            4 => Change::Leave {
                dir: ino,
                name: bytes,
                cookie: d,
            },
            5 => Change::Write {
                ino,
                offset,
                data: bytes,
            },
            6 => Change::Truncate { ino, size: offset },
            7 => Change::Zero {
                ino,
                offset,
                len,
                keep: self.sign,
            },
            8 => Change::Allocate { ino, offset, len },
            9 => Change::Collapse { ino, offset, len },
            10 => Change::Insert { ino, offset, len },
            11 => Change::Xattr {
                ino,
                name: bytes,
                value: more,
            },
            12 => Change::Free { ino },
            13 => return vec![Record::Numbers(ino)],
            14 => return vec![overwrite(d, offset, bytes)],
            _ => {
                return vec![Record::Map(Map {
                    ino,
                    offset,
                    start: d,
                    blocks: len,
                    generation: e,
                    unwritten: self.sign,
                })];
            }
        };
        vec![Record::Change(change)]
    }
}

/// A few bytes of a block.
fn overwrite(block: u64, offset: u64, data: &[u8]) -> Record<'_> {
    let from = (offset % (4097 - data.len() as u64)) as usize;
    Record::Overwrite(Overwrite { block, from, data })
}

/// Mostly small, so that records resemble one another; sometimes anything.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0_u64..4, 1 => any::<u64>()]
}

fn inode() -> impl Strategy<Value = InodeRecord> {
    let kinds = [
        FileType::Regular,
        FileType::Directory,
        FileType::Symlink,
        FileType::CharDevice,
    ];
    let few = || prop_oneof![6 => 0_u32..3, 1 => any::<u32>()];
    let times = [number(), number(), number(), number()];
    let numbers = (number(), number(), number(), number());
    let owner = (prop_oneof![0_u16..2, any::<u16>()], few(), few(), few());
    let kind = proptest::sample::select(kinds.to_vec());
    (kind, numbers, times, owner).prop_map(|(kind, numbers, times, owner)| {
        let [atime, mtime, ctime, btime] = times.map(|time| Time(time.cast_signed()));
        InodeRecord {
            ino: Ino(numbers.0),
            kind,
            perm: owner.0,
            nlink: owner.1,
            uid: owner.2,
            gid: owner.3,
            rdev: numbers.1,
            size: numbers.2,
            atime,
            mtime,
            ctime,
            btime,
            parent: Ino(numbers.3),
            xattrs: owner.1 % 2 == 1,
            space: StoredSpace::UNKNOWN,
            flags: FileFlags::empty(),
            project: 0,
        }
    })
}

fn material() -> impl Strategy<Value = Material> {
    let numbers = [number(), number(), number(), number(), number()];
    let bytes = (vec(any::<u8>(), 0..40), any::<Option<Vec<u8>>>());
    (0_u8..16, inode(), inode(), numbers, bytes, any::<bool>()).prop_map(
        |(which, inode, other, numbers, (bytes, more), sign)| Material {
            which,
            inode,
            other,
            numbers,
            bytes,
            more,
            sign,
        },
    )
}

fn decoded(bytes: &[u8], first: Lsn) -> Result<Vec<(BatchHead, Vec<Record<'_>>)>, Undecodable> {
    let mut context = Context::new(first);
    let mut reader = Reader::new(bytes);
    let mut batches = Vec::new();
    while reader.remaining() > 0 {
        let head = decode::head(&mut reader, &mut context);
        let head = head.ok_or(Undecodable::Malformed)?;
        let mut decoder = Decoder::new(reader);
        let mut records = Vec::new();
        while let Some(record) = decoder.next(&mut context)? {
            records.push(record);
        }
        reader = decoder.rest();
        batches.push((head, records));
    }
    Ok(batches)
}

proptest! {
    #[test]
    fn batches_come_back_as_they_were(
        batches in vec((0_u64..1 << 40, number(), vec(material(), 1..5)), 0..12),
        first in 0_u64..1 << 62,
    ) {
        let (mut buf, mut context) = (Vec::new(), Context::new(Lsn(first)));
        let mut lsn = first;
        let mut expected = Vec::new();
        for (passed, subvolume, materials) in &batches {
            lsn += passed;
            let head = BatchHead { lsn: Lsn(lsn), subvolume: *subvolume };
            let records: Vec<Record<'_>> = materials.iter().flat_map(Material::records).collect();
            let before = buf.len();
            encode::batch(&mut buf, &mut context, head, &records);
            prop_assert!(buf.len() - before <= encode::longest(&records));
            expected.push((head, records));
        }
        let found = decoded(&buf, Lsn(first));
        prop_assert_eq!(found.as_ref(), Ok(&expected));
        // Cut off anywhere, it is malformed or ends with a batch: never anything else.
        for cut in 0..buf.len() {
            if let Ok(found) = decoded(&buf[..cut], Lsn(first)) {
                prop_assert_eq!(&found[..], &expected[..found.len()]);
            }
        }
    }

    #[test]
    fn any_bytes_are_records_or_malformed(bytes in vec(any::<u8>(), 0..300), first: u64) {
        if let Ok(batches) = decoded(&bytes, Lsn(first)) {
            // Every record takes a byte at least, or is one of three that do.
            let records: usize = batches.iter().map(|(_, records)| records.len()).sum();
            prop_assert!(records <= 3 * bytes.len());
        }
    }

    #[test]
    fn a_changed_byte_never_panics(index in 0_usize..10_000, to: u8) {
        let (mut buf, mut context) = (Vec::new(), Context::new(Lsn(0)));
        for file in 0..20_u64 {
            let head = BatchHead { lsn: Lsn(file), subvolume: 1 };
            encode::batch(&mut buf, &mut context, head, &creation(file, b"some name"));
        }
        let at = index % buf.len();
        buf[at] = to;
        let _ = decoded(&buf, Lsn(0));
    }
}

#[test]
fn a_creation_in_order_takes_four_bytes_more_than_its_name() {
    let (mut buf, mut context) = (Vec::new(), Context::new(Lsn(0)));
    let name = [b'n'; 24];
    for file in 0..100_u64 {
        let head = BatchHead {
            lsn: Lsn(500 * file),
            subvolume: 1,
        };
        let before = buf.len();
        encode::batch(&mut buf, &mut context, head, &creation(file, &name));
        if file > 1 {
            // Two of the stamp, the operation, the length of the name.
            assert_eq!(buf.len() - before, 28);
        }
    }
}

#[test]
fn an_operation_of_a_later_version_is_told_from_damage() {
    let after = |operation| decoded(&[0, operation | LAST], Lsn(0)).unwrap_err();
    assert_eq!(after(0), Undecodable::Malformed);
    for kept in (16..24).chain(26..32) {
        assert_eq!(after(kept), Undecodable::Unknown(kept));
    }
}
