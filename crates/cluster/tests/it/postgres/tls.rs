//! Encrypted connections.

use super::server::Server;
use holdfast_cluster::meta::Settings;
use holdfast_cluster::postgres::{ConnectError, Tls, TlsMode, connect};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// Gives a server a certificate for `localhost`. Returns its file.
fn certify(server: &Server) -> PathBuf {
    let (cert, key) = (server.dir().join("cert"), server.dir().join("key"));
    let args = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
                -subj /CN=localhost -addext subjectAltName=DNS:localhost \
                -addext basicConstraints=critical,CA:FALSE";
    let made = Command::new("openssl")
        .args(args.split_whitespace())
        .args(["-keyout".as_ref(), key.as_os_str()])
        .args(["-out".as_ref(), cert.as_os_str()])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let owner = fs::metadata(server.log()).unwrap();
    chown(&key, Some(owner.uid()), Some(owner.gid())).unwrap();
    for setting in [
        format!("ssl_cert_file = '{}'", cert.display()),
        format!("ssl_key_file = '{}'", key.display()),
        "ssl = on".to_owned(),
    ] {
        server.sql(&format!("ALTER SYSTEM SET {setting}"));
    }
    server.sql("SELECT pg_reload_conf()");
    cert
}

#[test]
fn certificates_are_checked_as_the_mode_says() {
    if Command::new("openssl").arg("version").output().is_err() {
        return holdfast_testkit::skip::skipped_by_package("openssl is not installed");
    }
    let Some(server) = Server::start(&[]) else {
        return;
    };
    server.mkfs("holdfast", Settings::default());
    let cert = certify(&server);
    let encrypted = |host: &str, mode, root: Option<&PathBuf>| {
        let mut config = server.config("holdfast", server.port);
        let mut connection = tokio_postgres::Config::new();
        connection
            .host(host)
            .port(server.port)
            .user("postgres")
            .dbname("postgres");
        config.connection = connection;
        config.tls = Tls {
            mode,
            root: root.cloned(),
            identity: None,
        };
        let meta = connect(config)?;
        meta.usage().unwrap();
        let all = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl \
                   AND application_name = 'holdfast'";
        assert!(server.count(all) > 0);
        Ok::<_, ConnectError>(())
    };
    let until = Instant::now() + Duration::from_secs(5);
    while let Err(error) = encrypted("localhost", TlsMode::VerifyFull, Some(&cert)) {
        assert!(Instant::now() < until, "{error}");
    }
    encrypted("127.0.0.1", TlsMode::Require, None).unwrap();
    for (host, root) in [("127.0.0.1", Some(&cert)), ("localhost", None)] {
        let error = encrypted(host, TlsMode::VerifyFull, root).unwrap_err();
        assert!(error.to_string().contains("certificate"), "{error}");
    }
}
