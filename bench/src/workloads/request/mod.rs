//! `request`: how long a mount takes to answer a client that waits for each call. The client is
//! pinned to a processor or not, alone or beside busy neighbours. The same run measures what it is
//! compared with: two threads on one processor that wake each other in turn.

mod calls;
mod neighbours;
mod ping_pong;

use crate::about::About;
use crate::grid::{aligned, median_of, phases};
use crate::machine::Spent;
use crate::mounts::{self, Holdfast, HoldfastArgs, Mountable, Need, Place};
use crate::process::{self, Process};
use crate::record::Record;
use crate::report::{Report, ReportArgs};
use crate::targets::labels;
use anyhow::{Context, Result, ensure};
use calls::{Client, OPS, Op};
use clap::Args;
use neighbours::Neighbours;
use std::fmt::{self, Write as _};
use std::thread;
use std::time::{Duration, Instant};

const NAME: &str = "request";

/// The phase of the two threads.
const PING_PONG: &str = "ping-pong";

/// Calls between two looks at the clock.
const BATCH: u64 = 200;

/// How long one call takes that waits for a mount, in microseconds and in exchanges of two threads
#[derive(Args, Clone, Debug)]
pub(crate) struct RequestArgs {
    /// What to measure: `mem:`, `hf:IMAGE`, or a rival, as `bench trees` has them
    #[arg(long = "target", value_name = "TARGET", required = true)]
    targets: Vec<Mountable>,
    /// Calls; all if nothing is said
    #[arg(long, value_name = "CALL,…", value_delimiter = ',')]
    ops: Vec<Op>,
    /// Threads that keep processors busy meanwhile
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_value = "0,1,2"
    )]
    neighbours: Vec<usize>,
    /// How long to measure each call, each time
    #[arg(long, value_name = "S", default_value_t = 0.3)]
    seconds: f64,
    /// How often to run it all
    #[arg(long, value_name = "R", default_value_t = 3)]
    rounds: usize,
    #[command(flatten)]
    holdfast: HoldfastArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// How the client runs.
#[derive(Clone, Copy, Debug)]
struct Setting {
    /// The processor that it is kept on.
    pinned: Option<usize>,
    neighbours: usize,
}

impl Setting {
    /// The name of a call's phase in this setting.
    fn phase(self, op: Op) -> String {
        let neighbours = match self.neighbours {
            0 => String::new(),
            count => format!("-busy{count}"),
        };
        let pinned = self.pinned.map_or("", |_| "-pinned");
        format!("{op}{pinned}{neighbours}")
    }
}

/// Runs the workload and prints what came of it.
///
/// # Errors
/// What cannot be made or mounted; the first call that failed; arguments that make no sense.
pub(crate) fn run(args: &RequestArgs) -> Result<()> {
    ensure!(args.rounds > 0, "at least one round is needed");
    ensure!(
        args.seconds > 0.0 && args.seconds < 1e6,
        "no time to measure in"
    );
    let ops = match args.ops.as_slice() {
        [] => OPS.to_vec(),
        ops => ops.to_vec(),
    };
    let ready = mounts::ready(&args.targets, &args.holdfast)?;
    let holdfast = ready.holdfast.as_ref();
    let processors = process::processors()?;
    let first = *processors.first().context("no processor to run on")?;
    let settings: Vec<Setting> = (args.neighbours.iter())
        .flat_map(|&neighbours| [None, Some(first)].map(|pinned| Setting { pinned, neighbours }))
        .collect();
    let labels = labels(&args.targets);
    let mut report = Report::new(&args.report)?;
    let layout = layout(args, holdfast);
    let of_a_target = settings.len() * ops.len() + 1;
    report.begin(
        About::now(layout.clone(), args.rounds),
        args.rounds * labels.len() * of_a_target,
    );
    for round in 1..=args.rounds {
        for (target, label) in args.targets.iter().zip(&labels) {
            let place = Place::make(target, NEED, holdfast, &std::env::temp_dir());
            let place = place.with_context(|| label.clone())?;
            let trial = Trial {
                place: &place,
                label,
                round,
                wanted: Duration::from_secs_f64(args.seconds),
            };
            report.add(trial.ping_pong(first)?)?;
            let measured = trial.measure_all(&settings, &ops, &mut report);
            measured.with_context(|| label.clone())?;
            place.close()?;
        }
    }
    let table = table(report.records(), &labels);
    report.end_with(
        &format!("{NAME}: {layout}, rounds: {}", args.rounds),
        &table,
    );
    report.finish()
}

/// A few files.
const NEED: Need = Need {
    bytes: 64 << 20,
    inodes: 1000,
};

fn layout(args: &RequestArgs, holdfast: Option<&Holdfast>) -> String {
    let options = holdfast.and_then(Holdfast::options);
    let options = options.map_or_else(String::new, |options| format!(", mounted with {options}"));
    format!("{} s for each call{options}", args.seconds)
}

/// What a setting's batches took.
#[derive(Debug, Default)]
struct Used {
    calls: u64,
    time: Duration,
    /// Of the client and of our daemon.
    cpu_seconds: f64,
    /// The daemon's; one more in each batch is the question how many there were.
    requests: Option<u64>,
}

/// One target in one round.
struct Trial<'t> {
    place: &'t Place<'t>,
    label: &'t str,
    round: usize,
    wanted: Duration,
}

impl Trial<'_> {
    fn measure_all(&self, settings: &[Setting], ops: &[Op], report: &mut Report) -> Result<()> {
        for &setting in settings {
            for &op in ops {
                let phase = setting.phase(op);
                report.doing(format!("{}: {phase}, round {}", self.label, self.round));
                report.add(self.measure(setting, op)?)?;
            }
        }
        Ok(())
    }

    fn measure(&self, setting: Setting, op: Op) -> Result<Record> {
        let _neighbours = Neighbours::start(setting.neighbours).context("cannot start a thread")?;
        let daemon = self.place.daemon()?;
        let idle = Spent::now()?;
        let client = || self.batches(setting.pinned, op, daemon);
        let joined = thread::scope(|scope| scope.spawn(client).join());
        let used = joined.ok().context("a thread panicked")??;
        Ok(Record {
            items: used.calls,
            bytes: used.calls * op.bytes(),
            cpu_seconds: used.cpu_seconds,
            idle: Spent::now()?.idle_since(idle),
            rss_bytes: daemon.unwrap_or(Process::Own).rss_bytes()?,
            transport: self.place.transport()?,
            requests: used.requests,
            ..self.record(&setting.phase(op), used.time)
        })
    }

    /// Batches until they have taken long enough, by the calling thread; only they are counted.
    fn batches(&self, pinned: Option<usize>, op: Op, daemon: Option<Process>) -> Result<Used> {
        if let Some(processor) = pinned {
            process::pin(processor)?;
        }
        let mut client = Client::new(self.place.root())?;
        // Once before: what is looked up, opened or made the first time is not what is measured.
        client.batch(op, BATCH)?;
        client.clear(op, BATCH)?;
        let cpu_seconds = || -> Result<f64> {
            let own = process::thread_cpu().as_secs_f64();
            Ok(own + daemon.map_or(Ok(0.0), Process::cpu_seconds)?)
        };
        let mut used = Used::default();
        while used.time < self.wanted {
            let (cpu, requests) = (cpu_seconds()?, self.place.requests()?);
            let begun = Instant::now();
            client.batch(op, BATCH)?;
            used.time += begun.elapsed();
            used.calls += BATCH;
            used.cpu_seconds += cpu_seconds()? - cpu;
            if let Some((after, before)) = self.place.requests()?.zip(requests) {
                *used.requests.get_or_insert(0) += after.saturating_sub(before);
            }
            client.clear(op, BATCH)?;
        }
        Ok(used)
    }

    fn ping_pong(&self, processor: usize) -> Result<Record> {
        let (count, time) = ping_pong::exchanges(processor, self.wanted)?;
        Ok(Record {
            items: count,
            rss_bytes: Process::Own.rss_bytes()?,
            ..self.record(&PING_PONG, time)
        })
    }

    fn record(&self, phase: &impl fmt::Display, time: Duration) -> Record {
        Record {
            workload: NAME.to_owned(),
            target: self.label.to_owned(),
            phase: phase.to_string(),
            threads: 1,
            round: self.round,
            seconds: time.as_secs_f64(),
            ..Record::default()
        }
    }
}

/// Microseconds of each call, as a multiple of an exchange of the two threads, with the requests
/// that it made.
fn table(records: &[Record], labels: &[String]) -> String {
    let micros = |phase: &str, label: &str| {
        let each = |record: &Record| Some(record.seconds * 1e6 / record.items as f64);
        median_of(records, phase, label, each)
    };
    let mut rows = vec![vec![String::new()]];
    rows[0].extend(labels.iter().cloned());
    for phase in phases(records) {
        let mut row = vec![phase.to_owned()];
        for label in labels {
            let Some(each) = micros(phase, label) else {
                row.push("-".to_owned());
                continue;
            };
            let mut cell = format!("{each:.1}");
            if let Some(exchange) = micros(PING_PONG, label)
                && phase != PING_PONG
            {
                let _ = write!(cell, " {:.2}x", each / exchange);
            }
            let asked = |record: &Record| Some(record.requests? as f64 / record.items as f64);
            if let Some(requests) = median_of(records, phase, label, asked) {
                let _ = write!(cell, " {requests:.2}r");
            }
            row.push(cell);
        }
        rows.push(row);
    }
    let mut text = aligned(&rows);
    text.push_str(
        "microseconds of a call, medians of the rounds, and multiples of ping-pong: an exchange of two threads on one \
         processor; r: requests of a call; -pinned: the client on one processor; -busyN: beside N busy threads\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_told_in_exchanges_of_the_same_target() {
        let record = |target, phase, seconds| Record::sample(target, phase, 1000, seconds);
        let records = [
            record("mem:", PING_PONG, 0.004),
            record("mem:", "getattr", 0.010),
            Record {
                requests: Some(2000),
                ..record("hf:x", "getattr-pinned-busy1", 0.012)
            },
        ];
        let text = table(&records, &["mem:".to_owned(), "hf:x".to_owned()]);
        let lines: Vec<Vec<&str>> = (text.lines())
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(lines[1], ["ping-pong", "4.0", "-"], "{text}");
        assert_eq!(lines[2], ["getattr", "10.0", "2.50x", "-"], "{text}");
        assert_eq!(
            lines[3],
            ["getattr-pinned-busy1", "-", "12.0", "2.00r"],
            "{text}"
        );
    }

    #[test]
    fn a_setting_names_its_phases() {
        let phase = |pinned, neighbours| Setting { pinned, neighbours }.phase(Op::Create);
        assert_eq!(phase(None, 0), "create");
        assert_eq!(phase(Some(3), 2), "create-pinned-busy2");
    }
}
