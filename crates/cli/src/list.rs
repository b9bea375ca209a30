//! `holdfast list`: what holdfast has mounted.
//!
//! Each mount is asked by a separate process, because a question that a daemon has read and does
//! not answer cannot be taken back: the process that asks cannot even be killed. It is left behind
//! then, and ends with the daemon.

use crate::{
    info::{
        self,
        report::{Report, State},
        units::bytes,
    },
    message::Result,
    mount::program,
};
use holdfast_fuse::{
    mount::{Mounted, is_stale, mounts},
    serve::INFO_XATTR,
};
use rustix::event::{PollFd, PollFlags, Timespec};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// How long all daemons together may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// List what holdfast has mounted
///
/// Of each mount: where it is, what is mounted there, its type, its state, and how much space there
/// is. The state is `silent` if its daemon does not answer within two seconds, `dead` if its daemon
/// was killed, and `private` if only another user may look at it. Mounts with `-o subtype=` are not
/// listed.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print one line of JSON: an array with an object for each mount
    #[arg(long)]
    json: bool,

    /// Print the state of the mount at this root, for another process of this command
    #[arg(long, hide = true, value_name = "DIR")]
    ask: Option<PathBuf>,
}

/// The state of a mount, or of its daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Condition {
    ReadWrite,
    ReadOnly,
    /// The volume failed, and is not written to any more.
    Failed,
    /// The daemon was killed.
    Dead,
    /// This user may not look at it.
    Private,
    /// The daemon does not answer in time.
    #[default]
    Silent,
}

/// What a daemon says about its mount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Answer {
    state: Condition,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    free_bytes: Option<u64>,
}

/// One mount. Its fields are an interface: fields may be added, never renamed.
#[derive(Debug, Serialize)]
struct Row {
    mount_point: String,
    source: String,
    #[serde(rename = "type")]
    fs_type: String,
    options: String,
    #[serde(flatten)]
    answer: Answer,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if let Some(root) = &arguments.ask {
        return Ok(serde_json::to_writer(io::stdout(), &ask(root))?);
    }
    print(arguments.json)
}

/// Prints all mounts.
pub(crate) fn print(json: bool) -> Result<()> {
    // Of several mounts at one place, the last one hides the others.
    let places = mounts()?
        .into_iter()
        .map(|mounted| (mounted.mount_point.clone(), mounted));
    let places: BTreeMap<PathBuf, Mounted> = places.collect();
    let ours: Vec<Mounted> = places.into_values().filter(Mounted::is_holdfast).collect();
    let questions: Vec<_> = ours
        .iter()
        .map(|mounted| question(&mounted.mount_point))
        .collect();
    let until = Instant::now() + ANSWER_TIMEOUT;
    let answers = questions.into_iter().map(|child| {
        let answer = child.and_then(|child| answer_of(child, until));
        answer.unwrap_or_default()
    });
    let rows: Vec<Row> = ours
        .iter()
        .zip(answers)
        .map(|(mounted, answer)| row(mounted, answer))
        .collect();
    let mut out = anstream::stdout();
    if json {
        serde_json::to_writer(&mut out, &rows)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", table(&rows))?;
    }
    Ok(out.flush()?)
}

/// Starts the process that asks the daemon of the mount at `root`.
fn question(root: &Path) -> io::Result<Child> {
    Command::new(program())
        .arg0("holdfast")
        .args(["list", "--ask"])
        .arg(root)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}

/// The answer, if it comes in time.
fn answer_of(mut child: Child, until: Instant) -> io::Result<Answer> {
    let Some(mut output) = child.stdout.take() else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    let left = until.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left).map_err(io::Error::other)?;
    let mut said = [PollFd::new(&output, PollFlags::IN)];
    if rustix::event::poll(&mut said, Some(&left))? == 0 {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let mut text = String::new();
    output.read_to_string(&mut text)?;
    child.wait()?;
    Ok(serde_json::from_str(&text)?)
}

/// Asks the daemon of the mount at `root`, and waits for its answer.
fn ask(root: &Path) -> Answer {
    let state = match info::read(root, INFO_XATTR).map(|text| serde_json::from_str::<Report>(&text))
    {
        Ok(Ok(report)) => {
            return Answer {
                state: match report.state {
                    State::ReadWrite => Condition::ReadWrite,
                    State::ReadOnly => Condition::ReadOnly,
                    State::Failed => Condition::Failed,
                },
                pid: Some(report.pid),
                size_bytes: report.space_bytes,
                free_bytes: report.space_free_bytes,
            };
        }
        _ if is_stale(root) => Condition::Dead,
        _ => Condition::Private,
    };
    Answer {
        state,
        ..Answer::default()
    }
}

fn row(mounted: &Mounted, answer: Answer) -> Row {
    Row {
        mount_point: mounted.mount_point.display().to_string(),
        source: mounted.source.clone(),
        fs_type: mounted.fs_type.clone(),
        options: mounted.options.clone(),
        answer,
    }
}

/// The rows in columns. Without a row there is no head either.
fn table(rows: &[Row]) -> String {
    let head = [
        "MOUNT POINT",
        "SOURCE",
        "TYPE",
        "STATE",
        "SIZE",
        "USED",
        "FREE",
    ];
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(rows.iter().map(cells));
    if rows.is_empty() {
        return String::new();
    }
    let width = |column: usize| {
        let widths = lines.iter().map(|line| line[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: [usize; 7] = std::array::from_fn(width);
    let mut text = String::new();
    for line in &lines {
        let mut cells = String::new();
        for (column, (cell, width)) in line.iter().zip(widths).enumerate() {
            // Numbers stand to the right.
            cells += &match column {
                0..4 => format!("{cell:width$}  "),
                _ => format!("{cell:>width$}  "),
            };
        }
        text += cells.trim_end();
        text.push('\n');
    }
    text
}

fn cells(row: &Row) -> [String; 7] {
    let answer = &row.answer;
    let amount = |amount: Option<u64>| amount.map_or_else(|| "-".to_owned(), bytes);
    let used = answer.size_bytes.zip(answer.free_bytes);
    let state = match answer.state {
        Condition::ReadWrite => "rw",
        Condition::ReadOnly => "ro",
        Condition::Failed => "failed",
        Condition::Dead => "dead",
        Condition::Private => "private",
        Condition::Silent => "silent",
    };
    [
        // A line is a mount.
        row.mount_point.replace(char::is_control, "?"),
        row.source.replace(char::is_control, "?"),
        row.fs_type.clone(),
        state.to_owned(),
        amount(answer.size_bytes),
        amount(used.map(|(size, free)| size.saturating_sub(free))),
        amount(answer.free_bytes),
    ]
}
