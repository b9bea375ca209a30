use super::Session;
use crate::content::{FileOptions, Files};
use crate::memory::{Database, MemoryObjects};
use crate::meta::{Beat, Meta, NewInode, Request, Settings};
use crate::numbers::Numbers;
use holdfast_core::store::{Changes, Failure};
use holdfast_types::{Errno, FileType, Ino};
use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// What the core was notified of, and the inodes that it uses.
#[derive(Default)]
struct Notified(Mutex<Vec<String>>, Mutex<Vec<Ino>>);

impl Changes for Notified {
    fn inode(&self, ino: Ino, content: bool) {
        self.0.lock().push(format!("inode {ino} {content}"));
    }

    fn entry(&self, dir: Ino, name: &[u8]) {
        self.0
            .lock()
            .push(format!("entry {dir} {}", name.escape_ascii()));
    }

    fn all(&self) {
        self.0.lock().push("all".to_owned());
    }

    fn knows(&self, ino: Ino) -> bool {
        self.1.lock().contains(&ino)
    }

    fn lost(&self, ino: Ino, reason: Errno) {
        self.0.lock().push(format!("lost {ino} {reason}"));
    }
}

/// A client, and another session.
struct Client {
    database: Arc<Database>,
    other: Arc<dyn Meta>,
    meta: Arc<dyn Meta>,
    failure: Arc<Failure>,
    notified: Arc<Notified>,
    session: Session,
}

impl Client {
    fn new() -> Self {
        let database = Database::new(Settings::default());
        let (other, meta) = (database.session(), database.session());
        let numbers = Numbers::new(Arc::clone(&meta));
        let (objects, options) = (MemoryObjects::new(), FileOptions::default());
        let of = (Arc::clone(&meta), Arc::clone(&numbers));
        let files = Files::new(of.0, objects, of.1, options).unwrap();
        let failure = Arc::<Failure>::default();
        let shared = Arc::clone(&failure);
        let session = Session::start(Arc::clone(&meta), files, numbers, shared).unwrap();
        let notified = Arc::<Notified>::default();
        let changes: Arc<dyn Changes> = notified.clone();
        session.attach(Arc::downgrade(&changes) as Weak<dyn Changes>);
        session.beat().unwrap();
        notified.0.lock().clear();
        Self {
            database,
            other,
            meta,
            failure,
            notified,
            session,
        }
    }

    fn notified(&self) -> Vec<String> {
        self.session.beat().unwrap();
        std::mem::take(&mut *self.notified.0.lock())
    }

    /// The other session makes a file.
    fn make(&self, name: &str) -> Ino {
        let ino = Ino(self.other.deal(1).unwrap().start);
        let new = NewInode::new(ino, FileType::Regular);
        let (dir, name) = (Ino::ROOT, name.as_bytes().into());
        self.other
            .perform(Request::Make { dir, name, new })
            .unwrap();
        ino
    }

    /// The client registers the root directory.
    fn listens(&self) {
        let long_ago = Instant::now().checked_sub(Duration::from_secs(9)).unwrap();
        self.session.topics().uses(Ino::ROOT, long_ago);
        self.session.topics().uses(Ino::ROOT, Instant::now());
        let asked = self
            .session
            .topics()
            .ask(|topics| self.meta.load(&[Ino::ROOT], topics));
        let root = asked.unwrap().remove(0);
        assert!(self.session.covers(&root.record, Instant::now()));
    }
}

#[test]
fn the_core_is_notified_of_changes_in_directories_that_are_used() {
    let client = Client::new();
    client.make("before");
    assert_eq!(client.notified(), [""; 0]);
    client.listens();
    let mark = client.session.mark();
    client.make("after");
    assert_eq!(client.notified(), ["entry 1 after", "inode 1 false"]);
    assert!(client.session.is_news(mark, &[Ino::ROOT]));
    assert_eq!(client.notified(), [""; 0]);
}

#[test]
fn a_restart_of_the_database_invalidates_everything() {
    let client = Client::new();
    client.listens();
    client.database.restart();
    client.make("lost");
    assert_eq!(client.notified(), ["all"]);
    let root = client.meta.load(&[Ino::ROOT], &[]).unwrap().remove(0);
    assert!(!client.session.covers(&root.record, Instant::now()));
    client.listens();
    client.make("seen");
    assert_eq!(client.notified().len(), 2);
}

#[test]
fn the_lease_holds_while_beats_are_answered() {
    let client = Client::new();
    assert!(client.session.lease().holds());
    client.database.set_unreachable(true);
    let end = Instant::now() + Duration::from_secs(30);
    while client.session.lease().holds() {
        assert!(Instant::now() < end, "it holds without beats");
        std::thread::sleep(Duration::from_millis(20));
    }
    client.database.set_unreachable(false);
    client.session.beat().unwrap();
    assert!(client.session.lease().holds());
    assert!(!client.failure.is_latched());
}

#[test]
fn a_fenced_session_latches_the_failure() {
    let client = Client::new();
    let clients = client.meta.clients().unwrap();
    let own = clients.iter().find(|it| it.own).unwrap();
    client.other.fence(own.session).unwrap();
    assert_eq!(client.session.beat(), Err(Errno::ESTALE));
    assert_eq!(client.failure.reason(), Some(Errno::ESTALE));
    assert!(!client.session.lease().holds());
    assert!(client.notified.0.lock().contains(&"all".to_owned()));
}

#[test]
fn an_inode_without_names_is_kept_until_the_core_uses_it_no_more() {
    let client = Client::new();
    let [used, unused] = ["used", "unused"].map(|name| client.make(name));
    client.notified.1.lock().push(used);
    for name in ["used", "unused"] {
        let name = name.as_bytes().into();
        let remove = Request::Remove {
            dir: Ino::ROOT,
            name,
            directory: false,
        };
        client.other.perform(remove).unwrap();
    }
    // The other looks at them, and uses none.
    let looked_at = client.other.beat(&Beat::default()).unwrap().gone_upto;
    let beat = Beat {
        looked_at,
        ..Beat::default()
    };
    client.other.beat(&beat).unwrap();
    let left = || {
        // One beat brings the question, and the next the answer.
        client.session.beat().unwrap();
        client.session.beat().unwrap();
        client.other.sweep(9).unwrap();
        let left = client.other.load(&[used, unused], &[]).unwrap();
        left.iter().map(|node| node.record.ino).collect::<Vec<_>>()
    };
    assert_eq!(left(), [used]);
    assert_eq!(left(), [used]);
    client.notified.1.lock().clear();
    assert_eq!(left(), []);
}

#[test]
fn dropping_a_session_stops_its_thread() {
    let client = Client::new();
    let alive = Arc::downgrade(&client.failure);
    let Client {
        other,
        failure,
        session,
        ..
    } = client;
    drop((session, failure));
    assert_eq!(other.clients().unwrap().len(), 1);
    let end = Instant::now() + Duration::from_secs(30);
    while alive.strong_count() > 0 {
        assert!(Instant::now() < end, "the thread runs still");
        std::thread::sleep(Duration::from_millis(5));
    }
}
