//! A session: the seam over the connections.

use super::config::Config;
use super::decode;
use super::encode::{encode, number};
use super::error::ConnectError;
use super::install;
use super::rows::{self, get, malformed};
use crate::connections::{self, Batches, Connector, Link, Notified, Runtime, Trouble, chain};
use crate::meta::{
    Answer, Beat, BeatAnswer, ClientInfo, Content, Directory, Found, Meta, Node, Request, Settings,
    Staged, Usage,
};
use holdfast_core::interrupt::{self, is_interrupted};
use holdfast_core::store::{EntryRecord, Rest};
use holdfast_types::{Errno, Ino, Result};
use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Range;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

/// Connections for changes. The slot of this number is the slot of the sweep.
const SLOTS: i32 = connections::SLOTS as i32;
/// Connections for questions.
const QUESTIONS: usize = 2;

/// Begins a session.
///
/// # Errors
/// There is no file system, it is not to be reached, or the role may not use it.
pub fn connect(config: Config) -> Result<Arc<dyn Meta>, ConnectError> {
    let connector = Connector::new(&config.connection, &config.tls, config.retry)
        .map_err(ConnectError::Certificate)?;
    let connector = Arc::new(connector);
    let runtime = Runtime::start()?;
    let schema = config.quoted_schema();
    let (settings, sid) = runtime.wait(async {
        let client = connector
            .connect()
            .await
            .map_err(|error| ConnectError::of_connection(&error, &connector))?;
        let wrong = |error| {
            let remedy = format!(
                "GRANT USAGE ON SCHEMA {schema} TO {}",
                super::config::quoted(connector.user())
            );
            ConnectError::of_statement(&error, &connector, &config.schema, remedy)
        };
        let settings = install::settings(&client, &config).await.map_err(wrong)??;
        let text = format!("SELECT {schema}.hf1_begin($1, $2, $3)");
        let begun = client
            .query_one(&text, &[&config.host, &config.version, &SLOTS])
            .await;
        let sid: i64 = begun.and_then(|row| row.try_get(0)).map_err(wrong)?;
        Ok::<_, ConnectError>((settings, sid))
    })?;
    let queue = Batches::new(
        sid,
        format!("SELECT {schema}.hf1_perform($1, $2, $3, $4, $5, $6)"),
    );
    for slot in 0..connections::SLOTS {
        let link = Link::new(Arc::clone(&connector));
        runtime.spawn(Arc::clone(&queue).run(slot, link));
    }
    let link = || Link::new(Arc::clone(&connector));
    let notified: Arc<OnceLock<Notified>> = Arc::default();
    let called = Arc::clone(&notified);
    let rings = Link::listening(
        Arc::clone(&connector),
        Arc::new(move || {
            if let Some(notified) = called.get() {
                notified();
            }
        }),
    );
    if settings.notifies {
        runtime.spawn(ring(rings, Arc::clone(&queue), &schema, sid));
    }
    Ok(Arc::new(Session {
        notified,
        questions: [(); QUESTIONS].map(|()| link()),
        next: AtomicUsize::new(0),
        beat: link(),
        connector,
        batches: queue,
        schema,
        settings,
        sid,
        retry: config.retry,
        runtime,
    }))
}

/// The longest time for which a lost connection hears no notification.
const LISTEN: Duration = Duration::from_secs(5);
/// The least time between two rings, so that one is for several changes.
const RING: Duration = Duration::from_millis(20);

/// Notifies other sessions after changes that they have messages of, and listens.
fn ring(
    link: Link,
    queue: Arc<Batches>,
    schema: &str,
    sid: i64,
) -> impl Future<Output = ()> + Send + use<> {
    let text = format!("SELECT {schema}.hf1_ring($1, $2)");
    async move {
        let mut rings = false;
        while !queue.is_fenced() {
            // A ring that is lost only costs the wait for the next beat.
            let _ = link.ask(&text, &[&sid, &rings]).await;
            sleep(RING).await;
            rings = timeout(LISTEN, queue.messages()).await.is_ok();
        }
    }
}

/// A session of this process.
struct Session {
    /// Called when another session has written messages for this one.
    notified: Arc<OnceLock<Notified>>,
    questions: [Link; QUESTIONS],
    next: AtomicUsize,
    beat: Link,
    connector: Arc<Connector>,
    batches: Arc<Batches>,
    /// The schema, as SQL writes it.
    schema: String,
    settings: Settings,
    sid: i64,
    retry: Duration,
    /// Dropped last: it ends all connections.
    runtime: Runtime,
}

type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

impl Session {
    /// Waits for an answer, for as long as the mount allows and the caller is there.
    fn wait<T>(&self, future: impl Future<Output = T>) -> Result<T> {
        let waited = self.runtime.wait(async {
            let mut answer = pin!(timeout(self.retry, future));
            loop {
                match timeout(interrupt::POLL, answer.as_mut()).await {
                    Ok(answer) => return Ok(answer),
                    Err(_) if is_interrupted() => return Err(Errno::EINTR),
                    Err(_) => {}
                }
            }
        });
        waited?.map_err(|_| {
            tracing::warn!("the database did not answer in {:?}", self.retry);
            Errno::EIO
        })
    }

    /// Calls a function that may be called more than once.
    fn call_over(&self, link: &Link, function: &str, params: Params<'_>) -> Result<Vec<Row>> {
        if self.batches.is_fenced() {
            return Err(Errno::ESTALE);
        }
        let places: Vec<String> = (1..=params.len())
            .map(|place| format!("${place}"))
            .collect();
        let (schema, places) = (&self.schema, places.join(", "));
        let text = format!("SELECT * FROM {schema}.{function}({places})");
        match self.wait(link.ask(&text, params))? {
            Ok(rows) => Ok(rows),
            Err(Trouble::Fenced) => {
                self.batches.fence();
                Err(Errno::ESTALE)
            }
            Err(Trouble::Failed(errno)) => Err(errno),
            Err(_) => Err(Errno::EIO),
        }
    }

    fn call(&self, function: &str, params: Params<'_>) -> Result<Vec<Row>> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        self.call_over(&self.questions[next % QUESTIONS], function, params)
    }

    /// Calls a function that answers with one value.
    fn value<T: for<'a> tokio_postgres::types::FromSql<'a>>(
        &self,
        function: &str,
        params: Params<'_>,
    ) -> Result<T> {
        let rows = self.call(function, params)?;
        let row = rows.first().ok_or_else(|| malformed("no row"))?;
        row.try_get(0).map_err(malformed)
    }
}

/// Numbers as parameters.
fn numbers(inos: &[Ino]) -> Vec<i64> {
    inos.iter().map(|ino| number(ino.0)).collect()
}

fn limit(max: usize) -> i64 {
    i64::try_from(max).unwrap_or(i64::MAX)
}

impl Meta for Session {
    fn settings(&self) -> Settings {
        self.settings.clone()
    }

    fn perform(&self, request: Request) -> Result<Answer> {
        let request = encode(&request)?;
        let answer = self.wait(self.batches.perform(request))??;
        match answer {
            None => Ok(Answer::Refused),
            Some(raw) => decode::answer(&raw).map_err(malformed)?,
        }
    }

    fn look_up(&self, dir: Ino, names: &[&[u8]], topics: &[Ino]) -> Result<Vec<Option<Found>>> {
        let answer = self.call(
            "hf1_look_up",
            &[&self.sid, &number(dir.0), &names, &numbers(topics)],
        )?;
        let mut found = vec![None; names.len()];
        for row in rows::names_of(&answer)? {
            let ord = usize::try_from(rows::count(row, "ord")?).map_err(malformed)?;
            let at = ord.wrapping_sub(1);
            let (Some(place), Some(name)) = (found.get_mut(at), names.get(at)) else {
                return Err(malformed("a name that was not asked for"));
            };
            *place = Some(Found {
                entry: rows::entry(row, name)?,
                node: rows::node_of(row)?,
            });
        }
        Ok(found)
    }

    fn load(&self, inos: &[Ino], topics: &[Ino]) -> Result<Vec<Node>> {
        let params: Params<'_> = &[&self.sid, &numbers(inos), &numbers(topics)];
        rows::nodes(&self.call("hf1_load", params)?)
    }

    fn load_rests(&self, inos: &[Ino]) -> Result<Vec<Rest>> {
        let answer = self.call("hf1_rests", &[&self.sid, &numbers(inos)])?;
        let mut rests: Vec<Option<Rest>> = vec![None; inos.len()];
        for row in &answer {
            let ord = usize::try_from(rows::count(row, "ord")?).map_err(malformed)?;
            let place = rests.get_mut(ord.wrapping_sub(1));
            let place = place.ok_or_else(|| malformed("an inode that was not asked for"))?;
            let value: Option<&[u8]> = get(row, "value")?;
            let rest = place.get_or_insert_default();
            match (get::<Option<&[u8]>>(row, "name")?, value) {
                (None, target) => rest.target = target.map(Into::into),
                (Some(name), value) => {
                    rest.xattrs.push((name.into(), value.unwrap_or(&[]).into()));
                }
            }
        }
        rests
            .into_iter()
            .map(|rest| rest.ok_or(Errno::ESTALE))
            .collect()
    }

    fn read_names(
        &self,
        dir: Ino,
        after: u64,
        max: usize,
        topics: &[Ino],
    ) -> Result<Vec<EntryRecord>> {
        let answer = self.call(
            "hf1_names",
            &[
                &self.sid,
                &number(dir.0),
                &number(after),
                &limit(max),
                &numbers(topics),
            ],
        )?;
        let names = rows::names_of(&answer)?.iter();
        names
            .map(|row| rows::entry(row, get(row, "name")?))
            .collect()
    }

    fn read_directories(
        &self,
        dirs: &[Ino],
        most: usize,
        inodes: bool,
        topics: &[Ino],
    ) -> Result<Vec<Option<Directory>>> {
        let answer = self.call(
            "hf1_directories",
            &[
                &self.sid,
                &numbers(dirs),
                &limit(most),
                &inodes,
                &numbers(topics),
            ],
        )?;
        rows::directories(&answer, dirs.len(), inodes)
    }

    fn content(&self, ino: Ino) -> Result<(u64, Content)> {
        let answer = self.call("hf1_content", &[&self.sid, &number(ino.0)])?;
        rows::content(answer.first().ok_or(Errno::ESTALE)?)
    }

    fn walk(&self, after: Ino, max: usize) -> Result<Vec<Node>> {
        let params: Params<'_> = &[&self.sid, &number(after.0), &limit(max)];
        rows::nodes(&self.call("hf1_walk", params)?)
    }

    fn usage(&self) -> Result<Usage> {
        let answer = self.call("hf1_usage", &[&self.sid])?;
        rows::usage(answer.first().ok_or_else(|| malformed("no row"))?)
    }

    fn deal(&self, count: u64) -> Result<Range<u64>> {
        let count = i64::try_from(count).map_err(|_| Errno::ENOSPC)?;
        let first: i64 = self.value("hf1_deal", &[&self.sid, &count])?;
        Ok(first.unsigned_abs()..first.unsigned_abs() + count.unsigned_abs())
    }

    fn beat(&self, beat: &Beat) -> Result<BeatAnswer> {
        let answer = self.call_over(
            &self.beat,
            "hf1_beat",
            &[
                &self.sid,
                &number(beat.taken),
                &numbers(&beat.knows),
                &numbers(&beat.releases),
                &number(beat.looked_at),
                &numbers(&beat.unsubscribes),
            ],
        )?;
        let mut answer = rows::beat(&answer)?;
        // A change may have been performed after its caller left. What it did is not known here, as
        // if a message were lost.
        let unclaimed = self.batches.unclaimed();
        answer.epoch.2 = answer.epoch.2.wrapping_add(unclaimed);
        Ok(answer)
    }

    fn on_message(&self, notified: Arc<dyn Fn() + Send + Sync>) {
        // Called once.
        let _ = self.notified.set(notified);
    }

    fn end(&self) -> Result<()> {
        let ended = self.call("hf1_end", &[&self.sid]);
        self.batches.fence();
        ended.map(drop)
    }

    fn clients(&self) -> Result<Vec<ClientInfo>> {
        let answer = self.call("hf1_clients", &[&self.sid])?;
        answer
            .iter()
            .map(|row| rows::client(row, self.sid))
            .collect()
    }

    fn fence(&self, session: u64) -> Result<()> {
        match self.value("hf1_end", &[&number(session)])? {
            true => Ok(()),
            false => Err(Errno::ENOENT),
        }
    }

    fn sweep(&self, max: usize) -> Result<u64> {
        let freed: i64 = self.value("hf1_sweep", &[&self.sid, &SLOTS, &limit(max)])?;
        Ok(freed.unsigned_abs())
    }

    fn staged(&self, max: usize) -> Result<Vec<Staged>> {
        let answer = self.call("hf1_staged", &[&self.sid, &limit(max)])?;
        let staged = answer.iter().map(|row| {
            let (generation, content) = rows::body(row)?;
            Ok(Staged {
                ino: Ino(rows::count(row, "ino")?),
                generation,
                content,
            })
        });
        staged.collect()
    }

    fn deletable(&self, listed: &[u64], max: usize) -> Result<Vec<u64>> {
        let listed: Vec<i64> = listed.iter().copied().map(number).collect();
        let found: Vec<i64> = self.value("hf1_deletable", &[&self.sid, &listed, &limit(max)])?;
        Ok(found.into_iter().map(i64::unsigned_abs).collect())
    }

    fn deleted(&self, objects: &[u64]) -> Result<()> {
        let objects: Vec<i64> = objects.iter().copied().map(number).collect();
        let params: Params<'_> = &[&self.sid, &SLOTS, &objects];
        self.call("hf1_deleted", params).map(drop)
    }

    fn trips(&self) -> BTreeMap<String, u64> {
        let mut trips = BTreeMap::new();
        for (text, count) in self.connector.sent() {
            let called = text
                .split_once("hf1_")
                .and_then(|(_, rest)| rest.split_once('('));
            if let Some((function, _)) = called {
                *trips.entry(function.to_owned()).or_default() += count;
            }
        }
        trips
    }

    fn check(&self, repair: bool) -> Result<Vec<String>> {
        // All is read in one state. A repair locks the tables instead, to see the last one.
        let begin = match repair {
            true => "BEGIN",
            false => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        };
        let text = format!("SELECT * FROM {}.hf1_check($1)", self.schema);
        let checked = async {
            let client = self.connector.connect().await?;
            client.batch_execute(begin).await?;
            let rows = client.query(&text, &[&repair]).await?;
            client.batch_execute("COMMIT").await?;
            rows.iter()
                .map(|row| row.try_get(0))
                .collect::<std::result::Result<Vec<_>, _>>()
        };
        // A check takes as long as the tables are large.
        self.runtime
            .wait(checked)
            .map_err(|error: tokio_postgres::Error| {
                tracing::error!("the check was not finished: {}", chain(&error));
                Errno::EIO
            })
    }
}
