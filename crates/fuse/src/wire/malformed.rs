//! What decoding says of bytes that are no request.

/// A request with inconsistent bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed request: {what}")]
pub struct Malformed {
    /// What is wrong with it.
    pub what: &'static str,
}

impl Malformed {
    pub(crate) const fn new(what: &'static str) -> Self {
        Self { what }
    }
}
