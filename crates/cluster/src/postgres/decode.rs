//! Answers of `hf1_*` functions, from their binary form.

use crate::connections::{Malformed, array, fields};
use crate::meta::{Answer, Content, Node, Pages};
use holdfast_core::store::{InodeRecord, StoredSpace, Version};
use holdfast_types::{Errno, FileFlags, FileType, Ino, Time};

type Field<'a> = Option<&'a [u8]>;

fn bytes<const N: usize>(field: Field<'_>) -> Result<[u8; N], Malformed> {
    field.and_then(|it| it.try_into().ok()).ok_or(Malformed)
}

fn int8(field: Field<'_>) -> Result<i64, Malformed> {
    bytes(field).map(i64::from_be_bytes)
}

fn int4(field: Field<'_>) -> Result<i32, Malformed> {
    bytes(field).map(i32::from_be_bytes)
}

fn int2(field: Field<'_>) -> Result<i16, Malformed> {
    bytes(field).map(i16::from_be_bytes)
}

/// A number that is not negative.
fn count(field: Field<'_>) -> Result<u64, Malformed> {
    u64::try_from(int8(field)?).map_err(|_| Malformed)
}

/// A type, from its column.
pub(super) fn kind(column: i16) -> Result<FileType, Malformed> {
    let kind = u8::try_from(column).ok().and_then(FileType::from_dirent);
    kind.ok_or(Malformed)
}

/// The columns that come along with a row of `node`: the target, the bytes and pages of a body.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Along<'a> {
    pub(super) target: Option<&'a [u8]>,
    pub(super) data: Option<&'a [u8]>,
    pub(super) pages: Option<i64>,
}

/// A row of `node`.
pub(super) fn node(row: &[u8], along: Along<'_>) -> Result<Node, Malformed> {
    let [
        ino,
        rdev,
        size,
        atime,
        mtime,
        ctime,
        btime,
        parent,
        pages,
        generation,
        nlink,
        uid,
        gid,
        flags,
        project,
        type_,
        perm,
        bits,
    ] = fields(row)?;
    let (size, bits, kind) = (count(size)?, int2(bits)?, kind(int2(type_)?)?);
    let flags = FileFlags::from_bits(int4(flags)?.cast_unsigned()).ok_or(Malformed)?;
    let is_file = kind == FileType::Regular;
    let space = match is_file {
        true => StoredSpace::of(count(pages)?, size),
        false => StoredSpace::AS_SIZE,
    };
    let content = match (along.data, along.pages) {
        _ if !is_file => None,
        (Some(data), Some(pages)) => Some(Content::Body {
            bytes: data.into(),
            pages: Pages(pages.cast_unsigned()),
        }),
        _ => (bits & (HAS_BODY | HAS_EXTENTS) == 0).then(Content::empty),
    };
    Ok(Node {
        record: InodeRecord {
            ino: Ino(count(ino)?),
            kind,
            perm: int2(perm)?.cast_unsigned(),
            nlink: int4(nlink)?.cast_unsigned(),
            uid: int4(uid)?.cast_unsigned(),
            gid: int4(gid)?.cast_unsigned(),
            rdev: int8(rdev)?.cast_unsigned(),
            size,
            atime: Time(int8(atime)?),
            mtime: Time(int8(mtime)?),
            ctime: Time(int8(ctime)?),
            btime: Time(int8(btime)?),
            parent: Ino(count(parent)?),
            xattrs: bits & (HAS_XATTRS | HAS_SPACE_BEHIND) != 0,
            space,
            flags,
            project: int4(project)?.cast_unsigned(),
        },
        generation: count(generation)?,
        target: along.target.map(Into::into),
        content,
    })
}

/// Bits of the column `bits`.
const HAS_XATTRS: i16 = 1;
const HAS_BODY: i16 = 2;
const HAS_EXTENTS: i16 = 4;
const HAS_SPACE_BEHIND: i16 = 8;

/// A row of type `result`.
pub(super) fn answer(row: &[u8]) -> Result<Result<Answer, Errno>, Malformed> {
    let [code, entry, entry_kind, other, other_kind, touched] = fields(row)?;
    match int4(code)? {
        0 => {}
        -1 => return Ok(Ok(Answer::Refused)),
        code if code > 0 => return Ok(Err(Errno::from_raw(code))),
        _ => return Err(Malformed),
    }
    let inode = |ino: Field<'_>, column: Field<'_>| match ino {
        None => Ok(None),
        Some(_) => Ok(Some((Ino(count(ino)?), kind(int2(column)?)?))),
    };
    let rows = touched.map_or(Ok(Vec::new()), array)?;
    let touched = rows.into_iter().map(|row| {
        let [size, mtime, ctime, _parent, inode, target] = fields(row)?;
        let before = match ctime {
            None => None,
            Some(_) => Some(Version {
                size: count(size)?,
                mtime: Time(int8(mtime)?),
                ctime: Time(int8(ctime)?),
            }),
        };
        let along = Along {
            target,
            ..Along::default()
        };
        Ok((before, node(inode.ok_or(Malformed)?, along)?))
    });
    Ok(Ok(Answer::Done {
        entry: inode(entry, entry_kind)?,
        other: inode(other, other_kind)?,
        touched: touched.collect::<Result<_, _>>()?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(fields: &[Option<Vec<u8>>]) -> Vec<u8> {
        let mut raw = (fields.len() as i32).to_be_bytes().to_vec();
        for field in fields {
            raw.extend(20_i32.to_be_bytes());
            let len = field.as_ref().map_or(-1, |field| field.len() as i32);
            raw.extend(len.to_be_bytes());
            raw.extend(field.iter().flatten());
        }
        raw
    }

    fn file() -> Vec<u8> {
        let int8s = [9_i64, 0, 5000, -7, 8, 9, 10, 1, 3, 4];
        let int4s = [1_i32, -1, 7, 0x10, 6];
        let int2s = [8_i16, 0o644, 2 | 8];
        let mut fields: Vec<_> = int8s.map(|it| Some(it.to_be_bytes().to_vec())).into();
        fields.extend(int4s.map(|it| Some(it.to_be_bytes().to_vec())));
        fields.extend(int2s.map(|it| Some(it.to_be_bytes().to_vec())));
        row(&fields)
    }

    fn made() -> Vec<u8> {
        let touched = row(&[
            Some(32_i64.to_be_bytes().into()),
            Some(1_i64.to_be_bytes().into()),
            Some(2_i64.to_be_bytes().into()),
            None,
            Some(file()),
            None,
        ]);
        let mut list: Vec<u8> = [1, 0, 20, 1, 1, touched.len() as i32]
            .iter()
            .flat_map(|it: &i32| it.to_be_bytes())
            .collect();
        list.extend(touched);
        row(&[
            Some(0_i32.to_be_bytes().into()),
            Some(9_i64.to_be_bytes().into()),
            Some(8_i16.to_be_bytes().into()),
            None,
            None,
            Some(list),
        ])
    }

    #[test]
    fn an_inode_is_read() {
        let along = Along {
            data: Some(b"abc"),
            pages: Some(-1),
            ..Along::default()
        };
        let node = node(&file(), along).unwrap();
        assert_eq!((node.record.ino, node.record.uid), (Ino(9), u32::MAX));
        assert_eq!(node.record.space, StoredSpace::of(3, 5000));
        assert!(node.record.xattrs);
        assert_eq!(node.record.atime, Time(-7));
        let pages = Pages(u64::MAX);
        let bytes = Box::from(*b"abc");
        assert_eq!(node.content, Some(Content::Body { bytes, pages }));
    }

    #[test]
    fn an_answer_is_read() {
        let Ok(Ok(Answer::Done { entry, touched, .. })) = answer(&made()) else {
            panic!("it is well formed");
        };
        assert_eq!(entry, Some((Ino(9), FileType::Regular)));
        assert_eq!(touched[0].0.unwrap().size, 32);
        let code = |code: i32| {
            let mut fields = vec![None; 6];
            fields[0] = Some(code.to_be_bytes().into());
            answer(&row(&fields))
        };
        assert_eq!(code(17), Ok(Err(Errno::EEXIST)));
        assert_eq!(code(-1), Ok(Ok(Answer::Refused)));
        assert_eq!(code(-3), Err(Malformed));
    }

    #[test]
    fn hostile_bytes_are_errors_at_most() {
        let good = made();
        for len in 0..good.len() {
            assert_eq!(answer(&good[..len]), Err(Malformed), "{len} bytes");
        }
        for at in 0..good.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] = value;
                // It need not be an error, but has to end.
                let _ = answer(&bad);
            }
        }
    }
}
