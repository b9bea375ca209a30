//! The tables and functions of a file system are made.

use super::config::{Config, MkfsOptions, quoted};
use super::error::ConnectError;
use super::rows;
use crate::connections::{Connector, Runtime};
use crate::meta::Settings;
use tokio_postgres::{Client, Transaction};

/// The format of the tables and functions.
pub(super) const FORMAT: i32 = 1;
/// The least version of the server.
const SERVER: u32 = 14;
/// The most bytes of a body: its pages are the bits of one number.
const BODY_MAX: u64 = 256 << 10;

const SCHEMA: [&str; 8] = [
    include_str!("schema/tables.sql"),
    include_str!("schema/names.sql"),
    include_str!("schema/content.sql"),
    include_str!("schema/messages.sql"),
    include_str!("schema/perform.sql"),
    include_str!("schema/questions.sql"),
    include_str!("schema/sessions.sql"),
    include_str!("schema/check.sql"),
];

/// The planner's statistics are of another moment: each statement is meant to use one index.
const PINNED: &str = "SET plan_cache_mode = force_generic_plan SET enable_seqscan = off \
     SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off \
     SET enable_sort = off SET jit = off";

/// Space that removals and new sessions find when the disk of the database is full.
const RESERVE: &str = "
INSERT INTO gone SELECT -i, i::text::xid8 FROM generate_series(1, 8192) i;
INSERT INTO session (sid, host, version, heard, looked)
    SELECT -i, repeat('h', 40), '', 0, '1'::xid8 FROM generate_series(1, 64) i;
INSERT INTO slot (sid, number, seq, hash, results)
    SELECT -i, 0, 0, 0, convert_to(repeat('r', 300), 'UTF8') FROM generate_series(1, 320) i;
INSERT INTO deal SELECT -i, -i, -i FROM generate_series(1, 1024) i;
DELETE FROM gone; DELETE FROM session; DELETE FROM slot; DELETE FROM deal;";
/// Makes it known as free.
const RESERVED: [&str; 4] = ["gone", "session", "slot", "deal"];

/// What a role that mounts may call, and no more.
const GRANTS: &str = "DO $$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN SELECT p.oid FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname = current_schema() AND p.proname NOT LIKE 'hf1\\_%'
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
    END LOOP;
END $$";

/// Makes a file system, owned by the role of the connection. Returns its settings.
///
/// # Errors
/// The schema is in use, the role may not make it, or the database is not to be reached.
pub fn mkfs(config: &Config, options: &MkfsOptions) -> Result<Settings, ConnectError> {
    check(&config.schema, &options.settings)?;
    let connector = Connector::new(&config.connection, &config.tls, config.retry)
        .map_err(ConnectError::Certificate)?;
    let runtime = Runtime::start()?;
    runtime.wait(async {
        let mut client = connector
            .connect()
            .await
            .map_err(|error| ConnectError::of_connection(&error, &connector))?;
        let made = async {
            let version = client.query_one("SHOW server_version", &[]).await?;
            let version: String = version.get(0);
            let major = version.split(|c: char| !c.is_ascii_digit()).next();
            if major
                .and_then(|it| it.parse().ok())
                .is_some_and(|it: u32| it < SERVER)
            {
                return Ok(Err(ConnectError::ServerTooOld {
                    version,
                    least: SERVER,
                }));
            }
            let transaction = client.transaction().await?;
            install(&transaction, config, options).await?;
            transaction.commit().await?;
            let schema = config.quoted_schema();
            // Pages of indexes are free with the second one, after another transaction.
            for table in RESERVED.iter().chain(&RESERVED) {
                client.batch_execute("SELECT pg_current_xact_id()").await?;
                let vacuum = format!("VACUUM {schema}.{table}");
                client.batch_execute(&vacuum).await?;
            }
            settings(&client, config).await
        };
        let made = made.await.map_err(|error| {
            let remedy = format!(
                "GRANT CREATE ON DATABASE {} TO {}",
                quoted(connector.database()),
                quoted(connector.user())
            );
            ConnectError::of_statement(&error, &connector, &config.schema, remedy)
        });
        made?
    })
}

/// Are the settings within their limits?
fn check(schema: &str, settings: &Settings) -> Result<(), ConnectError> {
    let wrong = |text: &str| Err(ConnectError::Setting(text.to_owned()));
    if schema.is_empty() || schema.len() > 63 || schema.contains('\0') {
        return wrong("fs: the name of a file system has 1 to 63 bytes");
    }
    if settings.staged > BODY_MAX || settings.inline > settings.staged {
        return wrong("staged: at most 256 KiB, and at least `inline`");
    }
    Ok(())
}

async fn install(
    transaction: &Transaction<'_>,
    config: &Config,
    options: &MkfsOptions,
) -> Result<(), tokio_postgres::Error> {
    let schema = config.quoted_schema();
    let path = format!("SET search_path = {schema}, pg_temp");
    transaction
        .batch_execute(&format!(
            "CREATE SCHEMA IF NOT EXISTS {schema}; SET LOCAL search_path = {schema}, pg_temp"
        ))
        .await?;
    for part in SCHEMA {
        let part = part
            .replace("@pinned@", &format!("{path} {PINNED}"))
            .replace("@free@", &format!("{path} SET jit = off"));
        transaction.batch_execute(&part).await?;
    }
    transaction.batch_execute(GRANTS).await?;
    transaction.batch_execute(RESERVE).await?;
    for table in RESERVED {
        let keep = format!("ALTER TABLE {table} SET (vacuum_truncate = off)");
        transaction.batch_execute(&keep).await?;
    }
    if let Some(role) = &options.role {
        let role = quoted(role);
        transaction
            .batch_execute(&format!("GRANT USAGE ON SCHEMA {schema} TO {role}"))
            .await?;
    }
    let settings = &options.settings;
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let nanos = |time: std::time::Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    transaction
        .execute(
            "INSERT INTO volume (format, incarnation, bucket, endpoint, region, notifies, lease, \
             inline, staged, keep, lock_base) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, (random() * 9e18)::int8)",
            &[
                &FORMAT,
                &number(settings.incarnation),
                &settings.bucket,
                &settings.endpoint,
                &settings.region,
                &settings.notifies,
                &nanos(settings.lease),
                &number(settings.inline),
                &number(settings.staged),
                &nanos(settings.keep),
            ],
        )
        .await?;
    // The root directory.
    transaction
        .batch_execute(
            "INSERT INTO node SELECT 1, 0, 0, t, t, t, t, 1, 0, 1, 2, 0, 0, 0, 0, 4, 493, 0 \
             FROM now_ns() t",
        )
        .await
}

/// Reads the settings, if this program knows the format.
pub(super) async fn settings(
    client: &Client,
    config: &Config,
) -> Result<Result<Settings, ConnectError>, tokio_postgres::Error> {
    let text = format!("SELECT * FROM {}.hf1_settings()", config.quoted_schema());
    let row = client.query_one(&text, &[]).await?;
    let format: i32 = row.try_get(0)?;
    if format > FORMAT {
        return Ok(Err(ConnectError::Newer {
            schema: config.schema.clone(),
            format,
            known: FORMAT,
        }));
    }
    rows::settings(&row).map(Ok)
}
