//! What `DirIndex` promises, with one thread and with several.

mod forms;
mod races;
