//! A file system is removed, for another in its place.

use super::config::Config;
use super::error::ConnectError;
use super::install;
use crate::connections::{Connector, Runtime};
use std::future::Future;
use tokio_postgres::Client;

/// The tables of a file system.
const TABLES: [&str; 16] = [
    "volume", "node", "entry", "target", "xattr", "body", "extent", "object", "gone", "sustain",
    "session", "slot", "deal", "life", "interest", "inbox",
];

/// The identity of the file system in the schema; `None`: there is none.
///
/// # Errors
/// If the database cannot be used.
pub(crate) fn identity(config: &Config) -> Result<Option<[u8; 16]>, ConnectError> {
    let found = with(config, async |client: Client| {
        install::settings(&client, config).await
    });
    match found {
        Ok(settings) => Ok(Some(settings.uuid)),
        Err(ConnectError::Missing { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Removes the schema, which must have no tables of others.
///
/// # Errors
/// If it has, or the role may not do so.
pub(crate) fn remove(config: &Config) -> Result<(), ConnectError> {
    with(config, async |client: Client| {
        let others = "SELECT relname::text FROM pg_class WHERE relnamespace = $1::text::regnamespace \
             AND relkind IN ('r', 'p', 'v', 'm', 'f') AND relname::text <> ALL ($2) LIMIT 1";
        let quoted = config.quoted_schema();
        let found = client.query_opt(others, &[&quoted, &&TABLES[..]]).await?;
        if let Some(row) = found {
            let table: String = row.try_get(0)?;
            return Ok(Err(ConnectError::Setting(format!(
                "schema {} has a table that is not of Holdfast, and is not removed: {table}",
                config.schema
            ))));
        }
        let text = format!("DROP SCHEMA {quoted} CASCADE");
        client.batch_execute(&text).await.map(Ok)
    })
}

/// Connects, and does this.
fn with<T, F>(config: &Config, work: impl FnOnce(Client) -> F) -> Result<T, ConnectError>
where
    F: Future<Output = Result<Result<T, ConnectError>, tokio_postgres::Error>>,
{
    let connector = Connector::new(&config.connection, &config.tls, config.retry)
        .map_err(ConnectError::Certificate)?;
    let runtime = Runtime::start()?;
    runtime.wait(async {
        let client = connector
            .connect()
            .await
            .map_err(|error| ConnectError::of_connection(&error, &connector))?;
        let done = work(client).await;
        let remedy = format!("ALTER SCHEMA {} OWNER TO …", config.quoted_schema());
        done.map_err(|error| {
            ConnectError::of_statement(&error, &connector, &config.schema, remedy)
        })?
    })
}
