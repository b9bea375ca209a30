//! Addresses as users write them.

use super::*;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

fn address(text: &str) -> Address {
    Address::parse(text).unwrap()
}

fn nothing() -> Environment {
    Environment::new(|_| None, "me".into())
}

fn variables(pairs: &'static [(&'static str, &'static str)]) -> Environment {
    let find = move |name: &str| pairs.iter().find(|(key, _)| *key == name);
    Environment::new(
        move |name| find(name).map(|(_, value)| OsString::from(value)),
        "me".into(),
    )
}

#[test]
fn an_address_has_hosts_a_database_and_a_file_system() {
    let text =
        "pg://fs:pa%40ss@db1,db2:5433/files?fs=team&bucket=s3://b/home&endpoint=http://[::1]:9";
    let address = address(text);
    assert_eq!(address.file_system(), "team");
    assert_eq!(address.bucket(), Some("s3://b/home"));
    assert_eq!(address.endpoint(), Some("http://[::1]:9"));
    assert_eq!(address.region(), None);
    assert_eq!(address.password().unwrap().reveal(), "pa@ss");
    let complete = address.complete(&nothing()).unwrap();
    assert_eq!(complete.hosts, [("db1".into(), 5432), ("db2".into(), 5433)]);
    assert_eq!(complete.password.unwrap().reveal(), "pa@ss");
    assert_eq!(
        (complete.user.as_str(), complete.database.as_str()),
        ("fs", "files")
    );
    assert_eq!(complete.ssl, SslMode::VerifyFull);
}

#[test]
fn what_is_left_open_has_the_defaults_of_libpq() {
    let complete = address("pg://").complete(&nothing()).unwrap();
    assert_eq!(complete.hosts, [("/var/run/postgresql".into(), 5432)]);
    assert_eq!(
        (complete.user.as_str(), complete.database.as_str()),
        ("me", "me")
    );
    assert_eq!((complete.ssl, complete.password), (SslMode::Disable, None));
    assert_eq!(complete.file_system, "holdfast");
    assert_eq!(complete.timeout, Duration::from_secs(10));
}

#[test]
fn the_environment_fills_what_the_address_leaves_open() {
    let environment = variables(&[
        ("PGHOST", "db"),
        ("PGPORT", "6000"),
        ("PGUSER", "you"),
        ("PGDATABASE", "base"),
        ("PGPASSWORD", "secret"),
        ("PGSSLMODE", "require"),
        ("PGCONNECT_TIMEOUT", "3"),
    ]);
    let complete = address("pg://").complete(&environment).unwrap();
    assert_eq!(complete.hosts, [("db".into(), 6000)]);
    assert_eq!(
        (complete.user.as_str(), complete.database.as_str()),
        ("you", "base")
    );
    assert_eq!(complete.password.unwrap().reveal(), "secret");
    assert_eq!(
        (complete.ssl, complete.timeout),
        (SslMode::Require, Duration::from_secs(3))
    );
    let own = address("pg://a@127.0.0.1:1/b?sslmode=disable")
        .complete(&environment)
        .unwrap();
    assert_eq!(own.hosts, [("127.0.0.1".into(), 1)]);
    assert_eq!((own.user.as_str(), own.database.as_str()), ("a", "b"));
    assert_eq!(own.ssl, SslMode::Disable);
}

#[test]
fn a_password_is_never_shown() {
    for text in ["pg://fs:hidden@db/x", "pg://fs@db/x?password=hidden&fs=a"] {
        let address = address(text);
        let complete = address.complete(&nothing()).unwrap();
        assert_eq!(complete.password.as_ref().unwrap().reveal(), "hidden");
        for shown in [
            address.to_string(),
            format!("{address:?}"),
            format!("{complete:?}"),
        ] {
            assert!(!shown.contains("hidden"), "{shown}");
        }
    }
    assert_eq!(
        address("pg://fs:x@db,[::1]:7/y?fs=a").to_string(),
        "pg://fs@db,[::1]:7/y?fs=a"
    );
}

#[test]
fn what_is_shown_means_the_same() {
    for text in [
        "pg://?fs=holdfast",
        "pg://db/?fs=a",
        "pg://u@a:1,b/d?fs=x_1",
        "pg://u%40x@%2Frun%2Fpg/a%2Fb?fs=a",
    ] {
        let shown = address(text).to_string();
        assert_eq!(address(&shown), address(text));
    }
    let mut other = address("pg://u:word@h/d?sslrootcert=a%26b.crt&sslmode=require&bucket=s3://x");
    other.begin_paths_in(Path::new("/etc/pg"));
    let argument = "pg://u@h/d?fs=holdfast&sslmode=require&sslrootcert=/etc/pg/a%26b.crt";
    assert_eq!(other.argument(), argument);
    let mut passed = address(argument);
    passed.set_password("word".into());
    assert_eq!(
        passed.complete(&nothing()).unwrap(),
        other.complete(&nothing()).unwrap()
    );
}

#[test]
fn a_wrong_address_is_refused_with_what_is_wrong() {
    for (text, part) in [
        ("mysql://a", "pg://"),
        ("pg://a:x/b", "port"),
        ("pg://h:0/b", "port \"0\""),
        ("pg://h/b?bukket=x", "did you mean bucket=?"),
        ("pg://h/b?fs=a&fs=b", "twice"),
        ("pg://h/b?fs=Team", "fs=Team"),
        ("pg://h/b?fs=", "fs="),
        ("pg://h/b?fs=pg_x", "fs=pg_x"),
        ("pg://%ff@h/b", "the user"),
    ] {
        let error = Address::parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    let error = address("pg://h/?sslmode=prefer")
        .complete(&nothing())
        .unwrap_err();
    assert!(error.to_string().contains("verify-full"), "{error}");
    let error = address("pg://h/?service=none")
        .complete(&nothing())
        .unwrap_err();
    assert!(error.to_string().contains("[none]"), "{error}");
}

#[test]
fn files_of_services_and_passwords_are_read() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    let service = "[team]\nhost=db9\nport=7\nuser=u\ndbname=d\n";
    std::fs::write(home.path().join(".pg_service.conf"), service).unwrap();
    let passfile = home.path().join(".pgpass");
    std::fs::write(&passfile, "db9:7:d:u:word\n").unwrap();
    let path = home.path().to_owned();
    let find = move |name: &str| (name == "HOME").then(|| path.clone().into_os_string());
    let environment = Environment::new(find, "me".into());
    let complete = || address("pg://?service=team").complete(&environment);
    std::fs::set_permissions(&passfile, PermissionsExt::from_mode(0o644)).unwrap();
    let error = complete().unwrap_err().to_string();
    assert!(error.contains("chmod 600"), "{error}");
    std::fs::set_permissions(&passfile, PermissionsExt::from_mode(0o600)).unwrap();
    let complete = complete().unwrap();
    assert_eq!(complete.hosts, [("db9".into(), 7)]);
    assert_eq!(complete.password.unwrap().reveal(), "word");
}
