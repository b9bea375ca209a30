use proptest::prelude::*;

pub(crate) const PAGE: u64 = 4096;

/// Where operations take place: each is the start of a window of about eight pages.
pub(crate) const BASES: [u64; 5] = [
    0,
    // Across a border of two groups.
    61 * PAGE,
    // Two groups further.
    190 * PAGE,
    // Far out, again across a border.
    (1 << 40) - 3 * PAGE,
    // The very end, with the last byte that a file can have.
    (1 << 63) - 8 * PAGE,
];

#[derive(Clone)]
pub(crate) enum Op {
    Write { offset: u64, data: Vec<u8> },
    Truncate { size: u64 },
    Punch { offset: u64, len: u64 },
    Zero { offset: u64, len: u64 },
    Allocate { offset: u64, len: u64, extend: bool },
    Collapse { offset: u64, len: u64 },
    Insert { offset: u64, len: u64 },
    CopyAcross { to: u64, from: u64, len: u64 },
    CopyWithin { to: u64, from: u64, len: u64 },
    Forget { offset: u64, len: u64 },
    Bring { offset: u64, len: u64 },
    Clear,
}

impl std::fmt::Debug for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Write { offset, data } => write!(f, "write {} at {offset}", data.len()),
            Self::Truncate { size } => write!(f, "truncate to {size}"),
            Self::Punch { offset, len } => write!(f, "punch {len} at {offset}"),
            Self::Zero { offset, len } => write!(f, "zero {len} at {offset}"),
            Self::Allocate {
                offset,
                len,
                extend,
            } => {
                write!(f, "allocate {len} at {offset}, extend: {extend}")
            }
            Self::Collapse { offset, len } => write!(f, "collapse {len} at {offset}"),
            Self::Insert { offset, len } => write!(f, "insert {len} at {offset}"),
            Self::CopyAcross { to, from, len } => write!(f, "copy across {len} {from} -> {to}"),
            Self::CopyWithin { to, from, len } => write!(f, "copy within {len} {from} -> {to}"),
            Self::Forget { offset, len } => write!(f, "forget {len} at {offset}"),
            Self::Bring { offset, len } => write!(f, "bring {len} at {offset}"),
            Self::Clear => write!(f, "clear"),
        }
    }
}

/// Most operations happen at the start of the file, where the small forms are.
fn base() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => Just(BASES[0]),
        2 => Just(BASES[1]),
        1 => Just(BASES[2]),
        1 => Just(BASES[3]),
        1 => Just(BASES[4]),
    ]
}

fn offset() -> impl Strategy<Value = u64> {
    let within = prop_oneof![
        3 => Just(0_u64),
        1 => Just(1),
        1 => Just(PAGE - 1),
        1 => 0..200_u64,
        2 => 0..PAGE,
    ];
    (base(), 0..5_u64, within).prop_map(|(base, page, within)| base + page * PAGE + within)
}

fn aligned() -> impl Strategy<Value = u64> {
    (base(), 0..5_u64).prop_map(|(base, page)| base + page * PAGE)
}

fn len() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => 1..300_u64,
        2 => 1..3 * PAGE,
        2 => (1..4_u64).prop_map(|pages| pages * PAGE),
        1 => 60 * PAGE..140 * PAGE,
    ]
}

fn aligned_len() -> impl Strategy<Value = u64> {
    let pages = prop_oneof![4 => 1..5_u64, 1 => Just(64_u64), 1 => 60..130_u64];
    pages.prop_map(|pages| pages * PAGE)
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    (len(), 1..=u8::MAX).prop_map(|(len, seed)| {
        // In long data few bytes are not zero: the model keeps only those.
        let stride = match len {
            0..=300 => 1,
            301..=12_288 => 11,
            _ => 509,
        };
        let byte = |at| {
            if at % stride == 0 {
                seed.wrapping_add((at / 7) as u8)
            } else {
                0
            }
        };
        (0..len).map(byte).collect::<Vec<_>>()
    })
}

/// A copy with source and target so close that they often share a page, on either side.
fn copy_near() -> impl Strategy<Value = Op> {
    let near = (offset(), len(), 0..PAGE, any::<bool>());
    near.prop_map(|(first, len, gap, up)| {
        let second = first + len + gap;
        let (from, to) = if up { (first, second) } else { (second, first) };
        Op::CopyWithin { to, from, len }
    })
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (offset(), data()).prop_map(|(offset, data)| Op::Write { offset, data }),
        3 => offset().prop_map(|size| Op::Truncate { size }),
        3 => (offset(), len()).prop_map(|(offset, len)| Op::Punch { offset, len }),
        2 => (offset(), len()).prop_map(|(offset, len)| Op::Zero { offset, len }),
        2 => (offset(), len(), any::<bool>())
            .prop_map(|(offset, len, extend)| Op::Allocate { offset, len, extend }),
        2 => (aligned(), aligned_len()).prop_map(|(offset, len)| Op::Collapse { offset, len }),
        2 => (aligned(), aligned_len()).prop_map(|(offset, len)| Op::Insert { offset, len }),
        2 => (offset(), offset(), len())
            .prop_map(|(to, from, len)| Op::CopyAcross { to, from, len }),
        2 => (offset(), offset(), len())
            .prop_map(|(to, from, len)| Op::CopyWithin { to, from, len }),
        1 => copy_near(),
        4 => (aligned(), aligned_len()).prop_map(|(offset, len)| Op::Forget { offset, len }),
        1 => (aligned(), aligned_len()).prop_map(|(offset, len)| Op::Bring { offset, len }),
        1 => Just(Op::Clear),
    ]
}
