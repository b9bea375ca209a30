//! Quotas as their callers see them.
