//! The terminal, while a mount is watched in it.
//!
//! *Invariant.* However it ends (a key, a signal, the mount's end, an error, a panic of any thread) the terminal is as it was before.

use super::look::{Looked, Looks};
use super::view;
use crate::message::{Failure, Result};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::Duration;

/// So long at most a new look, or a signal, waits until it is seen.
const TICK: Duration = Duration::from_millis(50);

/// What the thread that looks has found.
type Found = Result<Looked>;

/// Gives the terminal back.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Shows looks until a key or a signal ends it (`None`), or the mount ends.
///
/// # Errors
/// Those of the terminal, and of looks.
pub(super) fn watch(looks: Looks) -> Result<Option<&'static str>> {
    let is_ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        flag::register(signal, Arc::clone(&is_ended))?;
    }
    let no_terminal = |error: io::Error| {
        Failure::new(format!("the terminal cannot be used: {error}"))
            .hint("--json prints an object for each interval")
    };
    // Before the thread is there: what it says if it panics is for the terminal as it was.
    let terminal = ratatui::try_init().map_err(no_terminal)?;
    let _restore = Restore;
    let first = looks.now();
    let interval = looks.interval();
    let found = start(looks)?;
    show(terminal, &found, &is_ended, |frame, rates| {
        view::draw(frame, rates.unwrap_or(&first), interval);
    })
}

/// Looks on a thread of its own: a daemon that does not answer keeps nobody from ending this.
fn start(mut looks: Looks) -> io::Result<Receiver<Found>> {
    let (sender, found) = mpsc::channel();
    thread::Builder::new()
        .name("looks".to_owned())
        .spawn(move || {
            loop {
                let looked = looks.look_again();
                let goes_on = matches!(looked, Ok(Looked::Rates(_)));
                if sender.send(looked).is_err() || !goes_on {
                    return;
                }
            }
        })?;
    Ok(found)
}

fn show(
    mut terminal: DefaultTerminal,
    found: &Receiver<Found>,
    is_ended: &AtomicBool,
    draw: impl Fn(&mut ratatui::Frame<'_>, Option<&super::rates::Rates>),
) -> Result<Option<&'static str>> {
    let (mut shown, mut is_new) = (None, true);
    while !is_ended.load(Relaxed) {
        if is_new {
            terminal.draw(|frame| draw(frame, shown.as_deref()))?;
        }
        is_new = event::poll(TICK)?;
        if is_new
            && let Event::Key(key) = event::read()?
            && is_end(key)
        {
            break;
        }
        match found.try_recv() {
            Ok(Ok(Looked::Rates(rates))) => {
                shown = Some(rates);
                is_new = true;
            }
            Ok(Ok(Looked::Ended(how))) => return Ok(Some(how)),
            Ok(Err(failure)) => return Err(failure),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => {
                return Err(Failure::new("the thread that asks the mount has ended"));
            }
        }
    }
    Ok(None)
}

/// In the terminal's raw mode ^C is a key like others.
fn is_end(key: KeyEvent) -> bool {
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => true,
        KeyCode::Char('c') => key.modifiers.contains(KeyModifiers::CONTROL),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_escape_and_control_c_end_it() {
        let key = |code, modifiers| is_end(KeyEvent::new(code, modifiers));
        assert!(key(KeyCode::Char('q'), KeyModifiers::NONE));
        assert!(key(KeyCode::Esc, KeyModifiers::NONE));
        assert!(key(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert!(!key(KeyCode::Char('c'), KeyModifiers::NONE));
        assert!(!key(KeyCode::Enter, KeyModifiers::NONE));
    }
}
