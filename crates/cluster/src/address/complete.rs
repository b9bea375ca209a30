//! An address with all that it leaves open.

use super::environment::Environment;
use super::passfile;
use super::secret::Secret;
use super::url::{Address, AddressError, some};
use crate::ini;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const DEFAULT_PORT: u16 = 5432;
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest file that is read, in bytes.
const FILE_MAX: u64 = 1 << 20;

/// How a connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SslMode {
    /// Not at all.
    Disable,
    /// Encrypted, without a look at the server's certificate.
    Require,
    /// Encrypted, and the server's certificate is valid for its host.
    VerifyFull,
}

/// All that a connection needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complete {
    /// Hosts or folders of sockets, with ports; at least one.
    pub hosts: Vec<(String, u16)>,
    /// The role.
    pub user: String,
    /// The database.
    pub database: String,
    /// The password, if one was found.
    pub password: Option<Secret>,
    /// How it is encrypted.
    pub ssl: SslMode,
    /// The certificates of authorities; `None`: the system's.
    pub root: Option<PathBuf>,
    /// The client's certificate and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// How long one host is tried.
    pub timeout: Duration,
    /// The schema.
    pub file_system: String,
}

impl Address {
    /// Completes the address: by its service, by `PGHOST`, `PGPORT`, `PGUSER`, `PGDATABASE`,
    /// `PGSSLMODE`, `PGSSLROOTCERT`, `PGSSLCERT`, `PGSSLKEY` and `PGCONNECT_TIMEOUT`. The password
    /// is the address's, that of the service, `PGPASSWORD`, or comes from `PGPASSFILE` or
    /// `~/.pgpass`.
    ///
    /// # Errors
    /// A value that is not one, or a file that is named and cannot be read.
    pub fn complete(&self, by: &Environment) -> Result<Complete, AddressError> {
        let service = self.service(by)?;
        let find = |key: &str, variable: &str| {
            let own = self.parameters.get(key).cloned().and_then(some);
            own.or_else(|| service.get(key).cloned().and_then(some))
                .or_else(|| by.text(variable))
        };
        let hosts = self.completed_hosts(&service, by)?;
        let user = self.user.clone().or_else(|| find("user", "PGUSER"));
        let user = user.unwrap_or_else(|| by.user().to_owned());
        let database = self
            .database
            .clone()
            .or_else(|| find("dbname", "PGDATABASE"));
        let database = database.unwrap_or_else(|| user.clone());
        let password = match self.password.clone() {
            Some(password) => Some(password),
            None => match find("password", "PGPASSWORD") {
                Some(password) => Some(Secret::new(password)),
                None => self.password_in_file(by, &hosts, &database, &user)?,
            },
        };
        let path = |key: &str, variable: &str| find(key, variable).map(PathBuf::from);
        let certificate = path("sslcert", "PGSSLCERT").zip(path("sslkey", "PGSSLKEY"));
        Ok(Complete {
            ssl: ssl_mode(find("sslmode", "PGSSLMODE"), &hosts)?,
            root: path("sslrootcert", "PGSSLROOTCERT"),
            certificate,
            timeout: timeout(find("connect_timeout", "PGCONNECT_TIMEOUT"))?,
            file_system: self.file_system.clone(),
            hosts,
            user,
            database,
            password,
        })
    }

    fn completed_hosts(
        &self,
        service: &BTreeMap<String, String>,
        by: &Environment,
    ) -> Result<Vec<(String, u16)>, AddressError> {
        let port = service.get("port").cloned().or_else(|| by.text("PGPORT"));
        let port = match port {
            Some(port) => (port.parse()).map_err(|_| AddressError::Port(port))?,
            None => DEFAULT_PORT,
        };
        if !self.hosts.is_empty() {
            let hosts = self.hosts.iter().cloned();
            return Ok(hosts
                .map(|(host, own)| (host, own.unwrap_or(port)))
                .collect());
        }
        let host = service.get("host").cloned().or_else(|| by.text("PGHOST"));
        let host = host.unwrap_or_else(|| "/var/run/postgresql".into());
        Ok(host
            .split(',')
            .map(|host| (host.to_owned(), port))
            .collect())
    }

    fn service(&self, by: &Environment) -> Result<BTreeMap<String, String>, AddressError> {
        let named = self.parameters.get("service").cloned();
        let Some(name) = named.or_else(|| by.text("PGSERVICE")) else {
            return Ok(BTreeMap::new());
        };
        let own = by
            .path("PGSERVICEFILE")
            .or_else(|| by.in_home(".pg_service.conf"));
        let system = by
            .path("PGSYSCONFDIR")
            .unwrap_or_else(|| "/etc/postgresql-common".into());
        let files = own.into_iter().chain([system.join("pg_service.conf")]);
        for file in files.filter(|file| file.exists()) {
            if let Some(section) = ini::section(&read(&file)?, &name) {
                return Ok(section);
            }
        }
        let missing = format!("no file of services has a section [{name}]: see PGSERVICEFILE");
        Err(AddressError::File(missing))
    }

    fn password_in_file(
        &self,
        by: &Environment,
        hosts: &[(String, u16)],
        database: &str,
        user: &str,
    ) -> Result<Option<Secret>, AddressError> {
        let named = self.parameters.get("passfile").map(PathBuf::from);
        let named = named.or_else(|| by.path("PGPASSFILE"));
        let Some(file) = named.or_else(|| by.in_home(".pgpass")) else {
            return Ok(None);
        };
        let Ok(about) = file.metadata() else {
            return Ok(None);
        };
        if about.mode() & 0o077 != 0 {
            return Err(AddressError::File(format!(
                "{} can be read by others: chmod 600 it",
                file.display()
            )));
        }
        let text = read(&file)?;
        let found = hosts.iter().find_map(|(host, port)| {
            let host = if host.starts_with('/') {
                "localhost"
            } else {
                host
            };
            passfile::password(&text, [host, &port.to_string(), database, user])
        });
        Ok(found.map(Secret::new))
    }
}

fn read(file: &Path) -> Result<String, AddressError> {
    let failed = |why: &dyn std::fmt::Display| {
        AddressError::File(format!("{} cannot be read: {why}", file.display()))
    };
    let about = file.metadata().map_err(|error| failed(&error))?;
    if about.len() > FILE_MAX {
        return Err(failed(&"it is larger than 1 MiB"));
    }
    std::fs::read_to_string(file).map_err(|error| failed(&error))
}

/// The mode that was asked for, else full verification, except on this machine alone.
fn ssl_mode(asked: Option<String>, hosts: &[(String, u16)]) -> Result<SslMode, AddressError> {
    let Some(asked) = asked else {
        let all_local = hosts.iter().all(|(host, _)| is_local(host));
        return Ok(if all_local {
            SslMode::Disable
        } else {
            SslMode::VerifyFull
        });
    };
    match asked.as_str() {
        "disable" => Ok(SslMode::Disable),
        "require" => Ok(SslMode::Require),
        "verify-full" => Ok(SslMode::VerifyFull),
        _ => Err(AddressError::Value(
            "sslmode",
            asked,
            "disable, require, verify-full",
        )),
    }
}

fn is_local(host: &str) -> bool {
    let address: Option<IpAddr> = host.parse().ok();
    host.starts_with('/') || host == "localhost" || address.is_some_and(|it| it.is_loopback())
}

fn timeout(given: Option<String>) -> Result<Duration, AddressError> {
    let Some(given) = given else {
        return Ok(DEFAULT_TIMEOUT);
    };
    match given.parse() {
        Ok(seconds @ 1..=3600) => Ok(Duration::from_secs(seconds)),
        _ => Err(AddressError::Value(
            "connect_timeout",
            given,
            "1 to 3600 seconds",
        )),
    }
}
