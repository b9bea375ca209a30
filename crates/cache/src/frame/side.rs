//! A part beside the frames, for the writer.

use super::lock::FramesLock;
use super::node::slot::Entry;
use crate::epoch;

/// A side part that is moving from one root to another, with its note.
pub(super) struct Side<X>(Option<(Box<X>, u64)>);

impl<X> Side<X> {
    pub(super) fn note(&self) -> u64 {
        self.0.as_ref().map_or(0, |(_, note)| *note)
    }
}

impl<X: Send + 'static> FramesLock<'_, X> {
    /// The side part, if there is one.
    #[must_use]
    pub fn side(&self) -> Option<&X> {
        match self.map.root.entry(&self.writing)? {
            Entry::Node(root) => root.side(&self.writing),
            Entry::Frame(_) => None,
        }
    }

    /// Changes the side part, and makes it first if necessary. Stores `note` of it for every reader
    /// ([`Totals::note`](super::Totals)). A note of 0 drops the side part.
    pub fn with_side<R>(
        &mut self,
        change: impl FnOnce(&mut X) -> R,
        note: impl FnOnce(&X) -> u64,
    ) -> R
    where
        X: Default,
    {
        let guard = epoch::pin();
        let root = match self.map.root.entry(&guard) {
            Some(Entry::Node(root)) => root,
            _ => self.leaf(0, &guard),
        };
        let side = root.side_mut(&mut self.writing);
        let part = side.get_or_insert_default();
        let result = change(part);
        let note = note(part);
        if note == 0 {
            *side = None;
        }
        root.set_note(note);
        result
    }

    pub(super) fn take_side(&mut self) -> Side<X> {
        let guard = epoch::pin();
        let Some(Entry::Node(root)) = self.map.root.entry(&guard) else {
            return Side(None);
        };
        let part = root.side_mut(&mut self.writing).take();
        Side(part.map(|part| (part, root.note())))
    }

    /// Gives the side part to the root, which is made if there is none.
    pub(super) fn restore_side(&mut self, side: Side<X>) {
        let Some((part, note)) = side.0 else { return };
        let guard = epoch::pin();
        let root = match self.map.root.entry(&guard) {
            Some(Entry::Node(root)) => root,
            _ => self.leaf(0, &guard),
        };
        root.set_note(note);
        *root.side_mut(&mut self.writing) = Some(part);
    }
}
