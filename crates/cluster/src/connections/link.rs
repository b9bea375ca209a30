//! A connection that is made anew when it is lost.

use super::connector::{Connector, Notified};
use super::errors::{Trouble, chain};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::sleep;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

/// The first and the longest wait between two attempts to connect.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(1600));
/// So often a transaction is repeated that was rolled back because of another.
const REPEATS: u32 = 10;

/// A connection.
pub(crate) struct Link {
    connector: Arc<Connector>,
    notified: Option<Notified>,
    live: Mutex<Option<Arc<Live>>>,
}

/// A connection of the server, with the statements that were prepared on it.
struct Live {
    client: Client,
    statements: Mutex<HashMap<String, Statement>>,
}

impl Link {
    /// Makes a link, which connects when it is used.
    pub(crate) fn new(connector: Arc<Connector>) -> Self {
        Self {
            connector,
            notified: None,
            live: Mutex::new(None),
        }
    }

    /// Makes a link that [listens](Connector::listen).
    pub(crate) fn listening(connector: Arc<Connector>, notified: Notified) -> Self {
        Self {
            notified: Some(notified),
            ..Self::new(connector)
        }
    }

    async fn connect(&self) -> Result<Client, tokio_postgres::Error> {
        match &self.notified {
            Some(notified) => self.connector.listen(notified).await,
            None => self.connector.connect().await,
        }
    }

    /// The connection. It is made anew until that succeeds: callers set a limit of time.
    async fn live(&self) -> Arc<Live> {
        let mut live = self.live.lock().await;
        if let Some(live) = live.as_ref().filter(|live| !live.client.is_closed()) {
            return Arc::clone(live);
        }
        let mut backoff = BACKOFF.0;
        loop {
            match self.connect().await {
                Ok(client) => {
                    let made = Arc::new(Live {
                        client,
                        statements: Mutex::default(),
                    });
                    *live = Some(Arc::clone(&made));
                    return made;
                }
                // The first failure may be that of a server that restarts.
                Err(error) if backoff == BACKOFF.1 / 4 => {
                    tracing::warn!("no connection to the database: {}", chain(&error));
                }
                Err(error) => tracing::debug!("no connection to the database: {}", chain(&error)),
            }
            sleep(backoff).await;
            backoff = (backoff * 2).min(BACKOFF.1);
        }
    }

    /// Drops a connection that is of no use.
    async fn give_up(&self, lost: &Arc<Live>) {
        let mut live = self.live.lock().await;
        if live.as_ref().is_some_and(|live| Arc::ptr_eq(live, lost)) {
            *live = None;
        }
    }

    /// Sends a statement once, over a connection that is made first if need be.
    ///
    /// # Errors
    /// After [`Trouble::Lost`], the outcome is unknown.
    pub(crate) async fn send(
        &self,
        text: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Trouble> {
        let live = self.live().await;
        let sent = async {
            let statement = live.statement(text).await?;
            self.connector.note_sent(text);
            live.client.query(&statement, params).await
        };
        match sent.await {
            Ok(rows) => Ok(rows),
            Err(error) => {
                let trouble = Trouble::of(&error);
                if trouble == Trouble::Lost {
                    self.give_up(&live).await;
                    sleep(BACKOFF.0).await;
                }
                Err(trouble)
            }
        }
    }

    /// Sends a statement that may be performed more than once, until it is answered.
    ///
    /// # Errors
    /// Never [`Trouble::Lost`].
    pub(crate) async fn ask(
        &self,
        text: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Trouble> {
        let mut repeats = 0;
        loop {
            match self.send(text, params).await {
                Err(Trouble::Lost) => {}
                Err(Trouble::Repeat) if repeats < REPEATS => repeats += 1,
                answer => return answer,
            }
        }
    }
}

impl Live {
    async fn statement(&self, text: &str) -> Result<Statement, tokio_postgres::Error> {
        let mut statements = self.statements.lock().await;
        if let Some(statement) = statements.get(text) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(text).await?;
        statements.insert(text.to_owned(), statement.clone());
        Ok(statement)
    }
}
