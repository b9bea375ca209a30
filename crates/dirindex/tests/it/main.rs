//! What `Catalog` promises, in one thread and among several.

mod forms;
mod races;
