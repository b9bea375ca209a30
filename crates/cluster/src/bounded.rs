//! A map of bounded length, which forgets what was not used lately.

use std::collections::HashMap;
use std::hash::Hash;

/// A map of at most `limit` entries. It has two halves: an entry that is used moves to the young
/// one. When that is full, it becomes the old one, and what the old one had is forgotten.
#[derive(Debug)]
pub(crate) struct BoundedMap<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    limit: usize,
}

impl<K: Copy + Eq + Hash, V> BoundedMap<K, V> {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            limit: limit.max(2),
        }
    }

    /// The entry of a key, which counts as a use.
    pub(crate) fn get(&mut self, key: K) -> Option<&mut V> {
        if let Some(value) = self.old.remove(&key) {
            self.insert(key, value);
        }
        self.young.get_mut(&key)
    }

    /// Sets the entry of a key.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        self.old.remove(&key);
        if self.young.len() >= self.limit / 2 && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    pub(crate) fn remove(&mut self, key: K) -> Option<V> {
        let old = self.old.remove(&key);
        self.young.remove(&key).or(old)
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// The entries.
    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.young.values().chain(self.old.values())
    }

    /// Sets the greatest number of entries. Those beyond it are forgotten.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit.max(2);
        if self.old.len() > self.limit / 2 {
            self.old = HashMap::new();
        }
        if self.young.len() > self.limit / 2 {
            self.young = HashMap::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_entries_stay_and_the_length_is_bounded() {
        let mut map = BoundedMap::new(8);
        map.insert(0, "used");
        for key in 1..100 {
            map.insert(key, "once");
            assert!(map.len() <= 8, "{map:?}");
            assert_eq!(map.get(0).map(|value| *value), Some("used"));
        }
        assert_eq!(map.get(1), None);
        map.set_limit(2);
        assert!(map.len() <= 2, "{map:?}");
    }

    #[test]
    fn a_removed_entry_does_not_come_back() {
        let mut map = BoundedMap::new(2);
        map.insert(1, 'a');
        map.insert(2, 'b');
        map.insert(1, 'c');
        assert_eq!((map.remove(1), map.remove(1)), (Some('c'), None));
        assert_eq!(map.get(2), Some(&mut 'b'));
    }
}
