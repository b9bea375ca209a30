use crate::rng::Rng;
use holdfast_types::Fallocate;

/// One operation on the file.
#[expect(
    missing_docs,
    reason = "each variant is the call of its name, field by field"
)]
#[derive(Clone, Debug)]
pub enum FsxOp {
    Read {
        offset: u64,
        lens: Vec<usize>,
    },
    Write {
        offset: u64,
        lens: Vec<usize>,
        fill: u64,
    },
    Append {
        len: usize,
        fill: u64,
    },
    Truncate {
        len: u64,
    },
    Fallocate {
        mode: Fallocate,
        offset: u64,
        len: u64,
    },
    Copy {
        from: u64,
        to: u64,
        len: u64,
    },
    Seek {
        offset: u64,
    },
    Sync {
        data_only: bool,
    },
    Reopen,
}

const PAGE: u64 = 4096;

impl FsxOp {
    /// The next operation on a file of `len` bytes that shall never have more than `most`.
    pub fn random(rng: &mut Rng, len: u64, most: u64) -> Self {
        match rng.below(100) {
            0..26 => Self::Read {
                offset: within(rng, len),
                lens: lens(rng, most),
            },
            26..50 => {
                let (offset, mut lens) = (within(rng, most), lens(rng, most));
                let mut room = (most - offset) as usize;
                for len in &mut lens {
                    *len = (*len).min(room);
                    room -= *len;
                }
                Self::Write {
                    offset,
                    lens,
                    fill: rng.bits(),
                }
            }
            50..54 => {
                let count = count(rng, most).min((most - len) as usize);
                Self::Append {
                    len: count,
                    fill: rng.bits(),
                }
            }
            54..62 => Self::Truncate {
                len: if rng.one_in(12) { 0 } else { within(rng, most) },
            },
            62..84 => Self::allocation(rng, len, most),
            84..92 => {
                let (from, to) = (within(rng, len), within(rng, most));
                let count = (count(rng, most) as u64).min(most - to);
                Self::Copy {
                    from,
                    to,
                    len: count,
                }
            }
            92..97 => Self::Seek {
                offset: within(rng, len + PAGE),
            },
            97 => Self::Sync {
                data_only: rng.one_in(2),
            },
            _ => Self::Reopen,
        }
    }

    fn allocation(rng: &mut Rng, len: u64, most: u64) -> Self {
        let keep = Fallocate::KEEP_SIZE;
        let mode = match rng.below(11) {
            0..2 => Fallocate::empty(),
            2 => keep,
            3..6 => Fallocate::PUNCH_HOLE | keep,
            6 => Fallocate::ZERO_RANGE,
            7 => Fallocate::ZERO_RANGE | keep,
            8 => Fallocate::COLLAPSE_RANGE,
            _ => Fallocate::INSERT_RANGE,
        };
        let shifts = mode.intersects(Fallocate::COLLAPSE_RANGE | Fallocate::INSERT_RANGE);
        let (mut offset, mut count) = (within(rng, most), 1 + count(rng, most) as u64);
        if shifts && !rng.one_in(16) {
            offset = within(rng, len) / PAGE * PAGE;
            count = count.div_ceil(PAGE) * PAGE;
        }
        let insert = mode.contains(Fallocate::INSERT_RANGE);
        if insert && len + count > most {
            // No room: drop something instead, so that the file does not stay full.
            return Self::Fallocate {
                mode: Fallocate::COLLAPSE_RANGE,
                offset,
                len: count,
            };
        }
        if !shifts {
            count = count.min(most - offset).max(1);
        }
        Self::Fallocate {
            mode,
            offset,
            len: count,
        }
    }
}

/// An offset up to `end`, often at or beside the edge of a page.
fn within(rng: &mut Rng, end: u64) -> u64 {
    let offset = rng.below(end + 1);
    match rng.below(4) {
        0 => offset / PAGE * PAGE,
        1 => (offset / PAGE * PAGE + rng.below(3))
            .saturating_sub(1)
            .min(end),
        _ => offset,
    }
}

/// A number of bytes: mostly some pages, sometimes few bytes, sometimes a quarter of the file.
fn count(rng: &mut Rng, most: u64) -> usize {
    (match rng.below(16) {
        0 => 0,
        1..5 => rng.below(64),
        5 => rng.below(most / 4),
        6..9 => PAGE * rng.below(5),
        _ => rng.below(4 * PAGE),
    }) as usize
}

fn lens(rng: &mut Rng, most: u64) -> Vec<usize> {
    let parts = if rng.one_in(6) { 2 + rng.index(4) } else { 1 };
    (0..parts).map(|_| count(rng, most) / parts).collect()
}
