//! Memory that the process has, as the kernel counts it, and how much of it nobody accounts for.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

/// The least of so long counts: an allocator returns memory a while after it was freed.
const WINDOW: Duration = Duration::from_secs(2);
/// Into so many parts it is divided.
const PARTS: usize = 4;

/// Reads how much of this process is resident.
#[derive(Debug)]
pub(super) struct Resident {
    statm: File,
    page: u64,
}

impl Resident {
    pub(super) fn open() -> io::Result<Self> {
        Ok(Self {
            statm: File::open("/proc/self/statm")?,
            page: rustix::param::page_size() as u64,
        })
    }

    /// Bytes; `None` if the kernel does not say.
    pub(super) fn bytes(&self) -> Option<u64> {
        let mut text = [0; 128];
        let len = self.statm.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..len]).ok()?;
        let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
        Some(pages * self.page)
    }
}

/// What is resident and not accounted for: the least of the last while.
#[derive(Debug, Default)]
pub(super) struct Slack {
    /// The least of each part of the window, the newest last.
    least: [Option<u64>; PARTS],
    /// When the newest part began.
    begun: Option<Instant>,
}

impl Slack {
    /// Takes note of how much it is now, and says the least of the last while.
    pub(super) fn note(&mut self, bytes: u64, now: Instant) -> u64 {
        let part = WINDOW / PARTS as u32;
        let begun = *self.begun.get_or_insert(now);
        let passed = now.saturating_duration_since(begun).as_millis() / part.as_millis();
        for _ in 0..passed.min(PARTS as u128) {
            self.least.rotate_left(1);
            self.least[PARTS - 1] = None;
        }
        if passed > 0 {
            self.begun = Some(now);
        }
        let newest = &mut self.least[PARTS - 1];
        *newest = Some(newest.map_or(bytes, |least| least.min(bytes)));
        self.least.iter().flatten().copied().min().unwrap_or(bytes)
    }

    /// Forgets what was less: so much it is.
    pub(super) fn set(&mut self, bytes: u64, now: Instant) {
        *self = Self::default();
        self.note(bytes, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_resident() {
        let resident = Resident::open().unwrap();
        let before = resident.bytes().unwrap();
        assert!(before > 100 << 10);
        let more = vec![1_u8; 64 << 20];
        assert!(resident.bytes().unwrap() > before + (32 << 20));
        drop(more);
    }

    #[test]
    fn slack_is_the_least_of_the_last_while() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut slack = Slack::default();
        assert_eq!(slack.note(50, at(0)), 50);
        assert_eq!(slack.note(90, at(100)), 50);
        assert_eq!(slack.note(90, at(700)), 50);
        assert_eq!(slack.note(90, at(1300)), 50);
        assert_eq!(slack.note(90, at(1900)), 50);
        assert_eq!(slack.note(80, at(2600)), 80);
        assert_eq!(slack.note(70, at(9000)), 70, "long ago is no part of it");
        slack.set(100, at(9001));
        assert_eq!(slack.note(110, at(9002)), 100);
    }
}
