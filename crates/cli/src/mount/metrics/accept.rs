//! Choosing between two formats by the `Accept` header.

/// A text format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Prometheus' text format 0.0.4, which every scraper reads.
    Text,
    /// OpenMetrics 1.0.0, for clients that ask for it.
    OpenMetrics,
}

impl Format {
    /// The `Content-Type`.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// The format for these `Accept` headers: OpenMetrics if they name it with at least the weight
    /// of plain text; else plain text.
    pub(super) fn accepted<'h>(headers: impl Iterator<Item = &'h [u8]>) -> Self {
        let (mut openmetrics, mut text) = (0, None);
        for header in headers {
            let header = String::from_utf8_lossy(header);
            for range in header.split(',') {
                let Some(range) = Range::parse(range) else {
                    continue;
                };
                if range.is_openmetrics() {
                    openmetrics = openmetrics.max(range.weight);
                } else if let Some(exactness) = range.text_exactness() {
                    // The most exact range decides; of two that are equal, the heavier one.
                    text = text.max(Some((exactness, range.weight)));
                }
            }
        }
        let text = text.map_or(0, |(_, weight)| weight);
        if openmetrics > 0 && openmetrics >= text {
            Self::OpenMetrics
        } else {
            Self::Text
        }
    }
}

/// One entry of an `Accept` header.
struct Range {
    kind: String,
    version: Option<String>,
    /// Thousandths.
    weight: u32,
}

impl Range {
    /// `None`: its weight is malformed, so the entry is ignored.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let mut range = Self {
            kind: parts.next()?.to_ascii_lowercase(),
            version: None,
            weight: 1000,
        };
        for part in parts {
            let (name, value) = part.split_once('=')?;
            let value = value.trim().trim_matches('"');
            match name.trim().to_ascii_lowercase().as_str() {
                "q" => range.weight = thousandths(value)?,
                "version" => range.version = Some(value.to_owned()),
                _ => {}
            }
        }
        Some(range)
    }

    fn is_openmetrics(&self) -> bool {
        let version = self.version.as_deref();
        self.kind == "application/openmetrics-text" && matches!(version, None | Some("1.0.0"))
    }

    /// How exactly the entry names the text format; `None`: it names another.
    fn text_exactness(&self) -> Option<u8> {
        match self.kind.as_str() {
            "text/plain" => match self.version.as_deref() {
                Some("0.0.4") => Some(3),
                None => Some(2),
                Some(_) => None,
            },
            "text/*" => Some(1),
            "*/*" => Some(0),
            _ => None,
        }
    }
}

/// A weight of `Accept`: 0 to 1.
fn thousandths(text: &str) -> Option<u32> {
    let weight: f64 = text.parse().ok()?;
    // The cast is exact: the value is within 0 and 1000.
    (0.0..=1.0)
        .contains(&weight)
        .then(|| (weight * 1000.0).round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_unless_openmetrics_is_asked_for() {
        use Format::{OpenMetrics, Text};
        for (accept, format) in [
            ("", Text),
            ("*/*", Text),
            ("text/*", Text),
            ("text/html,application/xhtml+xml,*/*;q=0.8", Text),
            ("application/json", Text),
            ("application/openmetrics-text", OpenMetrics),
            (
                " Application/OpenMetrics-Text ; Version=1.0.0 ",
                OpenMetrics,
            ),
            (
                "application/openmetrics-text;version=\"1.0.0\"",
                OpenMetrics,
            ),
            ("application/openmetrics-text;version=0.0.1", Text),
            ("application/openmetrics-text;version=2.0.0", Text),
            ("application/openmetrics-text;q=0", Text),
            ("application/openmetrics-text;q=0,*/*;q=0", Text),
            ("application/openmetrics-text;q=much", Text),
            ("application/openmetrics-text;q=2", Text),
            ("application/openmetrics-text;q=NaN", Text),
            ("application/openmetrics-text;q=0.2,text/plain;q=0.8", Text),
            (
                "application/openmetrics-text;q=0.8,text/plain;q=0.2",
                OpenMetrics,
            ),
            ("text/plain,application/openmetrics-text", OpenMetrics),
            ("application/openmetrics-text;q=0.5,*/*;q=0.9", Text),
            // The more exact range decides for the text.
            (
                "text/plain;q=0.1,*/*,application/openmetrics-text;q=0.5",
                OpenMetrics,
            ),
            (";;;,,=,q=1;q=1", Text),
            // Prometheus 2.42.
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                OpenMetrics,
            ),
            // Prometheus 3.
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                OpenMetrics,
            ),
            // Prometheus 3 with `scrape_protocols: [PrometheusText0.0.4, OpenMetricsText1.0.0]`.
            (
                "text/plain;version=0.0.4;q=0.5,application/openmetrics-text;version=1.0.0;q=0.4,*/*;q=0.2",
                Text,
            ),
            // Prometheus 2.5.
            (
                "application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                Text,
            ),
            // Prometheus 1.
            (
                "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,text/plain;version=0.0.4;q=0.3,*/*;q=0.1",
                Text,
            ),
        ] {
            let accepted = Format::accepted([accept.as_bytes()].into_iter());
            assert_eq!(accepted, format, "{accept}");
        }
        assert_eq!(Format::accepted(std::iter::empty()), Text);
        assert_eq!(
            Format::accepted([&b"\xff\xfe;q=\xff"[..]].into_iter()),
            Text
        );
    }
}
