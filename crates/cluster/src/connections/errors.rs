//! What an error of the database means for a call.

use holdfast_types::Errno;
use std::error::Error as _;
use tokio_postgres::error::SqlState;

/// The consequence of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The connection is gone or not to be had: the outcome is unknown, and the call is sent once
    /// more over another one.
    Lost,
    /// The transaction was rolled back, and may succeed when it is repeated.
    Repeat,
    /// The session was ended by the others.
    Fenced,
    /// An object that a file was to map is not in use.
    NotMapped,
    /// The transaction was rolled back.
    Failed(Errno),
}

impl Trouble {
    /// The consequence of this error.
    pub(crate) fn of(error: &tokio_postgres::Error) -> Self {
        let Some(state) = error.code() else {
            return Self::Lost;
        };
        match state.code() {
            "HF001" => return Self::Fenced,
            "HF002" => return Self::NotMapped,
            _ => {}
        }
        let is = |states: &[SqlState]| states.contains(state);
        if is(&[
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
        ]) {
            Self::Repeat
        } else if is(&[SqlState::DISK_FULL]) {
            Self::Failed(Errno::ENOSPC)
        } else if is(&[SqlState::UNIQUE_VIOLATION]) {
            Self::Failed(Errno::EINVAL)
        } else if is_lost(state) {
            Self::Lost
        } else {
            tracing::warn!("the database refused a call: {}", chain(error));
            Self::Failed(Errno::EIO)
        }
    }
}

/// Is the connection useless, or the server not ready for one?
fn is_lost(state: &SqlState) -> bool {
    // Class 08: connection exceptions. Class 57P: an operator, or the server itself, intervenes.
    let code = state.code();
    code.starts_with("08")
        || code.starts_with("57P")
        || *state == SqlState::TOO_MANY_CONNECTIONS
        || *state == SqlState::READ_ONLY_SQL_TRANSACTION
        || *state == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
}

/// An error with its causes, in one line. Errors of the client contain no password.
pub(crate) fn chain(error: &tokio_postgres::Error) -> String {
    let mut text = match error.as_db_error() {
        Some(error) => format!("{} ({})", error.message(), error.code().code()),
        None => error.to_string(),
    };
    let mut cause = error.source().filter(|_| error.as_db_error().is_none());
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
