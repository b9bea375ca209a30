//! The store of immutable objects: the seam, and its engine for buckets and folders.

mod bucket;
mod executor;
mod failure;
mod place;
mod profile;
mod seam;

pub use bucket::Bucket;
pub use failure::BucketError;
pub use place::Place;
pub use seam::Objects;
