//! The store of immutable objects: the seam.

mod seam;

pub use seam::Objects;
