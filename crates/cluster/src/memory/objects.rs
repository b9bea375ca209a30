//! Objects in memory, with faults.

use crate::objects::Objects;
use holdfast_types::{Errno, Result};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::sync::Arc;
use std::time::Duration;

/// A store of objects in memory.
#[derive(Debug, Default)]
pub struct MemoryObjects {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    objects: BTreeMap<u64, Arc<[u8]>>,
    /// The next calls that fail.
    puts_failing: u32,
    gets_failing: u32,
    slow: Option<Duration>,
    requests: u64,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The next calls of `put`, so many, fail, and store nothing.
    Put(u32),
    /// The next calls of `get`, so many, fail.
    Get(u32),
    /// Each call takes so long.
    Slow(Duration),
}

impl MemoryObjects {
    /// A store without objects.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// From now on, this goes wrong.
    pub fn inject(&self, fault: Fault) {
        let mut held = self.held.lock();
        match fault {
            Fault::Put(count) => held.puts_failing = count,
            Fault::Get(count) => held.gets_failing = count,
            Fault::Slow(time) => held.slow = Some(time).filter(|time| !time.is_zero()),
        }
    }

    /// The number of calls so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.held.lock().requests
    }

    /// The numbers of all objects.
    #[must_use]
    pub fn numbers(&self) -> Vec<u64> {
        self.held.lock().objects.keys().copied().collect()
    }

    fn call(&self) {
        let slow = {
            let mut held = self.held.lock();
            held.requests += 1;
            held.slow
        };
        if let Some(time) = slow {
            std::thread::sleep(time);
        }
    }
}

impl Objects for MemoryObjects {
    fn put(&self, object: u64, content: Vec<u8>) -> Result<()> {
        self.call();
        let mut held = self.held.lock();
        if held.puts_failing > 0 {
            held.puts_failing -= 1;
            return Err(Errno::EIO);
        }
        if held.objects.contains_key(&object) {
            return Err(Errno::EIO);
        }
        held.objects.insert(object, content.into());
        Ok(())
    }

    fn get(&self, object: u64, ranges: &[Range<u64>]) -> Result<Vec<Arc<[u8]>>> {
        self.call();
        let content = {
            let mut held = self.held.lock();
            if held.gets_failing > 0 {
                held.gets_failing -= 1;
                return Err(Errno::EIO);
            }
            held.objects.get(&object).cloned().ok_or(Errno::ENOENT)?
        };
        let read = |range: &Range<u64>| {
            let start = usize::try_from(range.start).map_err(|_| Errno::EIO)?;
            let end = usize::try_from(range.end).map_err(|_| Errno::EIO)?;
            let end = end.min(content.len());
            content.get(start..end).map(Arc::from).ok_or(Errno::EIO)
        };
        ranges.iter().map(read).collect()
    }

    fn delete(&self, objects: &[u64]) -> Result<()> {
        self.call();
        let mut held = self.held.lock();
        for object in objects {
            held.objects.remove(object);
        }
        Ok(())
    }

    fn list(&self, after: u64, max: usize, found: &mut Vec<u64>) -> Result<()> {
        self.call();
        let held = self.held.lock();
        let from = (Bound::Excluded(after), Bound::Unbounded);
        found.extend(
            held.objects
                .range(from)
                .map(|(number, _)| *number)
                .take(max),
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_read_listed_and_deleted() {
        let objects = MemoryObjects::new();
        objects.put(7, b"content".to_vec()).unwrap();
        assert_eq!(objects.put(7, Vec::new()), Err(Errno::EIO));
        objects.put(9, Vec::new()).unwrap();
        let read = objects.get(7, &[0..3, 6..7]).unwrap();
        assert_eq!(read, [Arc::from(*b"con") as Arc<[u8]>, Arc::from(*b"t")]);
        let mut found = Vec::new();
        objects.list(7, 10, &mut found).unwrap();
        assert_eq!(found, [9]);
        let cut = objects.get(7, &[5..7, 6..8]).unwrap();
        assert_eq!(cut, [Arc::from(*b"nt") as Arc<[u8]>, Arc::from(*b"t")]);
        assert_eq!(objects.get(7, &[0..1, 8..9]), Err(Errno::EIO));
        objects.delete(&[7, 8]).unwrap();
        assert_eq!(objects.get(7, &[]), Err(Errno::ENOENT));
    }

    #[test]
    fn faults_fail_as_many_calls_as_said() {
        let objects = MemoryObjects::new();
        objects.inject(Fault::Put(1));
        assert_eq!(objects.put(1, vec![1]), Err(Errno::EIO));
        objects.put(1, vec![1]).unwrap();
        objects.inject(Fault::Get(1));
        assert_eq!(objects.get(1, &[]), Err(Errno::EIO));
        assert!(objects.get(1, &[]).unwrap().is_empty());
    }
}
