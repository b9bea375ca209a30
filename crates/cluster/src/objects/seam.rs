//! What the store needs of a store of objects.

use holdfast_types::Result;
use std::ops::Range;
use std::sync::Arc;

/// A store of immutable objects, which are named by numbers that the database dealt. No number is
/// used twice. All calls block.
pub trait Objects: Send + Sync + 'static {
    /// Stores an object under a number that was never used. When the call succeeds, the object is
    /// durable.
    ///
    /// # Errors
    /// `EIO` when the store refused it or did not answer in time; the object may exist then.
    fn put(&self, object: u64, content: Vec<u8>) -> Result<()>;

    /// Reads ranges of an object, in this order. A range that ends behind the object is cut at its
    /// end.
    ///
    /// # Errors
    /// `ENOENT`: there is no such object. `EIO`: it could not be read, or a range begins behind it.
    fn get(&self, object: u64, ranges: &[Range<u64>]) -> Result<Vec<Arc<[u8]>>>;

    /// Deletes objects; those that do not exist are deleted already.
    ///
    /// # Errors
    /// `EIO`: some of them may exist still.
    fn delete(&self, objects: &[u64]) -> Result<()>;

    /// Adds the numbers of at most `max` objects after this one, by number.
    ///
    /// # Errors
    /// `EIO`: the list could not be read.
    fn list(&self, after: u64, max: usize, found: &mut Vec<u64>) -> Result<()>;
}
