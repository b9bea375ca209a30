//! A locked shard of a memtable.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use holdfast_sync::ShardedCounter;
use holdfast_types::Ino;
use parking_lot::MutexGuard;

use super::Object;

/// Changed objects by number.
pub(super) type Objects = BTreeMap<Ino, Box<Object>>;

/// Bytes of an object without its rest, with its entry in a map that is mostly filled at its end.
const OBJECT: i64 =
    (size_of::<Object>().next_multiple_of(16) + size_of::<(Ino, Box<Object>)>() * 9 / 4) as i64;

/// A locked shard.
#[derive(Debug)]
pub(in crate::store) struct Shard<'o> {
    objects: MutexGuard<'o, Objects>,
    /// The memtable's bytes of memory.
    memory: &'o ShardedCounter,
}

/// An object that is being changed; its growth is counted when this is dropped.
#[derive(Debug)]
pub(in crate::store) struct Changing<'o> {
    object: &'o mut Object,
    memory: &'o ShardedCounter,
    before: i64,
}

impl Deref for Changing<'_> {
    type Target = Object;

    fn deref(&self) -> &Object {
        self.object
    }
}

impl DerefMut for Changing<'_> {
    fn deref_mut(&mut self) -> &mut Object {
        self.object
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        let came = self.object.measure() as i64 - self.before;
        if came != 0 {
            self.memory.add(came);
        }
    }
}

impl<'o> Shard<'o> {
    pub(super) fn new(objects: MutexGuard<'o, Objects>, memory: &'o ShardedCounter) -> Self {
        Self { objects, memory }
    }

    pub(in crate::store) fn get(&self, ino: Ino) -> Option<&Object> {
        self.objects.get(&ino).map(|object| &**object)
    }

    pub(in crate::store) fn get_mut(&mut self, ino: Ino) -> Option<Changing<'_>> {
        let object = self.objects.get_mut(&ino)?;
        Some(Changing {
            before: object.measured() as i64,
            object,
            memory: self.memory,
        })
    }

    /// An object, created if absent.
    pub(in crate::store) fn changed(&mut self, ino: Ino) -> Changing<'_> {
        let mut new = 0;
        let object = self.objects.entry(ino).or_insert_with(|| {
            new = OBJECT;
            Box::default()
        });
        Changing {
            before: object.measured() as i64 - new,
            object,
            memory: self.memory,
        }
    }

    /// A new object.
    pub(in crate::store) fn create(&mut self, ino: Ino) -> Changing<'_> {
        let mut object = self.changed(ino);
        object.fresh = true;
        object
    }

    /// Drops an object that no lower layer has.
    pub(in crate::store) fn forget(&mut self, ino: Ino) {
        if let Some(object) = self.objects.remove(&ino) {
            self.memory.add(-OBJECT - object.measured() as i64);
        }
    }
}
