//! Finding a name: in memory, else in the store.

use crate::core::Core;
use crate::directory::{Entry, Known, Residency};
use crate::inode::{DirectoryBody, Inode, Numbered as _};
use crate::namespace::hold_name;
use crate::namespace::load::{ask_store, learn_name, load_locked};
use crate::namespace::window::load_record;
use crate::shared::names::names_as_they_are;
use crate::types::Result;

/// The entry of a name.
///
/// # Errors
/// The store's.
#[inline]
pub(crate) fn find_name(
    core: &Core,
    dir: &Inode,
    body: &DirectoryBody,
    name: &[u8],
) -> Result<Option<Entry>> {
    match body.names.look(name) {
        Known::Found(entry) => Ok(Some(entry)),
        Known::Negative => Ok(None),
        Known::Unknown => ask_for(core, dir, body, name),
    }
}

#[cold]
fn ask_for(core: &Core, dir: &Inode, body: &DirectoryBody, name: &[u8]) -> Result<Option<Entry>> {
    hop!();
    if core.coherence.is_some() {
        names_as_they_are(core, dir, body)?;
        return Ok(body.names.find_cached(name));
    }
    let changes = {
        let mut names = body.names.write();
        load_locked(core, dir, &mut names)?;
        match names.hold(name) {
            Known::Found(entry) => return Ok(Some(entry)),
            Known::Negative => return Ok(None),
            Known::Unknown => names.changes(),
        }
    };
    let evictions = core.evictions.snapshot();
    let asked = ask_store(core, dir.ino(), name);
    let mut names = body.names.write();
    if names.place() == Residency::Partial && names.changes() == changes {
        let found = asked?;
        let entry = found.as_ref().map(|(entry, _)| *entry);
        learn_name(core, dir, &mut names, name, entry)?;
        drop(names);
        if let Some((entry, Some(record))) = found {
            load_record(core, dir, body, name, entry, (&record, &evictions));
        }
        return Ok(entry);
    }
    hold_name(core, dir, &mut names, name)?;
    Ok(names.get(name))
}
