//! The check of all bytes in objects.

use crate::content::damage;
use crate::meta::{Content, Node};
use crate::objects::Bucket;
use crate::tree::Tree;
use holdfast_types::{Errno, FileType, Ino, Result};
use std::collections::hash_map::{Entry, HashMap};

/// Inodes of one question.
const WALK: usize = 1024;

/// What was read of an object: its length, or what is wrong with it.
type Seen = HashMap<u64, std::result::Result<u64, String>>;

impl Tree {
    /// Reads each object that a file is mapped to, and compares its checksums. `found` is called
    /// with a sentence for each damaged file, `read` with the bytes of each object.
    ///
    /// # Errors
    /// `EIO`: the database or the bucket did not answer.
    pub fn check_content(
        &self,
        found: &mut dyn FnMut(String),
        read: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let mut seen = Seen::new();
        let mut after = Ino(0);
        loop {
            let nodes = self.meta.walk(after, WALK)?;
            let Some(last) = nodes.last() else {
                return Ok(());
            };
            after = last.record.ino;
            let has_bytes = |node: &&Node| {
                let record = &node.record;
                record.kind == FileType::Regular && node.content.is_none()
            };
            for node in nodes.iter().filter(has_bytes) {
                self.check_file(node.record.ino, &mut seen, found, read)?;
            }
        }
    }

    fn check_file(
        &self,
        ino: Ino,
        seen: &mut Seen,
        found: &mut dyn FnMut(String),
        read: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let extents = match self.meta.content(ino) {
            Ok((_, Content::Extents(extents))) => extents,
            // It was removed meanwhile.
            Ok((_, Content::Body { .. })) | Err(Errno::ESTALE) => return Ok(()),
            Err(error) => return Err(error),
        };
        for extent in extents.iter().filter(|extent| extent.object != 0) {
            let object = extent.object;
            let state = match seen.entry(object) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => {
                    let state = state(&self.bucket, object)?;
                    read(*state.as_ref().unwrap_or(&0));
                    place.insert(state)
                }
            };
            let end = extent.object_offset.saturating_add(extent.len);
            let why = match state {
                Ok(length) if *length >= end => continue,
                Ok(length) => format!("has {length} bytes, not {end}"),
                Err(why) => why.clone(),
            };
            found(format!(
                "file {}, bytes {} to {}: object {object} {why}",
                ino.0,
                extent.offset,
                extent.offset + extent.len
            ));
        }
        Ok(())
    }
}

fn state(bucket: &Bucket, object: u64) -> Result<std::result::Result<u64, String>> {
    match bucket.read_whole(object) {
        Ok(bytes) => Ok(match damage(&bytes) {
            None => Ok(bytes.len() as u64),
            Some(why) => Err(why),
        }),
        Err(Errno::ENOENT) => Ok(Err("is missing".into())),
        Err(error) => Err(error),
    }
}
