//! The journal: committed changes that are not in the trees yet.
