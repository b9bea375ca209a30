//! Drawing the rates, cut to the size of the terminal.

use super::rates::{Class, Done, Memory, Rates, Volume};
use crate::info::report::State;
use crate::info::units::{bytes, duration, number, rate, span};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Gauge, Paragraph, Row, Table};
use std::time::Duration;

/// Columns of the table of classes: head and width.
const CLASSES: [(&str, u16); 9] = [
    ("class", 11),
    ("bytes", 10),
    ("share", 5),
    ("hit", 4),
    ("refaults/s", 10),
    ("evicted/s", 9),
    ("promoted/s", 10),
    ("deferred", 8),
    ("busy", 4),
];
/// Columns of the table of requests.
const REQUESTS: [(&str, u16); 3] = [("request", 18), ("per second", 10), ("each", 9)];
/// From this width on, requests are beside the classes.
const WIDE: u16 = 124;
/// From this fraction of the limit on, memory is shown as short.
const SHORT: f64 = 0.95;

/// Draws the rates.
pub(super) fn draw(frame: &mut Frame<'_>, rates: &Rates, interval: Duration) {
    let lines = held(rates);
    let [head, gauge, held, rest, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(lines.len() as u16 + 1),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Line::from(title(rates)).bold(), head);
    match &rates.memory {
        Some(memory) => frame.render_widget(pressure(memory, rates.resident_bytes), gauge),
        None => {
            let resident = format!("{} resident", bytes(rates.resident_bytes));
            frame.render_widget(Line::from(resident), gauge);
        }
    }
    frame.render_widget(Paragraph::new(lines), held);
    let height = match rates.classes.len() as u16 {
        0 => 0,
        classes => classes + 2,
    };
    let [classes, requests] = match rest.width {
        WIDE.. if height > 0 => {
            Layout::horizontal([Constraint::Length(82), Constraint::Min(0)]).areas(rest)
        }
        _ => Layout::vertical([Constraint::Length(height), Constraint::Min(0)]).areas(rest),
    };
    draw_classes(frame, rates, classes);
    draw_requests(frame, rates, requests);
    let keys = format!("q ends; every {} s", interval.as_secs_f64());
    frame.render_widget(Line::from(keys).dim(), foot);
}

fn title(rates: &Rates) -> String {
    let state = match rates.state {
        State::ReadWrite => "read-write",
        State::ReadOnly => "read-only",
        State::Failed => "FAILED",
    };
    format!(
        "{} on {}  {state}, {}, up {}",
        rates.source,
        rates.mount_point,
        rates.transport,
        duration(rates.uptime_seconds)
    )
}

fn pressure(memory: &Memory, resident: u64) -> Gauge<'static> {
    let of = |limit: Option<u64>| match limit {
        Some(limit) => format!(" of {}", bytes(limit)),
        None => String::new(),
    };
    let label = format!(
        "resident {}{}, counted {}{}",
        bytes(resident),
        of(memory.budget_bytes),
        bytes(memory.counted_bytes),
        of(memory.limit_bytes)
    );
    let full = memory.pressure.unwrap_or(0.0);
    let colour = if full < SHORT {
        Color::Green
    } else {
        Color::Yellow
    };
    let gauge = Gauge::default().ratio(full.clamp(0.0, 1.0)).label(label);
    gauge.gauge_style(Style::new().fg(colour))
}

/// Lines of cached objects, and of the volume's activity.
fn held(rates: &Rates) -> Vec<Line<'static>> {
    let mut lines = vec![
        format!(
            "held     {} inodes, {} names, {} in {} pages; the kernel {} more",
            number(rates.inodes),
            number(rates.names),
            bytes(rates.page_bytes),
            number(rates.pages),
            number(rates.kernel_held_inodes)
        ),
        format!(
            "content  {}/s read, {}/s written; ahead {} inodes/s, {} used, {} wasted",
            bytes(rates.read_bytes_per_second as u64),
            bytes(rates.written_bytes_per_second as u64),
            rate(rates.statahead_issued_per_second),
            rate(rates.statahead_used_per_second),
            rate(rates.statahead_wasted_per_second)
        ),
    ];
    lines.extend(rates.volume.iter().flat_map(of_volume));
    lines.into_iter().map(Line::from).collect()
}

fn of_volume(volume: &Volume) -> [String; 4] {
    let waits = format!(
        "waiting  {} pages; writers {} ({} of the time)",
        number(volume.waiting_pages),
        number(volume.waiting_writers),
        percent(volume.writers_wait)
    );
    let journal = format!(
        "journal  {} of {}; commits {}; checkpoints {}",
        bytes(volume.journal_used_bytes),
        bytes(volume.journal_capacity_bytes),
        done(&volume.commits),
        done(&volume.checkpoints)
    );
    let device = format!(
        "device   {}/s read by {}; flushes {}",
        bytes(volume.read_bytes_per_second as u64),
        done(&volume.reads),
        done(&volume.flushes)
    );
    let written = format!(
        "         {}/s written by {}",
        bytes(volume.written_bytes_per_second as u64),
        done(&volume.writes)
    );
    [waits, journal, device, written]
}

fn done(done: &Done) -> String {
    match done.mean_seconds {
        Some(mean) => format!("{}/s of {}", rate(done.per_second), span(nanoseconds(mean))),
        None => format!("{}/s", rate(done.per_second)),
    }
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

fn draw_classes(frame: &mut Frame<'_>, rates: &Rates, area: Rect) {
    let cells = |class: &Class| {
        let shown = |value: Option<f64>| value.map_or(String::new(), rate);
        [
            class.class.clone(),
            bytes(class.bytes),
            percent(class.share),
            class.hit_share.map_or(String::new(), percent),
            shown(class.refaults_per_second),
            shown(class.evicted_per_second),
            shown(class.promoted_per_second),
            class.deferred.map_or(String::new(), number),
            class.busy.map_or(String::new(), percent),
        ]
    };
    draw_table(frame, area, &CLASSES, rates.classes.iter().map(cells));
}

fn draw_requests(frame: &mut Frame<'_>, rates: &Rates, area: Rect) {
    let all = [
        "all".to_owned(),
        rate(rates.requests_per_second),
        String::new(),
    ];
    let each = rates.requests.iter().map(|request| {
        let mean = request.mean_seconds.map(nanoseconds);
        [
            request.operation.clone(),
            rate(request.per_second),
            mean.map_or(String::new(), span),
        ]
    });
    draw_table(frame, area, &REQUESTS, std::iter::once(all).chain(each));
}

/// A table with a left-aligned first column and right-aligned numbers.
fn draw_table<const N: usize>(
    frame: &mut Frame<'_>,
    area: Rect,
    columns: &[(&str, u16); N],
    rows: impl Iterator<Item = [String; N]>,
) {
    let aligned = |(at, text): (usize, String)| {
        let line = Line::from(text);
        Cell::from(if at == 0 { line } else { line.right_aligned() })
    };
    let cells = |texts: [String; N]| texts.into_iter().enumerate().map(aligned);
    let heads = columns.map(|(name, _)| name.to_owned());
    let widths = columns.map(|(_, width)| Constraint::Length(width));
    let table = Table::new(rows.map(|texts| Row::new(cells(texts))), widths)
        .header(Row::new(cells(heads)).bold());
    frame.render_widget(table, area);
}

#[cfg(test)]
mod tests {
    use super::super::rates::tests::report;
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn drawn(rates: &Rates, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let every = Duration::from_secs(1);
        terminal.draw(|frame| draw(frame, rates, every)).unwrap();
        let buffer = terminal.backend().buffer();
        let rows = buffer.content.chunks(usize::from(width));
        let text = |row: &[ratatui::buffer::Cell]| row.iter().map(|cell| cell.symbol()).collect();
        rows.map(text).collect::<Vec<String>>().join("\n")
    }

    fn rates() -> Rates {
        Rates::between(&report(1), &report(3), Duration::from_secs(2))
    }

    #[test]
    fn a_usual_terminal_shows_each_part() {
        let text = drawn(&rates(), 80, 30);
        for part in [
            "/data.hf on /mnt  read-write, io_uring, up 1 min 3 s",
            "resident 90.0 MiB of 128.0 MiB, counted 100 B of 200 B",
            "1,000 inodes, 900 names, 20.0 KiB in 5 pages; the kernel 77 more",
            "32.0 KiB/s read by 8/s of 1.0 µs; flushes 2/s of 1.0 µs",
            "64.0 KiB/s written by 16/s of 1.0 µs",
            "waiting  300 pages; writers 1 (2% of the time)",
            "journal  1.0 MiB of 64.0 MiB; commits 10/s of 2.0 ms",
            "class            bytes share  hit refaults/s evicted/s promoted/s deferred busy",
            "inodes            60 B   60%               4     1.0 k         40       12  50%",
            "nodes             10 B   10%  99%",
            "READ                      300    4.0 µs",
            "q ends; every 1 s",
        ] {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
    }

    #[test]
    fn a_wide_terminal_shows_requests_beside_classes() {
        let text = drawn(&rates(), 140, 20);
        let line = text.lines().find(|line| line.contains("class  "));
        assert!(
            line.is_some_and(|line| line.contains("per second")),
            "{text}"
        );
    }

    #[test]
    fn a_mount_in_memory_has_no_classes() {
        let memory = crate::info::report::Report {
            memory: None,
            volume: None,
            ..report(2)
        };
        let rates = Rates::between(&memory, &memory, Duration::ZERO);
        let text = drawn(&rates, 80, 24);
        assert!(
            !text.contains("class") && !text.contains("journal"),
            "{text}"
        );
        assert!(text.contains("90.0 MiB resident"), "{text}");
    }

    #[test]
    fn every_size_of_terminal_is_drawn() {
        let (full, empty) = (rates(), Rates::default());
        for width in (1..=200).step_by(7).chain([2, 3, 80, 123, 124, 200]) {
            for height in (1..=60).step_by(5).chain([2, 3, 4, 24, 60]) {
                drawn(&full, width, height);
                drawn(&empty, width, height);
            }
        }
    }

    #[test]
    fn numbers_beyond_all_measure_are_drawn() {
        let most = Rates {
            resident_bytes: u64::MAX,
            read_bytes_per_second: f64::MAX,
            requests_per_second: f64::MAX,
            memory: Some(Memory {
                pressure: Some(f64::MAX),
                counted_bytes: u64::MAX,
                ..Memory::default()
            }),
            classes: vec![Class {
                class: "a class of a later version".to_owned(),
                bytes: u64::MAX,
                share: f64::MAX,
                busy: Some(f64::MAX),
                deferred: Some(u64::MAX),
                evicted_per_second: Some(f64::MAX),
                ..Class::default()
            }],
            ..rates()
        };
        drawn(&most, 80, 24);
        drawn(&most, 1, 1);
    }
}
