//! The data tree's records of an inode, before and after a checkpoint.

use std::collections::BTreeMap;

use holdfast_types::Ino;

use super::nodes::NewNodes;
use crate::block::BLOCK;
use crate::error::Result;
use crate::store::load::DataRecords;
use crate::store::memtable::{NameHasher, Object, Rest};
use crate::tree::{self, Contents, Data, DataKey, DataKind, Record as _, XattrValue};

/// An owned value of the data tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    Inline(Vec<u8>),
    Extent(tree::Extent),
    Xattr { name: Box<[u8]>, value: Value },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// In the node.
    Here(Box<[u8]>),
    /// In blocks of its own.
    Elsewhere { extent: tree::Extent, len: u32 },
}

impl Held {
    pub(crate) fn borrowed(&self) -> Data<'_> {
        match self {
            Self::Inline(bytes) => Data::Inline(bytes),
            Self::Extent(extent) => Data::Extent(*extent),
            Self::Xattr { name, value } => Data::Xattr {
                name,
                value: match value {
                    Value::Here(bytes) => XattrValue::Inline(bytes),
                    Value::Elsewhere { extent, len } => XattrValue::External {
                        extent: *extent,
                        len: *len,
                    },
                },
            },
        }
    }

    pub(crate) fn of(data: Data<'_>) -> Self {
        match data {
            Data::Inline(bytes) => Self::Inline(bytes.to_vec()),
            Data::Extent(extent) => Self::Extent(extent),
            Data::Xattr { name, value } => Self::Xattr {
                name: name.into(),
                value: match value {
                    XattrValue::Inline(bytes) => Value::Here(bytes.into()),
                    XattrValue::External { extent, len } => Value::Elsewhere { extent, len },
                },
            },
        }
    }
}

/// A key, and its new value; `None` deletes it.
type Changed = (DataKey, Option<Held>);

/// The changes of an inode's records in the data tree, ascending.
pub(super) fn data_changes(
    records: &mut DataRecords<'_>,
    ino: Ino,
    object: &Object,
    hasher: &NameHasher,
    nodes: &NewNodes<'_>,
) -> Result<Vec<Changed>> {
    if object.is_freed() {
        return all_go(records, ino, object, nodes);
    }
    let changed =
        |rest: &Rest| rest.content.is_some() || rest.target.is_some() || !rest.xattrs.is_empty();
    if !object.rest().is_some_and(changed) {
        return Ok(Vec::new());
    }
    let mut before = BTreeMap::new();
    if !object.fresh {
        records.each(ino, DataKind::Inline, |key, value| {
            before.insert(key, Held::of(value));
        })?;
    }
    let mut after = records_after(ino, object, &before, hasher);
    let mut changes: BTreeMap<DataKey, Option<Held>> = BTreeMap::new();
    for (key, value) in &before {
        match after.remove(key) {
            Some(same) if same == *value => {}
            changed => {
                changes.insert(*key, changed);
            }
        }
    }
    changes.extend(after.into_iter().map(|(key, value)| (key, Some(value))));
    let external = external(&before, &changes);
    let mut changes: Vec<_> = changes.into_iter().collect();
    move_values_out(nodes, &mut changes, &external)?;
    Ok(changes)
}

/// Deletes all records of a freed inode. The file's extents were freed before; blocks of external
/// attribute values are freed by this checkpoint.
fn all_go(
    records: &mut DataRecords<'_>,
    ino: Ino,
    object: &Object,
    nodes: &NewNodes<'_>,
) -> Result<Vec<Changed>> {
    let mut gone = Vec::new();
    if object.fresh {
        return Ok(gone);
    }
    records.each(ino, DataKind::Inline, |key, value| {
        if let Data::Xattr {
            value: XattrValue::External { extent, .. },
            ..
        } = value
        {
            nodes.replace(extent.span());
        }
        gone.push((key, None));
    })?;
    Ok(gone)
}

/// The records of an inode after the checkpoint.
fn records_after(
    ino: Ino,
    object: &Object,
    before: &BTreeMap<DataKey, Held>,
    hasher: &NameHasher,
) -> BTreeMap<DataKey, Held> {
    let (mut xattrs, mut after): (BTreeMap<_, _>, BTreeMap<_, _>) = before
        .clone()
        .into_iter()
        .partition(|(key, _)| key.kind == DataKind::Xattr);
    let Some(rest) = object.rest() else {
        return before.clone();
    };
    if let Some(target) = &rest.target {
        after.insert(
            DataKey::first(ino, DataKind::Inline),
            Held::Inline(target.to_vec()),
        );
    }
    if let Some(content) = &rest.content {
        after.clear();
        match (content.as_inline(), content.mapping()) {
            (Some(bytes), _) if !bytes.is_empty() => {
                after.insert(
                    DataKey::first(ino, DataKind::Inline),
                    Held::Inline(bytes.to_vec()),
                );
            }
            (_, Some(mapping)) => after.extend(mapping.iter().map(|(offset, run)| {
                let extent = tree::Extent {
                    block: run.extent.start,
                    // A run never leaves its flex group.
                    blocks: run.extent.length as u32,
                    generation: run.generation,
                    unwritten: run.unwritten,
                    shared: false,
                };
                let kind = DataKind::Extent;
                (DataKey { ino, kind, offset }, Held::Extent(extent))
            })),
            _ => {}
        }
    }
    for (name, value) in &rest.xattrs {
        let place = place_of(&xattrs, ino, hasher.hash(name), name);
        match value {
            Some(value) => {
                let (name, value) = (name.clone(), Value::Here(value.clone()));
                xattrs.insert(place, Held::Xattr { name, value });
            }
            None => {
                xattrs.remove(&place);
            }
        }
    }
    after.append(&mut xattrs);
    after
}

/// The key of an extended attribute, existing or new: names with the same hash are numbered.
fn place_of(xattrs: &BTreeMap<DataKey, Held>, ino: Ino, hash: u32, name: &[u8]) -> DataKey {
    let alike = DataKey::xattr(ino, hash, 0)..=DataKey::xattr(ino, hash, u32::MAX);
    let mut free = 0;
    for (ordinal, (key, held)) in (0..).zip(xattrs.range(alike)) {
        if matches!(held, Held::Xattr { name: found, .. } if **found == *name) {
            return *key;
        }
        // The first unused number, or the one after all.
        if key.offset as u32 == ordinal {
            free = ordinal.saturating_add(1);
        }
    }
    DataKey::xattr(ino, hash, free)
}

/// Moves values that are too long for a node into blocks of their own, and frees the blocks of
/// replaced ones.
fn move_values_out(
    nodes: &NewNodes<'_>,
    changes: &mut [(DataKey, Option<Held>)],
    before: &[tree::Extent],
) -> Result<()> {
    let mut kept = Vec::new();
    for (key, change) in changes {
        let Some(Held::Xattr { name, value }) = change else {
            continue;
        };
        match value {
            Value::Elsewhere { extent, .. } => kept.push(extent.block),
            Value::Here(bytes) => {
                let inline = Data::Xattr {
                    name,
                    value: XattrValue::Inline(bytes),
                };
                if !Contents::is_storable(*key, &inline) {
                    *value = move_out(nodes, bytes)?;
                }
            }
        }
    }
    for extent in before.iter().filter(|extent| !kept.contains(&extent.block)) {
        nodes.replace(extent.span());
    }
    Ok(())
}

fn move_out(nodes: &NewNodes<'_>, bytes: &[u8]) -> Result<Value> {
    let blocks = bytes.len().div_ceil(BLOCK) as u32;
    let block = nodes.take(u64::from(blocks), 0)?;
    let mut padded = bytes.to_vec();
    padded.resize(blocks as usize * BLOCK, 0);
    nodes.put(block, padded)?;
    Ok(Value::Elsewhere {
        extent: tree::Extent {
            block,
            blocks,
            generation: nodes.generation(),
            unwritten: false,
            shared: false,
        },
        len: bytes.len() as u32,
    })
}

/// The blocks of external values among the changed records.
fn external(
    before: &BTreeMap<DataKey, Held>,
    changes: &BTreeMap<DataKey, Option<Held>>,
) -> Vec<tree::Extent> {
    let changed = before.iter().filter(|(key, _)| changes.contains_key(key));
    changed
        .filter_map(|(_, held)| match held {
            Held::Xattr {
                value: Value::Elsewhere { extent, .. },
                ..
            } => Some(*extent),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(name: &[u8]) -> Held {
        let value = Value::Here(Box::default());
        let name = name.into();
        Held::Xattr { name, value }
    }

    #[test]
    fn attributes_are_found_by_hash_and_the_first_free_number_is_taken() {
        let mut there = BTreeMap::new();
        let ino = Ino(7);
        assert_eq!(place_of(&there, ino, 5, b"a"), DataKey::xattr(ino, 5, 0));
        for (name, hash, ordinal) in [(b"a", 5, 0), (b"b", 5, 1), (b"c", 5, 3), (b"d", 6, 0)] {
            there.insert(DataKey::xattr(ino, hash, ordinal), attribute(name));
        }
        assert_eq!(place_of(&there, ino, 5, b"c"), DataKey::xattr(ino, 5, 3));
        assert_eq!(place_of(&there, ino, 5, b"new"), DataKey::xattr(ino, 5, 2));
        assert_eq!(place_of(&there, ino, 6, b"new"), DataKey::xattr(ino, 6, 1));
        there.remove(&DataKey::xattr(ino, 5, 0));
        assert_eq!(place_of(&there, ino, 5, b"new"), DataKey::xattr(ino, 5, 0));
    }
}
