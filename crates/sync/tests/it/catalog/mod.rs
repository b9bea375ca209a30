//! What `Catalog` promises, in one thread and among several.

mod claims;
mod forms;
mod races;
