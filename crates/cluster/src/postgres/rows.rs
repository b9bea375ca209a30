//! Rows of answers become what the seam speaks of.

use super::decode::{Along, kind, node};
use crate::connections::Malformed;
use crate::meta::{
    BeatAnswer, ClientInfo, Content, Directory, Epoch, Extent, Message, Node, Pages, Settings,
    Usage,
};
use holdfast_core::store::EntryRecord;
use holdfast_types::{Errno, Ino, Result, Time};
use std::collections::HashSet;
use std::time::Duration;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

/// An answer that is not what the function promises.
pub(super) fn malformed(error: impl std::fmt::Display) -> Errno {
    tracing::error!("the database sent an answer that makes no sense: {error}");
    Errno::EIO
}

/// A column.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: &str) -> Result<T> {
    row.try_get(column).map_err(malformed)
}

/// A column with a number that is not negative.
pub(super) fn count(row: &Row, column: &str) -> Result<u64> {
    get::<i64>(row, column).map(i64::unsigned_abs)
}

/// The columns `node`, `target`, `data` and `pages`. `None`: there is no inode.
pub(super) fn node_of(row: &Row) -> Result<Option<Node>> {
    let along = Along {
        target: get(row, "target")?,
        data: get(row, "data")?,
        pages: get(row, "pages")?,
    };
    let raw: Option<&[u8]> = get(row, "node")?;
    raw.map(|raw| node(raw, along).map_err(malformed))
        .transpose()
}

/// Inodes, a row each.
pub(super) fn nodes(rows: &[Row]) -> Result<Vec<Node>> {
    rows.iter()
        .map(|row| node_of(row)?.ok_or_else(|| malformed(Malformed)))
        .collect()
}

/// The columns `cookie`, `ino` and `kind`, for this name.
pub(super) fn entry(row: &Row, name: &[u8]) -> Result<EntryRecord> {
    Ok(EntryRecord {
        name: name.into(),
        cookie: count(row, "cookie")?,
        ino: Ino(count(row, "ino")?),
        kind: kind(get(row, "kind")?).map_err(malformed)?,
    })
}

/// Checks the first row of an answer, which is the directory.
///
/// # Errors
/// `ESTALE`: it does not exist. `ENOTDIR`.
pub(super) fn names_of(rows: &[Row]) -> Result<&[Row]> {
    let (first, rest) = rows.split_first().ok_or(Errno::ESTALE)?;
    match kind(get(first, "kind")?).map_err(malformed)?.is_dir() {
        true => Ok(rest),
        false => Err(Errno::ENOTDIR),
    }
}

/// Directories by their places in the question.
pub(super) fn directories(
    rows: &[Row],
    count: usize,
    inodes: bool,
) -> Result<Vec<Option<Directory>>> {
    let mut found: Vec<Option<Directory>> = vec![None; count];
    let mut seen = HashSet::new();
    for row in rows {
        let ord = usize::try_from(get::<i32>(row, "ord")?).map_err(malformed)?;
        let place = ord.checked_sub(1).and_then(|ord| found.get_mut(ord));
        let place = place.ok_or_else(|| malformed(Malformed))?;
        let Some(name) = get::<Option<&[u8]>>(row, "name")? else {
            let node = node_of(row)?.ok_or_else(|| malformed(Malformed))?;
            seen.clear();
            *place = Some(Directory {
                node,
                names: Vec::new(),
                inodes: Vec::new(),
            });
            continue;
        };
        let directory = place.as_mut().ok_or_else(|| malformed(Malformed))?;
        directory.names.push(entry(row, name)?);
        if inodes {
            let node = node_of(row)?.filter(|node| seen.insert(node.record.ino));
            directory.inodes.extend(node);
        }
    }
    Ok(found)
}

/// The columns `generation`, `data` and `pages` of a file with a body.
pub(super) fn body(row: &Row) -> Result<(u64, Content)> {
    let content = Content::Body {
        bytes: get::<&[u8]>(row, "data")?.into(),
        pages: Pages(get::<i64>(row, "pages")?.cast_unsigned()),
    };
    Ok((count(row, "generation")?, content))
}

/// The columns of `hf1_content`.
pub(super) fn content(row: &Row) -> Result<(u64, Content)> {
    if get::<Option<&[u8]>>(row, "data")?.is_some() {
        return body(row);
    }
    let generation = count(row, "generation")?;
    let column = |name| get::<Option<Vec<i64>>>(row, name).map(Option::unwrap_or_default);
    let (offs, lens) = (column("offs")?, column("lens")?);
    let (objects, object_offs) = (column("objects")?, column("object_offs")?);
    let extents = offs.iter().zip(&lens).zip(objects.iter().zip(&object_offs));
    let extents = extents.map(|((offset, len), (object, object_offset))| Extent {
        offset: offset.unsigned_abs(),
        len: len.unsigned_abs(),
        object: object.unsigned_abs(),
        object_offset: object_offset.unsigned_abs(),
    });
    Ok((generation, Content::Extents(extents.collect())))
}

/// The columns of `hf1_usage`.
pub(super) fn usage(row: &Row) -> Result<Usage> {
    Ok(Usage {
        inodes: count(row, "inodes")?,
        pages: count(row, "pages")?,
        staged: count(row, "staged_bytes")?,
        objects: count(row, "objects")?,
        object_bytes: count(row, "object_bytes")?,
        live_bytes: count(row, "live_bytes")?,
        unmapped: count(row, "unmapped")?,
    })
}

/// The columns of `hf1_clients`.
pub(super) fn client(row: &Row, own: i64) -> Result<ClientInfo> {
    Ok(ClientInfo {
        session: count(row, "sid")?,
        host: get(row, "host")?,
        version: get(row, "version")?,
        silent: Duration::from_nanos(count(row, "silent")?),
        waiting: count(row, "waiting")?,
        own: get::<i64>(row, "sid")? == own,
    })
}

/// The rows of `hf1_beat`.
pub(super) fn beat(rows: &[Row]) -> Result<BeatAnswer> {
    let mut answer = BeatAnswer {
        now: Time(0),
        epoch: Epoch::default(),
        messages: Vec::new(),
        more: false,
        gone: Vec::new(),
        gone_upto: 0,
    };
    for row in rows {
        let number = |column| get::<i64>(row, column);
        let unsigned = |column| number(column).map(i64::cast_unsigned);
        match get::<i32>(row, "row_kind")? {
            0 => {
                answer.now = Time(number("a")?);
                answer.epoch.0 = unsigned("b")?;
                answer.epoch.2 = unsigned("c")?;
            }
            1 => {
                answer.epoch.1 = unsigned("a")?;
                answer.gone_upto = unsigned("b")?;
                answer.more = number("c")? != 0;
            }
            2 => {
                let ino = Ino(unsigned("b")?);
                let message = match get::<Option<&[u8]>>(row, "name")? {
                    Some(name) => Message::Entry(ino, name.into()),
                    None => Message::Inode(ino, number("c")? != 0),
                };
                answer.messages.push((unsigned("a")?, message));
            }
            _ => answer.gone.push(Ino(unsigned("a")?)),
        }
    }
    Ok(answer)
}

/// The columns of `hf1_settings`.
///
/// # Errors
/// A column is not there, or has another type.
pub(super) fn settings(row: &Row) -> Result<Settings, tokio_postgres::Error> {
    let number = |column| row.try_get::<_, i64>(column).map(i64::unsigned_abs);
    let uuid: &[u8] = row.try_get("uuid")?;
    Ok(Settings {
        uuid: uuid.try_into().unwrap_or_default(),
        incarnation: number("incarnation")?,
        bucket: row.try_get("bucket")?,
        endpoint: row.try_get("endpoint")?,
        region: row.try_get("region")?,
        notifies: row.try_get("notifies")?,
        lease: Duration::from_nanos(number("lease")?),
        inline: number("inline")?,
        staged: number("staged")?,
        keep: Duration::from_nanos(number("keep")?),
    })
}
