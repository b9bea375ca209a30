//! Writing metrics in one of the two formats.

use super::Format;
use std::fmt::{self, Display, Write};
use std::time::Duration;

/// The type of a family of metrics, and the suffix of the names of its samples.
pub(super) type Kind = (&'static str, &'static str);

pub(super) const GAUGE: Kind = ("gauge", "");
pub(super) const COUNTER: Kind = ("counter", "_total");
pub(super) const INFO: Kind = ("info", "_info");
pub(super) const HISTOGRAM: Kind = ("histogram", "");

/// Writes families of metrics to a text.
pub(super) struct Writer {
    format: Format,
    text: String,
}

impl Writer {
    pub(super) fn new(format: Format) -> Self {
        let text = String::new();
        Self { format, text }
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.family(GAUGE, name, help, [([], value)]);
    }

    pub(super) fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(COUNTER, name, help, [([], value)]);
    }

    /// Writes one sample for each set of labels; nothing if there is none.
    pub(super) fn family<'l, const L: usize>(
        &mut self,
        kind: Kind,
        name: &str,
        help: &str,
        members: impl IntoIterator<Item = ([(&'l str, &'l str); L], impl Display)>,
    ) {
        let mut members = members.into_iter().peekable();
        if members.peek().is_some() {
            self.begin(kind, name, help);
        }
        for (labels, value) in members {
            self.sample(name, kind.1, &labels, value);
        }
    }

    /// Writes the descriptor of a family. The text format 0.0.4 names a family as its samples, and
    /// knows no type `info`.
    pub(super) fn begin(&mut self, kind: Kind, name: &str, help: &str) {
        let (kind, suffix) = match (self.format, kind) {
            (Format::OpenMetrics, (kind, _)) => (kind, ""),
            (Format::Text, ("info", suffix)) => ("gauge", suffix),
            (Format::Text, kind) => kind,
        };
        self.write(format_args!(
            "# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}\n"
        ));
    }

    /// Writes a sample of a family.
    pub(super) fn sample(
        &mut self,
        name: &str,
        suffix: &str,
        labels: &[(&str, &str)],
        value: impl Display,
    ) {
        let labels = labels.iter().map(|(label, value)| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            format!("{label}=\"{}\"", value.replace('\n', "\\n"))
        });
        let labels = labels.collect::<Vec<_>>().join(",");
        match labels.as_str() {
            "" => self.write(format_args!("{name}{suffix} {value}\n")),
            labels => self.write(format_args!("{name}{suffix}{{{labels}}} {value}\n")),
        }
    }

    /// The text; OpenMetrics has an end mark.
    pub(super) fn end(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    fn write(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.text.write_fmt(text);
    }
}

/// Nanoseconds in seconds.
pub(super) fn seconds(nanoseconds: u64) -> f64 {
    Duration::from_nanos(nanoseconds).as_secs_f64()
}
