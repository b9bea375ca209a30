//! The records of the data tree that an inode has, before a checkpoint and after it.

use std::collections::BTreeMap;

use holdfast_types::Ino;

use super::load::Finder;
use super::nodes::NewNodes;
use super::overlay::{Object, Overlay, Rest};
use crate::space::Extent;
use crate::tree::{self, Contents, Data, DataKey, DataKind, Record as _, XattrValue};
use crate::{BLOCK, Result};

/// A value of the data tree, held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Held {
    Inline(Vec<u8>),
    Extent(tree::Extent),
    Xattr { name: Box<[u8]>, value: Value },
}

/// An extended attribute's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// As it is.
    Here(Box<[u8]>),
    /// Too large for a node.
    Elsewhere { extent: tree::Extent, len: u32 },
}

impl Held {
    pub(super) fn borrowed(&self) -> Data<'_> {
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

    fn of(data: Data<'_>) -> Self {
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

/// What becomes of an inode's records in the data tree, ascending; `None`: they go.
pub(super) fn data_changes(
    finder: &Finder<'_>,
    overlay: &Overlay,
    ino: Ino,
    nodes: &NewNodes<'_>,
) -> Result<Vec<(DataKey, Option<Held>)>> {
    let changed = overlay.with(ino, |object| {
        let rest = |rest: &Rest| {
            rest.content.is_some() || rest.target.is_some() || !rest.xattrs.is_empty()
        };
        object.is_freed() || object.rest().is_some_and(rest)
    });
    if changed != Some(true) {
        return Ok(Vec::new());
    }
    let is_fresh = overlay.with(ino, |object| object.fresh) == Some(true);
    let mut before = BTreeMap::new();
    if !is_fresh {
        for kind in [DataKind::Inline, DataKind::Extent, DataKind::Xattr] {
            finder.each_data(ino, kind, |offset, value| {
                before.insert(DataKey { ino, kind, offset }, Held::of(value));
            })?;
        }
    }
    let after = overlay.with(ino, |object| records_after(ino, object, &before));
    let mut after = after.unwrap_or_default();
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

/// The records that an inode has from now on.
fn records_after(
    ino: Ino,
    object: &Object,
    before: &BTreeMap<DataKey, Held>,
) -> BTreeMap<DataKey, Held> {
    if object.is_freed() {
        return BTreeMap::new();
    }
    let (old_xattrs, mut after): (BTreeMap<_, _>, BTreeMap<_, _>) = before
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
                    // A run never leaves its group.
                    blocks: run.extent.length as u32,
                    birth: run.birth,
                    unwritten: run.unwritten,
                    shared: false,
                };
                let kind = DataKind::Extent;
                (DataKey { ino, kind, offset }, Held::Extent(extent))
            })),
            _ => {}
        }
    }
    let mut xattrs: BTreeMap<Box<[u8]>, Value> = BTreeMap::new();
    for held in old_xattrs.into_values() {
        if let Held::Xattr { name, value } = held {
            xattrs.insert(name, value);
        }
    }
    for (name, value) in &rest.xattrs {
        match value {
            Some(value) => xattrs.insert(name.clone(), Value::Here(value.clone())),
            None => xattrs.remove(name),
        };
    }
    for (offset, (name, value)) in (0..).zip(xattrs) {
        let kind = DataKind::Xattr;
        after.insert(DataKey { ino, kind, offset }, Held::Xattr { name, value });
    }
    after
}

/// Puts the values that are too large for nodes into blocks of their own, and lets go of the blocks
/// of those that went.
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
        nodes.replace(Extent::new(extent.block, u64::from(extent.blocks)));
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
            birth: nodes.generation(),
            unwritten: false,
            shared: false,
        },
        len: bytes.len() as u32,
    })
}

/// Where the values lie that are too large for nodes, of those records that change.
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
