//! Names of a directory that others change, looked up one by one.

use crate::core::{Core, no_entry};
use crate::directory::Entry;
use crate::inode::{DirectoryBody, Inode, Numbered as _};
use crate::inodes::find::node_in_memory;
use crate::namespace::window::load_window;
use crate::node::Node;
use crate::shared::by_name::ask_by_name;
use crate::shared::is_in_memory;
use crate::shared::names::{has_names, is_to_list, names_as_they_are};
use crate::shared::shared_store::SharedStore;
use crate::types::Result;

/// Looks a name up in a directory that is fresh.
///
/// # Errors
/// `ENOENT`, errors of the store.
pub(crate) fn child_of_shared(
    core: &Core,
    shared: SharedStore<'_>,
    dir: &Inode,
    body: &DirectoryBody,
    name: &[u8],
) -> Result<Node> {
    core.alive()?;
    if shared.coherence.asks_each(shared.now()) && !body.names.is_dead() {
        let found = ask_for_child(core, shared, dir, body, name)?;
        return found.ok_or_else(|| no_entry(core));
    }
    if !has_names(shared, dir, body) && is_to_list(shared, dir) {
        // A directory that cannot be listed can still be searched.
        let _ = names_as_they_are(core, dir, body);
    }
    if !has_names(shared, dir, body) {
        let found = ask_for_child(core, shared, dir, body, name)?;
        return found.ok_or_else(|| no_entry(core));
    }
    let entry = body.names.find_cached(name);
    let entry = entry.ok_or_else(|| no_entry(core))?;
    let node = named_in_shared(core, shared, dir, body, name, entry)?;
    if node.ino() == entry.ino && !node.inode().has_home() {
        // The inode was loaded by number: only now its name is known.
        node.inode().write().home = (dir.ino(), entry.cookie);
    }
    Ok(node)
}

/// The inode of a listed name, loaded or revalidated if necessary; others may be loaded with
/// it.
fn named_in_shared(
    core: &Core,
    shared: SharedStore<'_>,
    dir: &Inode,
    body: &DirectoryBody,
    name: &[u8],
    entry: Entry,
) -> Result<Node> {
    if !shared.is_known_by(entry.ino, dir.ino(), name) {
        // The number may have been reused: another name had it since this one was listed.
        let found = ask_for_child(core, shared, dir, body, name)?;
        return found.ok_or_else(|| no_entry(core));
    }
    if is_in_memory(core, entry.ino)
        && let Some(node) = node_in_memory(core, entry.ino)?
        && node.kind() == entry.kind
    {
        return Ok(node);
    }
    if let Some(node) = load_window(core, dir, body, name, entry) {
        return Ok(node);
    }
    // The name may lead elsewhere by now. The directory's times show that at its next
    // revalidation.
    let found = ask_for_child(core, shared, dir, body, name)?;
    found.ok_or_else(|| no_entry(core))
}

/// Asks the store for a name, which will lead nobody to an earlier state of the directory.
///
/// # Errors
/// Those of the store.
pub(crate) fn ask_for_child(
    core: &Core,
    shared: SharedStore<'_>,
    dir: &Inode,
    body: &DirectoryBody,
    name: &[u8],
) -> Result<Option<Node>> {
    let found = ask_by_name(core, shared, dir, name)?;
    // Names that are being read, or were just read, may be older than this answer.
    shared.coherence.note_answer(dir.ino());
    let known = body.names.find_cached(name).map(|entry| entry.ino);
    if known != found.as_ref().map(Node::ino) && has_names(shared, dir, body) {
        shared.coherence.invalidate(dir.ino(), shared.now());
    }
    Ok(found)
}
