//! The terminal of `holdfast top`.
//!
//! *Invariant.* The terminal is restored on every way out: a key, a signal, the mount's end, an
//! error, and a panic of any thread.

use super::look::{Polled, Poller};
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

/// Longest delay until a new report or a signal is noticed.
const TICK: Duration = Duration::from_millis(50);

/// A message of the polling thread.
type Found = Result<Polled>;

/// Restores the terminal.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Shows reports until a key or a signal (`None`), or until the mount ends.
///
/// # Errors
/// Those of the terminal and of polls.
pub(super) fn watch(poller: Poller) -> Result<Option<&'static str>> {
    let is_ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        flag::register(signal, Arc::clone(&is_ended))?;
    }
    let no_terminal = |error: io::Error| {
        Failure::new(format!("the terminal cannot be used: {error}"))
            .hint("--json prints an object for each interval")
    };
    // `try_init` sets the panic hook that restores the terminal, so it precedes the thread.
    let terminal = ratatui::try_init().map_err(no_terminal)?;
    let _restore = Restore;
    let first = poller.now();
    let interval = poller.interval;
    let found = start(poller)?;
    show(terminal, &found, &is_ended, |frame, rates| {
        view::draw(frame, rates.unwrap_or(&first), interval);
    })
}

/// Polls on a thread of its own, so that keys work while the daemon does not answer.
fn start(mut poller: Poller) -> io::Result<Receiver<Found>> {
    let (sender, found) = mpsc::channel();
    thread::Builder::new()
        .name("looks".to_owned())
        .spawn(move || {
            loop {
                let polled = poller.poll_next();
                let goes_on = matches!(polled, Ok(Polled::Rates(_)));
                if sender.send(polled).is_err() || !goes_on {
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
            Ok(Ok(Polled::Rates(rates))) => {
                shown = Some(rates);
                is_new = true;
            }
            Ok(Ok(Polled::Ended(how))) => return Ok(Some(how)),
            Ok(Err(failure)) => return Err(failure),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => {
                return Err(
                    Failure::new("the thread that asks the mount has ended").hint("start it again")
                );
            }
        }
    }
    Ok(None)
}

/// In raw mode, ^C is a key event.
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
