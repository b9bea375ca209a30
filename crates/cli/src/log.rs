//! Logging to standard error and, for a daemon without a log file, to the system's log.
//! `HOLDFAST_LOG` has the filter.
//!
//! The system's log is systemd's journal if its socket exists, else the syslog daemon at
//! `/dev/log`. A panic is logged as an error.
//!
//! A unit of systemd has the journal as its standard error. Entries go to the journal's own socket
//! then, because lines of standard error have neither a level nor fields.

use nix::syslog::{Facility, LogFlags, Priority, Severity, openlog, syslog};
use std::{
    backtrace::{Backtrace, BacktraceStatus},
    ffi::OsString,
    io,
    os::unix::ffi::OsStringExt as _,
    panic::{self, PanicHookInfo},
    path::Path,
};
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::{
    EnvFilter, Layer,
    fmt::{self, MakeWriter},
    layer::SubscriberExt as _,
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

/// The environment variable with the filter.
const VARIABLE: &str = "HOLDFAST_LOG";

/// The target of entries that no filter removes: a panic, and the failure of a volume or of the
/// daemon.
pub(crate) const ALWAYS: &str = "holdfast_failure";

/// Systemd's name for the journal's stream: `DEVICE:INODE` of the socket.
const STREAM_VARIABLE: &str = "JOURNAL_STREAM";

/// The mount that entries in the system's log name.
pub(crate) struct Subject<'s> {
    pub(crate) mount_point: &'s Path,
    /// What is mounted.
    pub(crate) source: &'s str,
}

/// Starts logging to standard error and, if `system` is given, to the system's log. If standard
/// error is the journal, each entry goes to the system's log alone. Malformed directives are
/// ignored with a warning.
pub(crate) fn begin(system: Option<&Subject<'_>>) {
    let filter = filter(&std::env::var(VARIABLE).unwrap_or_default());
    let colours = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
    let is_twice = system.is_some() && is_on_the_journal();
    let stderr = (!is_twice).then(|| fmt::layer().with_writer(io::stderr).with_ansi(colours));
    let layers = tracing_subscriber::registry().with(filter).with(stderr);
    // A second call in one process has no effect.
    if layers.with(system.map(system_layer)).try_init().is_ok() {
        panic::set_hook(Box::new(log_panic));
    }
}

fn filter(directives: &str) -> EnvFilter {
    match directives.trim() {
        "" => EnvFilter::new("warn"),
        // Directives for some modules keep the errors of all others, unless they say `off`. That
        // leaves failures.
        directives => EnvFilter::new(format!("error,{directives},{ALWAYS}=error")),
    }
}

/// Is standard error a stream of the journal, as in a unit of systemd?
pub(crate) fn is_on_the_journal() -> bool {
    let Ok(stream) = std::env::var(STREAM_VARIABLE) else {
        return false;
    };
    let status = rustix::fs::fstat(io::stderr());
    status.is_ok_and(|status| stream == format!("{}:{}", status.st_dev, status.st_ino))
}

/// Sends events to the journal or to syslog.
fn system_layer<S>(subject: &Subject<'_>) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let mount_point = subject.mount_point.display().to_string();
    match tracing_journald::layer() {
        Ok(layer) => {
            let fields = [
                ("SYSLOG_FACILITY", "3"),
                ("HOLDFAST_MOUNT_POINT", &mount_point),
                ("HOLDFAST_SOURCE", subject.source),
            ];
            let layer = layer.with_syslog_identifier("holdfast".to_owned());
            Box::new(layer.with_custom_fields(fields))
        }
        Err(_) => Box::new(syslog_layer(Syslog {
            subject: format!("{mount_point} ({}): ", subject.source),
        })),
    }
}

fn syslog_layer<S>(writer: Syslog) -> impl Layer<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    if let Err(error) = openlog(Some(c"holdfast"), LogFlags::LOG_PID, Facility::LOG_DAEMON) {
        tracing::info!(%error, "entries in the system's log have no name");
    }
    // Syslog adds the time and the process.
    fmt::layer()
        .with_writer(writer)
        .with_ansi(false)
        .without_time()
}

/// Writes entries to syslog(3), which connects again when its daemon was restarted.
struct Syslog {
    /// Stands before each entry.
    subject: String,
}

/// One entry, sent as a whole when it is dropped.
struct Entry {
    severity: Severity,
    text: Vec<u8>,
}

impl Syslog {
    fn entry(&self, severity: Severity) -> Entry {
        Entry {
            severity,
            text: self.subject.clone().into_bytes(),
        }
    }
}

impl<'w> MakeWriter<'w> for Syslog {
    type Writer = Entry;

    fn make_writer(&'w self) -> Entry {
        self.entry(Severity::LOG_NOTICE)
    }

    fn make_writer_for(&'w self, metadata: &Metadata<'_>) -> Entry {
        self.entry(severity(*metadata.level()))
    }
}

impl io::Write for Entry {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut text = std::mem::take(&mut self.text);
        // A NUL would end the entry.
        text.retain(|&byte| byte != 0);
        let text = OsString::from_vec(text.trim_ascii_end().to_vec());
        let priority = Priority::new(self.severity, Facility::LOG_DAEMON);
        // A failure of syslog cannot be reported.
        let _ = syslog(priority, &text);
    }
}

fn severity(level: Level) -> Severity {
    match level {
        Level::ERROR => Severity::LOG_ERR,
        Level::WARN => Severity::LOG_WARNING,
        Level::INFO => Severity::LOG_INFO,
        _ => Severity::LOG_DEBUG,
    }
}

/// The hook of panics: an error in the log, with the backtrace if `RUST_BACKTRACE` asks for one.
fn log_panic(info: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("unnamed");
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let message = text
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        tracing::error!(target: ALWAYS, "thread {name} panicked at {place}: {message}\n{backtrace}");
    } else {
        tracing::error!(target: ALWAYS, "thread {name} panicked at {place}: {message}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::sync::Arc;

    #[test]
    fn an_entry_has_its_subject_and_the_severity_of_its_event() {
        let log = Syslog {
            subject: "/mnt (mem:): ".to_owned(),
        };
        let mut entry = log.entry(severity(Level::WARN));
        io::Write::write_all(&mut entry, b"WARN text\n").unwrap();
        assert_eq!(entry.text, b"/mnt (mem:): WARN text\n");
        assert_eq!(entry.severity, Severity::LOG_WARNING);
        assert_eq!(severity(Level::ERROR), Severity::LOG_ERR);
    }

    /// Collects the log in memory.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_panic_is_an_error_in_the_log_whatever_the_filter() {
        let kept = Kept::default();
        let writer = kept.clone();
        let layer = fmt::layer()
            .with_ansi(false)
            .with_writer(move || writer.clone());
        let layers = tracing_subscriber::registry().with(filter("off"));
        tracing::subscriber::with_default(layers.with(layer), || {
            tracing::error!("filtered");
            // Meanwhile, panics of other tests are not printed: their threads have no subscriber.
            let before = panic::take_hook();
            panic::set_hook(Box::new(log_panic));
            let panicked = panic::catch_unwind(|| panic!("a number is odd"));
            panic::set_hook(before);
            assert!(panicked.is_err());
        });
        let text = String::from_utf8(kept.0.lock().clone()).unwrap();
        assert!(
            text.contains("ERROR") && !text.contains("filtered"),
            "{text}"
        );
        assert!(
            text.contains("log.rs") && text.contains("a number is odd"),
            "{text}"
        );
    }
}
