//! Trees: copy-on-write nodes of delta-coded records.
