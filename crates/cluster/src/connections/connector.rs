//! Connections are made.

use super::tls::Tls;
use futures_util::stream::{StreamExt, poll_fn};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Makes connections to one database.
pub(crate) struct Connector {
    config: Config,
    tls: Option<MakeRustlsConnect>,
    /// Statements sent so far, by their text.
    sent: Mutex<BTreeMap<String, u64>>,
}

impl Connector {
    /// Completes the configuration: time limits, and a server that can be written.
    ///
    /// # Errors
    /// A sentence about the certificates.
    pub(crate) fn new(config: &Config, tls: &Tls, retry: Duration) -> Result<Self, String> {
        let tls = tls.connector()?;
        let mut config = config.clone();
        config
            .ssl_mode(match tls {
                Some(_) => SslMode::Require,
                None => SslMode::Disable,
            })
            .target_session_attrs(TargetSessionAttrs::ReadWrite)
            .keepalives_idle(Duration::from_secs(5))
            .keepalives_interval(Duration::from_secs(2))
            .keepalives_retries(3);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(retry.clamp(Duration::from_secs(1), Duration::from_secs(5)));
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(Duration::from_secs(10));
        }
        if config.get_application_name().is_none() {
            config.application_name("holdfast");
        }
        Ok(Self {
            config,
            tls,
            sent: Mutex::default(),
        })
    }

    /// The role of its connections.
    pub(crate) fn user(&self) -> &str {
        self.config.get_user().unwrap_or("the default role")
    }

    /// The database, as messages name it.
    pub(crate) fn database(&self) -> &str {
        self.config.get_dbname().unwrap_or(self.user())
    }

    /// A statement is sent.
    pub(super) fn note_sent(&self, text: &str) {
        let mut sent = self.sent.lock();
        match sent.get_mut(text) {
            Some(count) => *count += 1,
            None => drop(sent.insert(text.to_owned(), 1)),
        }
    }

    /// Statements sent so far, by their text.
    pub(crate) fn sent(&self) -> BTreeMap<String, u64> {
        self.sent.lock().clone()
    }

    /// Makes a connection. A task of the runtime carries it until the client is dropped.
    ///
    /// # Errors
    /// Those of the server and the network.
    pub(crate) async fn connect(&self) -> Result<Client, tokio_postgres::Error> {
        self.connect_and_hear(&self.config, None).await
    }

    /// Makes a connection that calls `notified` for each notification, and does not wait for the
    /// disk of the server at a commit.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub(crate) async fn listen(
        &self,
        notified: &Notified,
    ) -> Result<Client, tokio_postgres::Error> {
        let mut config = self.config.clone();
        let options = config.get_options().unwrap_or_default();
        config.options(format!("{options} -c synchronous_commit=off"));
        self.connect_and_hear(&config, Some(Arc::clone(notified)))
            .await
    }

    async fn connect_and_hear(
        &self,
        config: &Config,
        notified: Option<Notified>,
    ) -> Result<Client, tokio_postgres::Error> {
        // An error of the connection reaches the calls that wait for it.
        match &self.tls {
            Some(tls) => {
                let (client, connection) = config.connect(tls.clone()).await?;
                drop(tokio::spawn(drive(connection, notified)));
                Ok(client)
            }
            None => {
                let (client, connection) = config.connect(NoTls).await?;
                drop(tokio::spawn(drive(connection, notified)));
                Ok(client)
            }
        }
    }
}

/// Is called for each notification.
pub(crate) type Notified = Arc<dyn Fn() + Send + Sync>;

/// Drives what a connection sends and receives, until its client is dropped or it is lost.
async fn drive<S, T>(mut connection: Connection<S, T>, notified: Option<Notified>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let mut messages = poll_fn(|context| connection.poll_message(context));
    while let Some(Ok(message)) = messages.next().await {
        if let (AsyncMessage::Notification(_), Some(notified)) = (message, &notified) {
            notified();
        }
    }
}
