//! Clients are killed: what was answered is there, and the others end the session.

use super::build::{directory, make, remove};
use super::server::Server;
use holdfast_cluster::meta::{Beat, Settings};
use holdfast_testkit::effort;
use holdfast_types::{FileType, Ino};
use std::collections::BTreeSet;
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

const THREADS: u64 = 8;
const PORT: &str = "HOLDFAST_TEST_PORT";
const DIR: &str = "HOLDFAST_TEST_DIR";

/// A client that says what was answered, in a process of its own.
#[test]
#[ignore = "started by the test below"]
fn client() {
    let number = |name| env::var(name).unwrap().parse::<u64>().unwrap();
    let dir = Ino(number(DIR));
    let config = Server::config_at("holdfast", number(PORT) as u16);
    let meta = holdfast_cluster::postgres::connect(config).unwrap();
    let say = |word: &str, name: u64| {
        let line = format!("{word} {name}\n");
        std::io::stdout().write_all(line.as_bytes()).unwrap();
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for ino in meta.deal(1 << 20).unwrap() {
                    let name = ino.to_string();
                    meta.perform(make(dir, &name, ino, FileType::Regular))
                        .unwrap();
                    say("made", ino);
                    if ino.is_multiple_of(3) {
                        say("removes", ino);
                        meta.perform(remove(dir, &name)).unwrap();
                        say("removed", ino);
                    }
                }
            });
        }
    });
}

/// Runs a client in this directory, and kills it after a number of answers. Returns the names that
/// are there, and those that may be.
fn killed(server: &Server, dir: Ino, answers: usize) -> (BTreeSet<u64>, BTreeSet<u64>) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "postgres::killed::client",
            "--ignored",
            "--nocapture",
        ])
        .env(PORT, server.port.to_string())
        .env(DIR, dir.0.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut there, mut open) = (BTreeSet::new(), BTreeSet::new());
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut count = 0;
    for line in lines.map_while(Result::ok) {
        let Some((word, name)) = line.split_once(' ') else {
            continue;
        };
        let Ok(name) = name.parse::<u64>() else {
            continue;
        };
        match word {
            "made" => drop(there.insert(name)),
            "removes" => {
                there.remove(&name);
                open.insert(name);
            }
            "removed" => drop(open.remove(&name)),
            _ => continue,
        }
        count += 1;
        if count == answers {
            child.kill().unwrap();
        }
    }
    assert!(count >= answers, "the client ended by itself");
    child.wait().unwrap();
    (there, open)
}

#[test]
fn what_a_killed_client_was_answered_is_there() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    server.mkfs("holdfast", Settings::default());
    let meta = server.session("holdfast");
    for round in 0..effort().of(4, 200) {
        let dir = directory(&*meta, &format!("round {round}"));
        let (there, open) = killed(&server, dir, 50 + 37 * round);
        // The end of the session waits for what its server processes still do.
        let dead = meta.clients().unwrap().into_iter().find(|it| !it.own);
        meta.fence(dead.expect("its session is there").session)
            .unwrap();
        let names = meta.read_names(dir, 0, usize::MAX, &[]).unwrap();
        let names: BTreeSet<u64> = names.iter().map(|it| it.ino.0).collect();
        let lost: Vec<_> = there.difference(&names).collect();
        assert!(lost.is_empty(), "answered, and not there: {lost:?}");
        let unanswered = names.difference(&there).filter(|name| !open.contains(name));
        let unanswered = unanswered.count() as u64;
        assert!(
            unanswered <= THREADS,
            "{unanswered} changes without an answer"
        );
        assert_eq!(meta.check(false), Ok(vec![]));
    }
    let mut looked_at = 0;
    for _ in 0..3 {
        let beat = Beat {
            looked_at,
            ..Beat::default()
        };
        looked_at = meta.beat(&beat).unwrap().gone_upto;
    }
    while meta.sweep(1000).unwrap() > 0 {}
    assert_eq!(server.count("SELECT count(*) FROM holdfast.gone"), 0);
    assert_eq!(server.count("SELECT count(*) FROM holdfast.slot"), 5);
}
