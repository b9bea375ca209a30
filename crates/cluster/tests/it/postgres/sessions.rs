//! Sessions: what others are told, how a session is fenced, and what is freed when.

use super::build::{chmod, directory, make, make_unnamed};
use super::server::Server;
use holdfast_cluster::meta::{Beat, Message, Settings};
use holdfast_cluster::postgres::{ConnectError, MkfsOptions, connect, mkfs};
use holdfast_types::{Errno, FileType, Ino};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

#[test]
fn a_session_that_was_fenced_changes_nothing_any_more() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    server.mkfs("holdfast", Settings::default());
    let (first, second) = (server.session("holdfast"), server.session("holdfast"));
    let dir = directory(&*first, "dir");
    let clients = second.clients().unwrap();
    assert_eq!(clients.len(), 2);
    assert_eq!(clients[0].host, "here");
    let other = clients.iter().find(|it| !it.own).unwrap();
    assert_eq!(second.fence(other.session), Ok(()));
    assert_eq!(second.fence(other.session), Err(Errno::ENOENT));
    assert_eq!(first.perform(chmod(dir, 0o700)), Err(Errno::ESTALE));
    assert_eq!(first.beat(&Beat::default()), Err(Errno::ESTALE));
    assert_eq!(first.load(&[dir], &[]), Err(Errno::ESTALE));
    assert_eq!(first.deal(1), Err(Errno::ESTALE));
    assert_eq!(second.load(&[dir], &[]).unwrap()[0].record.perm, 0o644);
    assert_eq!(server.count("SELECT count(*) FROM holdfast.slot"), 5);
    // What it added to the space in use stays counted.
    assert_eq!(second.usage().unwrap().inodes, 2);
    assert_eq!(second.check(false), Ok(vec![]));
    assert_eq!(second.end(), Ok(()));
    assert_eq!(second.perform(chmod(dir, 0o700)), Err(Errno::ESTALE));
    assert_eq!(server.count("SELECT count(*) FROM holdfast.session"), 0);
}

#[test]
fn silent_sessions_are_ended_by_the_others() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    server.mkfs("holdfast", Settings::default());
    let (first, second) = (server.session("holdfast"), server.session("holdfast"));
    let dir = directory(&*first, "dir");
    let ino = first.deal(1).unwrap().start;
    first.perform(make_unnamed(dir, ino)).unwrap();
    server.sql("UPDATE holdfast.session SET heard = heard - 61000000000");
    let beat = second.beat(&Beat::default()).unwrap();
    assert_eq!(beat.gone, [Ino(ino)]);
    let looked_at = Beat {
        looked_at: beat.gone_upto,
        ..Beat::default()
    };
    second.beat(&looked_at).unwrap();
    assert_eq!(second.sweep(10), Ok(1));
    assert_eq!(first.perform(chmod(dir, 0o700)), Err(Errno::ESTALE));
    assert_eq!(second.clients().unwrap().len(), 1);
    assert_eq!(second.usage().unwrap().inodes, 2);
}

#[test]
fn a_session_with_messages_is_notified() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    server.mkfs("holdfast", Settings::default());
    let (reader, writer) = (server.session("holdfast"), server.session("holdfast"));
    let (sender, notifications) = channel();
    reader.on_message(Arc::new(move || {
        // The test may have ended.
        let _ = sender.send(());
    }));
    let dir = directory(&*writer, "dir");
    let mut numbers = writer.deal(1000).unwrap();
    let mut change = || {
        let number = numbers.next().unwrap();
        let name = number.to_string();
        writer
            .perform(make(dir, &name, number, FileType::Regular))
            .unwrap();
        notifications
            .recv_timeout(Duration::from_millis(200))
            .is_ok()
    };
    assert!(!change(), "no session is interested");
    reader.look_up(dir, &[b"a"], &[dir]).unwrap();
    // The first changes may come before the reader listens.
    assert!((0..300).any(|_| change()));
    assert!(!reader.beat(&Beat::default()).unwrap().messages.is_empty());
}

#[test]
fn a_silent_reader_loses_its_interest_and_learns_it() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    server.mkfs("holdfast", Settings::default());
    let (reader, writer) = (server.session("holdfast"), server.session("holdfast"));
    let dir = directory(&*writer, "dir");
    let epoch = reader.beat(&Beat::default()).unwrap().epoch;
    reader.look_up(dir, &[b"a"], &[dir]).unwrap();
    let first = writer.deal(100).unwrap().start;
    writer
        .perform(make(dir, "a", first, FileType::Regular))
        .unwrap();
    let beat = reader.beat(&Beat::default()).unwrap();
    assert_eq!(beat.epoch, epoch);
    let messages: Vec<&Message> = beat.messages.iter().map(|(_, it)| it).collect();
    assert_eq!(messages, [&Message::Entry(dir, Box::from(*b"a"))]);
    // Without an answer, the next beat gets the same messages.
    let repeated = reader.beat(&Beat::default()).unwrap();
    assert_eq!(repeated.messages.len(), 1);
    let taken = Beat {
        taken: repeated.messages[0].0,
        ..Beat::default()
    };
    assert_eq!(reader.beat(&taken).unwrap().messages, []);

    server.sql("UPDATE holdfast.session SET heard = heard - 11000000000 WHERE sid = 2");
    for (at, ino) in (first + 1..first + 50).enumerate() {
        let request = make(dir, &format!("b{at}"), ino, FileType::Regular);
        writer.perform(request).unwrap();
    }
    assert_eq!(server.count("SELECT count(*) FROM holdfast.inbox"), 0);
    let beat = reader.beat(&taken).unwrap();
    assert_ne!(beat.epoch, epoch);
    assert_eq!(server.count("SELECT count(*) FROM holdfast.interest"), 0);
}

#[test]
fn interest_is_gone_after_a_crash_and_every_session_learns_it() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    server.mkfs("holdfast", Settings::default());
    let meta = server.session("holdfast");
    meta.load(&[Ino::ROOT], &[Ino::ROOT]).unwrap();
    let epoch = meta.beat(&Beat::default()).unwrap().epoch;
    assert_eq!(meta.beat(&Beat::default()).unwrap().epoch, epoch);
    server.stop("immediate");
    server.restart();
    let after = meta.beat(&Beat::default()).unwrap().epoch;
    assert_ne!(after.0, epoch.0);
    assert_eq!(server.count("SELECT count(*) FROM holdfast.interest"), 0);
}

#[test]
fn errors_name_the_remedy() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let config = |schema: &str| server.config(schema, server.port);
    let missing = connect(config("nothing")).err().unwrap();
    assert!(missing.to_string().contains("holdfast mkfs"), "{missing}");
    server.mkfs("holdfast", Settings::default());
    let exists = mkfs(&config("holdfast"), &MkfsOptions::default()).unwrap_err();
    assert!(matches!(exists, ConnectError::Exists { .. }), "{exists}");
    server.sql("CREATE ROLE guest LOGIN");
    let mut guest = config("holdfast");
    guest.connection.user("guest");
    let forbidden = connect(guest.clone()).err().unwrap();
    let remedy = r#"GRANT USAGE ON SCHEMA "holdfast" TO "guest""#;
    assert!(forbidden.to_string().contains(remedy), "{forbidden}");
    server.sql(remedy);
    let meta = connect(guest.clone()).unwrap();
    let dir = directory(&*meta, "of a guest");
    assert!(meta.perform(chmod(dir, 0o700)).is_ok());
    assert_eq!(meta.check(false), Ok(vec![]));
    // It may call what mounts call, and no more.
    let port = server.port;
    let direct = format!("host=127.0.0.1 port={port} user=guest dbname=postgres");
    let direct: tokio_postgres::Config = direct.parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (client, connection) = direct.connect(tokio_postgres::NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        for text in [
            "SELECT * FROM holdfast.node",
            "DELETE FROM holdfast.slot",
            "SELECT holdfast.end_session(2)",
        ] {
            let error = client.batch_execute(text).await.unwrap_err();
            let code = error.code().map(tokio_postgres::error::SqlState::code);
            assert_eq!(code, Some("42501"), "{text}");
        }
        drop(client);
        connection.await.unwrap().unwrap();
    });
    "other".clone_into(&mut guest.schema);
    let forbidden = mkfs(&guest, &MkfsOptions::default()).unwrap_err();
    assert!(
        forbidden.to_string().contains("GRANT CREATE ON DATABASE"),
        "{forbidden}"
    );
    server.sql("UPDATE holdfast.volume SET format = 2");
    let newer = connect(config("holdfast")).err().unwrap();
    assert!(
        matches!(newer, ConnectError::Newer { format: 2, .. }),
        "{newer}"
    );
}
