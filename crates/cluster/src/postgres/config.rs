//! Which file system, and how it is reached.

use crate::address::{Complete, SslMode};
use crate::connections::{Tls, TlsMode};
use crate::meta::Settings;
use std::time::Duration;

/// A file system in a database.
#[derive(Clone, Debug)]
pub struct Config {
    /// The server, the database, and the role with its password.
    pub connection: tokio_postgres::Config,
    /// How connections are encrypted.
    pub tls: Tls,
    /// The schema of the file system.
    pub schema: String,
    /// A call fails after it has waited for so long.
    pub retry: Duration,
    /// The name of this machine, which other clients see.
    pub host: String,
    /// The version of this program, which other clients see.
    pub version: String,
}

impl Config {
    /// The file system of the schema `holdfast`, with the default for all else.
    #[must_use]
    pub fn new(connection: tokio_postgres::Config) -> Self {
        Self {
            tls: Tls::for_hosts(&connection),
            connection,
            schema: "holdfast".to_owned(),
            retry: Duration::from_secs(30),
            host: String::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// That of a complete address.
    #[must_use]
    pub fn of(complete: &Complete, retry: Duration, host: String) -> Self {
        let mut connection = tokio_postgres::Config::new();
        for (host, port) in &complete.hosts {
            connection.host(host).port(*port);
        }
        connection
            .user(&complete.user)
            .dbname(&complete.database)
            .connect_timeout(complete.timeout);
        if let Some(password) = &complete.password {
            connection.password(password.reveal());
        }
        let tls = Tls {
            mode: match complete.ssl {
                SslMode::Disable => TlsMode::Disable,
                SslMode::Require => TlsMode::Require,
                SslMode::VerifyFull => TlsMode::VerifyFull,
            },
            root: complete.root.clone(),
            identity: complete.certificate.clone(),
        };
        Self {
            tls,
            schema: complete.file_system.clone(),
            retry,
            host,
            ..Self::new(connection)
        }
    }

    /// The schema as SQL writes it.
    pub(super) fn quoted_schema(&self) -> String {
        quoted(&self.schema)
    }
}

/// An identifier as SQL writes it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// What a new file system is to be.
#[derive(Clone, Debug, Default)]
pub struct MkfsOptions {
    /// Its settings. The database chooses the `uuid`.
    pub settings: Settings,
    /// A role that may mount it, beside the one that makes it.
    pub role: Option<String>,
}
