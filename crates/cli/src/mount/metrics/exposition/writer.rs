//! How metrics are written: one, or a family of them with labels.

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;
use std::time::Duration;

/// Labels, with their values as they may stand in the text.
pub(super) type Labels<'l> = Vec<(&'l str, String)>;

pub(super) fn label<'l>(name: &'l str, value: &str) -> Labels<'l> {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
    vec![(name, escaped.replace('\n', "\\n"))]
}

/// Writes families of metrics, one after the other.
pub(super) struct Writer<'e, 'd>(pub(super) &'e mut DescriptorEncoder<'d>);

impl Writer<'_, '_> {
    pub(super) fn one(
        &mut self,
        name: &str,
        help: &str,
        metric: &impl EncodeMetric,
    ) -> fmt::Result {
        let kind = metric.metric_type();
        metric.encode(self.0.encode_descriptor(name, help, None, kind)?)
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.one(name, help, &gauge(value))
    }

    pub(super) fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.one(name, help, &ConstCounter::new(value))
    }

    pub(super) fn seconds(&mut self, name: &str, help: &str, nanoseconds: u64) -> fmt::Result {
        self.one(name, help, &seconds(nanoseconds))
    }

    /// One metric for each set of labels; nothing, if there is none.
    pub(super) fn family<'l, M: EncodeMetric>(
        &mut self,
        (name, help): (&str, &str),
        members: impl IntoIterator<Item = (Labels<'l>, M)>,
    ) -> fmt::Result {
        let mut members = members.into_iter().peekable();
        let Some((_, first)) = members.peek() else {
            return Ok(());
        };
        let kind = first.metric_type();
        let mut to = self.0.encode_descriptor(name, help, None, kind)?;
        for (labels, metric) in members {
            metric.encode(to.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

pub(super) fn gauge(value: u64) -> ConstGauge<i64> {
    ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX))
}

pub(super) fn seconds(nanoseconds: u64) -> ConstCounter<f64> {
    ConstCounter::new(Duration::from_nanos(nanoseconds).as_secs_f64())
}
