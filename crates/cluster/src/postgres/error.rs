//! Why a file system cannot be reached or made, and what to do about it.

use crate::connections::{Connector, chain};
use tokio_postgres::error::SqlState;

/// A file system was not reached, or not made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// A certificate cannot be used.
    #[error("certificate: {0}")]
    Certificate(String),
    /// The server gave no connection.
    #[error("database {database}: {cause}")]
    Unreachable {
        /// The database.
        database: String,
        /// What went wrong.
        cause: String,
    },
    /// The server refused the role.
    #[error(
        "database {database}: {cause}. The password of role {user} comes from PGPASSWORD, PGPASSFILE \
         or ~/.pgpass"
    )]
    Login {
        /// The database.
        database: String,
        /// The role.
        user: String,
        /// The server's words.
        cause: String,
    },
    /// There is no file system in the schema.
    #[error(
        "schema {schema} of database {database} has no file system: make one with `holdfast mkfs`"
    )]
    Missing {
        /// The database.
        database: String,
        /// The schema.
        schema: String,
    },
    /// There is a file system in the schema already.
    #[error(
        "schema {schema} of database {database} is in use already: choose another with `fs=NAME`"
    )]
    Exists {
        /// The database.
        database: String,
        /// The schema.
        schema: String,
    },
    /// The role lacks a right.
    #[error("database {database}: role {user}: {cause}. Its owner gives the right with: {remedy}")]
    Forbidden {
        /// The database.
        database: String,
        /// The role.
        user: String,
        /// The server's words.
        cause: String,
        /// A statement for the owner.
        remedy: String,
    },
    /// The file system was made by a newer program.
    #[error("schema {schema} has format {format}, this program knows up to {known}: upgrade it")]
    Newer {
        /// The schema.
        schema: String,
        /// The format there.
        format: i32,
        /// The last format that is known.
        known: i32,
    },
    /// The server is too old.
    #[error("the server is PostgreSQL {version}: at least {least} is needed")]
    ServerTooOld {
        /// Its version.
        version: String,
        /// The least that will do.
        least: u32,
    },
    /// A setting is out of range.
    #[error("{0}")]
    Setting(String),
    /// The system gave no thread.
    #[error("no thread for the connections: {0}")]
    Thread(#[from] std::io::Error),
    /// The server answered otherwise than the functions of the file system do.
    #[error("schema {schema} of database {database}: {cause}")]
    Unexpected {
        /// The database.
        database: String,
        /// The schema.
        schema: String,
        /// What went wrong.
        cause: String,
    },
}

impl ConnectError {
    /// An error while a connection was made.
    pub(super) fn of_connection(error: &tokio_postgres::Error, connector: &Connector) -> Self {
        let (database, cause) = (connector.database().to_owned(), chain(error));
        match error.code() {
            Some(state)
                if *state == SqlState::INVALID_PASSWORD
                    || *state == SqlState::INVALID_AUTHORIZATION_SPECIFICATION =>
            {
                Self::Login {
                    database,
                    user: connector.user().to_owned(),
                    cause,
                }
            }
            _ => Self::Unreachable { database, cause },
        }
    }

    /// An error of a statement about a file system; `remedy` gives the right that may lack.
    pub(super) fn of_statement(
        error: &tokio_postgres::Error,
        connector: &Connector,
        schema: &str,
        remedy: String,
    ) -> Self {
        let (database, schema) = (connector.database().to_owned(), schema.to_owned());
        let is = |states: &[SqlState]| error.code().is_some_and(|state| states.contains(state));
        if is(&[SqlState::INVALID_SCHEMA_NAME, SqlState::UNDEFINED_FUNCTION]) {
            Self::Missing { database, schema }
        } else if is(&[
            SqlState::DUPLICATE_TABLE,
            SqlState::DUPLICATE_SCHEMA,
            SqlState::DUPLICATE_FUNCTION,
            SqlState::DUPLICATE_OBJECT,
            SqlState::UNIQUE_VIOLATION,
        ]) {
            Self::Exists { database, schema }
        } else if is(&[SqlState::INSUFFICIENT_PRIVILEGE]) {
            Self::Forbidden {
                database,
                user: connector.user().to_owned(),
                cause: chain(error),
                remedy,
            }
        } else {
            Self::Unexpected {
                database,
                schema,
                cause: chain(error),
            }
        }
    }
}
