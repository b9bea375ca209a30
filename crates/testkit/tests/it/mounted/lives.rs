//! Five operations on a mount of a volume pass the functions that `docs/internals.md` names, in its
//! order.
//!
//! Every function of substance between the front end and the device has a span (`hop!`). Spans that
//! are open at once are the *hops* from the front end to a function. An operation has as many hops
//! as the longest of these chains has spans.

use holdfast_core::{FileSystem, Options};
use holdfast_device::{BlockDevice, FileDevice};
use holdfast_fuse::{Config, TransportChoice, serve};
use holdfast_testkit::{alone::alone, mount};
use holdfast_volume::{FormatOptions, OpenOptions, VolumeStore, format};
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt::Debug;
use std::fs::{self, File};
use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber, subscriber};

/// More than a directory has that is in memory as a whole.
const FILES: usize = 5000;

/// Spans in the order of their beginning: the depth, and the function.
type Spans = Vec<(usize, String)>;

thread_local! {
    /// How many spans of this thread are open, and all since none was.
    static OPEN: RefCell<(usize, Spans)> = RefCell::default();
}

/// The spans of the requests that were answered.
static ANSWERED: Mutex<Vec<Spans>> = Mutex::new(Vec::new());

struct Recorder;

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.name() == "hop"
    }

    /// A span is entered where it is made.
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut Entering);
        Id::from_u64(1)
    }

    fn exit(&self, _: &Id) {
        OPEN.with_borrow_mut(|(depth, spans)| {
            *depth -= 1;
            if *depth == 0 {
                ANSWERED.lock().unwrap().push(std::mem::take(spans));
            }
        });
    }

    fn enter(&self, _: &Id) {}
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
}

struct Entering;

impl Visit for Entering {
    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}

    /// `path`: `…::<impl Trait for Type>::function::here` or alike.
    fn record_str(&mut self, _: &Field, path: &str) {
        let function = path.rsplit("::").nth(1).unwrap();
        let (_, behind) = path.rsplit_once(" for ").unwrap_or(("", path));
        let mut words = behind.split(|c: char| !c.is_alphanumeric());
        let name = match words.find(|word| word.starts_with(char::is_uppercase)) {
            Some(owner) => format!("{owner}::{function}"),
            None => function.to_owned(),
        };
        OPEN.with_borrow_mut(|(depth, spans)| {
            *depth += 1;
            spans.push((*depth, name));
        });
    }
}

/// The functions in the numbered steps of a section, each once.
fn steps(page: &str, section: &str) -> Vec<String> {
    let heading = format!("## {section}");
    let lines = page.lines().skip_while(|line| *line != heading).skip(1);
    let lines = lines.take_while(|line| !line.starts_with("## "));
    let steps = lines.filter(|line| line.starts_with("   ") || line.contains(". *"));
    let quoted = steps.flat_map(|line| line.split('`').skip(1).step_by(2));
    let names = quoted.filter_map(|quoted| quoted.strip_suffix("()"));
    let mut seen = HashSet::new();
    let names = names.filter(|name| seen.insert(*name));
    names.map(str::to_owned).collect()
}

/// Performs an operation. Its request is the first that passes `mark`. Compares the spans with the
/// functions that the page tells of, and their depth with `most`.
fn lives(section: &str, (mark, most): (&str, usize), told: &[String], operation: impl FnOnce()) {
    ANSWERED.lock().unwrap().clear();
    operation();
    let mut answered = std::mem::take(&mut *ANSWERED.lock().unwrap()).into_iter();
    let is_marked = |spans: &Spans| spans.iter().any(|(_, name)| name == mark);
    let mut spans = answered.find(is_marked).expect(mark);
    let first = spans.iter().position(|(_, name)| *name == told[0]);
    spans.drain(..first.expect(&told[0]));
    let above = spans[0].0;
    let behind = spans.iter().skip(1).position(|span| span.0 <= above);
    spans.truncate(behind.map_or(spans.len(), |behind| behind + 1));
    let hops = spans.iter().map(|span| span.0 - above + 1).max();
    println!("{section}: {} hops", hops.unwrap());
    let mut passed = Vec::new();
    for (depth, name) in spans {
        if !passed.contains(&name) {
            passed.push(name);
            let (number, name) = (passed.len(), &passed[passed.len() - 1]);
            println!("{number:>4} {:1$}{name}", "", depth - above);
        }
    }
    let (passed, told) = (passed.join("\n"), told.join("\n"));
    assert!(
        passed == told,
        "{section} passes:\n{passed}\n\nThe page tells:\n{told}"
    );
    assert!(hops <= Some(most), "{section}: too many hops");
}

#[test]
fn five_operations_pass_the_functions_that_the_page_tells_of() {
    // The spans of all threads are recorded.
    let name = "mounted::lives::five_operations_pass_the_functions_that_the_page_tells_of";
    if !alone(name) {
        return;
    }
    let Some(config) = mount::config(TransportChoice::Dev) else {
        return;
    };
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/internals.md");
    let page = fs::read_to_string(page).unwrap();
    let request = |section: &str| {
        let mut request = steps(&page, "A request");
        let reply = request.pop().into_iter().collect();
        [request, steps(&page, section), reply].concat()
    };
    let dir = tempfile::tempdir().unwrap();
    let image = FileDevice::create(&dir.path().join("image"), 64 << 20).unwrap();
    let image: Arc<dyn BlockDevice> = Arc::new(image);
    format(&image, &FormatOptions::default()).unwrap();
    let no_commits = OpenOptions {
        commit_every: None,
        ..OpenOptions::DEFAULT
    };
    let store = Arc::new(VolumeStore::open(image, &no_commits).unwrap());
    let core = FileSystem::new(Arc::clone(&store) as _, Options::default()).unwrap();
    // The kernel asks for each name anew.
    let config = Config {
        entry_timeout: Duration::ZERO,
        ..config
    };
    let mount_point = dir.path().join("mount");
    fs::create_dir(&mount_point).unwrap();
    let session = serve::mount(&core, &mount_point, &config, None).unwrap();
    let path = |number: usize| mount_point.join(format!("large/{number}"));
    fs::create_dir(mount_point.join("large")).unwrap();
    (0..FILES).for_each(|number| drop(File::create(path(number)).unwrap()));
    let stat = |number| assert!(path(number).exists());
    store.checkpoint().unwrap();
    core.drop_caches().unwrap();
    stat(0);
    store.drop_nodes();
    subscriber::set_global_default(Recorder).unwrap();

    let told = request("A lookup");
    lives("A lookup", ("ask_store", 20), &told, || stat(FILES / 2));
    let mut file = None;
    let told = request("A create");
    lives("A create", ("create_entry", 25), &told, || {
        file = Some(File::create_new(mount_point.join("new")).unwrap());
    });
    let mut file = file.unwrap();
    let told = request("A write");
    lives("A write", ("write_file", 20), &told, || {
        file.write_all(&[7; 4096]).unwrap();
    });
    let told = request("An fsync");
    lives("An fsync", ("FileSystem::fsync", 20), &told, || {
        file.sync_all().unwrap();
    });
    let told = steps(&page, "An eviction");
    lives("An eviction", ("unload_inode", 10), &told, || {
        core.set_options(Options {
            memory: Some(1 << 18),
            ..Options::default()
        });
        (0..FILES).for_each(stat);
    });
    drop(file);
    mount::unmount(&session);
    session.wait();
}
