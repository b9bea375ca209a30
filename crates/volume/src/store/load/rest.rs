//! Symbolic link targets and extended attributes.

use std::collections::BTreeMap;

use holdfast_core::store::{InodeRecord, Rest, XattrList};
use holdfast_types::{FileType, Ino};

use super::SnapshotReader;
use super::records::DataRecords;
use crate::block::BLOCK;
use crate::error::{Error, Result};
use crate::store::memtable::Known;
use crate::tree;
use crate::tree::{Data, DataKind, XattrValue};

/// The longest value of an extended attribute, as in Linux.
const XATTR_MAX: u64 = 64 << 10;

impl SnapshotReader<'_> {
    /// Targets and attributes of these inodes, in this order; cheap where the numbers ascend.
    pub(in crate::store) fn each_rest(
        &self,
        records: &[InodeRecord],
        mut each: impl FnMut(Rest),
    ) -> Result<()> {
        let mut data = DataRecords::of(self.data());
        for record in records {
            let mut rest = Rest::default();
            if record.xattrs {
                rest.xattrs = self.xattrs(record.ino, &mut data)?;
            }
            if record.kind == FileType::Symlink {
                rest.target = Some(self.target(record.ino, &mut data)?);
            }
            each(rest);
        }
        Ok(())
    }

    pub(in crate::store) fn target(
        &self,
        ino: Ino,
        data: &mut DataRecords<'_>,
    ) -> Result<Box<[u8]>> {
        let known = self
            .layers
            .find(ino, |object| object.rest()?.target.clone());
        if let Known::Found(target) = known {
            return Ok(target);
        }
        let mut found = None;
        data.each(ino, DataKind::Inline, |_, value| {
            if let Data::Inline(bytes) = value {
                found = Some(Box::from(bytes));
            }
        })?;
        found.ok_or_else(|| Error::Damaged(format!("symbolic link {ino} has no target")))
    }

    pub(in crate::store) fn xattrs(
        &self,
        ino: Ino,
        data: &mut DataRecords<'_>,
    ) -> Result<XattrList> {
        let mut layers = Vec::new();
        let mut below = true;
        for memtable in self.layers.memtables() {
            let found = memtable.with(ino, |object| {
                let xattrs = object.rest().map(|rest| rest.xattrs.clone());
                (xattrs.unwrap_or_default(), object.fresh)
            });
            if let Some((xattrs, fresh)) = found {
                layers.push(xattrs);
                if fresh {
                    below = false;
                    break;
                }
            }
        }
        let mut all = BTreeMap::new();
        if below {
            let mut external = Vec::new();
            data.each(ino, DataKind::Xattr, |_, value| match value {
                Data::Xattr {
                    name,
                    value: XattrValue::Inline(value),
                } => {
                    all.insert(Box::<[u8]>::from(name), Some(Box::<[u8]>::from(value)));
                }
                Data::Xattr {
                    name,
                    value: XattrValue::External { extent, len },
                } => external.push((Box::<[u8]>::from(name), extent, len)),
                _ => {}
            })?;
            for (name, extent, len) in external {
                all.insert(name, Some(self.external(extent, len)?));
            }
        }
        for layer in layers.into_iter().rev() {
            all.extend(layer);
        }
        let there = all
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        Ok(there.collect())
    }

    /// A value that has blocks of its own.
    fn external(&self, extent: tree::Extent, len: u32) -> Result<Box<[u8]>> {
        let room = u64::from(extent.blocks) * BLOCK as u64;
        if u64::from(len) > room.min(XATTR_MAX) {
            let block = extent.block;
            let what = format!("an extended attribute of {len} bytes at block {block}");
            return Err(Error::Damaged(what));
        }
        let mut bytes = vec![0; (len as usize).next_multiple_of(BLOCK)];
        self.cache.source().read_at(extent.block, &mut bytes)?;
        bytes.truncate(len as usize);
        Ok(bytes.into())
    }
}
