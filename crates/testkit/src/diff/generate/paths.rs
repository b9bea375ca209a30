//! Paths that collide: few names, few directories, mostly existing ones, and now and then the
//! odd spellings that only path walks see.

use crate::diff::op::{Bytes, Op};
use crate::diff::view::Snapshot;
use crate::rng::Rng;
use holdfast_types::{FileType, OpenFlags, RenameFlags};

/// More names than this and the generator removes more than it makes.
const MANY: usize = 260;
/// Fewer than this and it stops removing.
const FEW: usize = 160;
/// Deepest directory the generator asks for.
const DEPTH: usize = 9;

/// What the generator believes to exist. It may be wrong (a path through a symbolic link, a
/// directory moved): the next snapshot corrects it, and wrong paths are worth trying, too.
#[derive(Debug, Default)]
pub(super) struct Known {
    entries: Vec<(Vec<u8>, FileType)>,
    pruning: bool,
}

impl Known {
    pub(super) fn learn(&mut self, tree: &Snapshot) {
        let named = tree.iter().filter(|(path, _)| path.0 != b".");
        self.entries = named
            .map(|(path, view)| (path.0[2..].to_vec(), view.kind))
            .collect();
    }

    /// Notes what a successful operation did to the names.
    pub(super) fn note(&mut self, op: &Op) {
        match op {
            Op::Open { path, flags, .. } if flags.contains(OpenFlags::CREATE) => {
                self.add(&path.0, FileType::Regular);
            }
            Op::Mkdir { path, .. } => self.add(&path.0, FileType::Directory),
            Op::Mknod { path, kind, .. } => self.add(&path.0, *kind),
            Op::Symlink { path, .. } => self.add(&path.0, FileType::Symlink),
            Op::Link { to, .. } | Op::LinkOpen { to, .. } => self.add(&to.0, FileType::Regular),
            Op::Unlink { path } | Op::Rmdir { path } => {
                self.entries.retain(|(known, _)| *known != path.0);
            }
            Op::Rename { from, to, flags } if !flags.contains(RenameFlags::EXCHANGE) => {
                self.entries.retain(|(known, _)| *known != to.0);
                for (known, _) in &mut self.entries {
                    if let Some(rest) = known.strip_prefix(&from.0[..])
                        && (rest.is_empty() || rest[0] == b'/')
                    {
                        *known = [&to.0[..], rest].concat();
                    }
                }
            }
            _ => {}
        }
        self.pruning = self.entries.len() > if self.pruning { FEW } else { MANY };
    }

    /// Forgets what an operation did not find.
    pub(super) fn note_missing(&mut self, op: &Op) {
        if let Some(path) = op.paths().first() {
            self.entries.retain(|(known, _)| *known != path.0);
        }
    }

    fn add(&mut self, path: &[u8], kind: FileType) {
        let path = path.strip_prefix(b"/").unwrap_or(path);
        if !path.is_empty() && self.entries.iter().all(|(known, _)| known != path) {
            self.entries.push((path.to_vec(), kind));
        }
    }

    /// A path to remove when there are too many: the deepest of a few.
    pub(super) fn surplus(&self, rng: &mut Rng) -> Option<(Bytes, bool)> {
        if !self.pruning || rng.one_in(2) {
            return None;
        }
        let candidates = (0..6).map(|_| rng.pick(&self.entries));
        let (path, kind) = candidates.max_by_key(|(path, _)| depth(path))?;
        Some((Bytes(path.clone()), kind.is_dir()))
    }

    /// A path of this kind that is believed to exist.
    fn existing(&self, rng: &mut Rng, kind: Option<FileType>) -> Option<Vec<u8>> {
        let tries = if kind.is_some() { 24 } else { 1 };
        (0..tries).find_map(|_| {
            let (path, is) = self.entries.get(rng.index(self.entries.len()))?;
            (kind.is_none() || kind == Some(*is)).then(|| path.clone())
        })
    }

    /// Is something believed to be a directory with something below it?
    fn height(&self, path: &[u8]) -> usize {
        let below = self
            .entries
            .iter()
            .filter(|(known, _)| known.starts_with(path));
        below
            .map(|(known, _)| depth(known))
            .max()
            .unwrap_or(0)
            .saturating_sub(depth(path))
    }
}

fn depth(path: &[u8]) -> usize {
    path.split(|&byte| byte == b'/').count()
}

/// A name of a directory entry.
fn name(rng: &mut Rng) -> Vec<u8> {
    match rng.below(40) {
        0 => vec![b'n'; 255],
        1 => vec![b'n'; 256],
        2 => b"new\nline".to_vec(),
        3 => b"\xff\xfe\x80".to_vec(),
        4 => b"...".to_vec(),
        _ => vec![*rng.pick(b"abcdefgh")],
    }
}

/// A path at which something may be made: a name in a directory that probably exists.
pub(super) fn fresh(rng: &mut Rng, known: &Known) -> Bytes {
    let dir = match rng.below(4) {
        0 => None,
        _ => known
            .existing(rng, Some(FileType::Directory))
            .filter(|dir| depth(dir) < DEPTH),
    };
    let name = name(rng);
    let path = dir.map_or_else(|| name.clone(), |dir| [&dir[..], b"/", &name].concat());
    decorated(rng, path)
}

/// A path that probably exists, of this kind if one is given.
pub(super) fn present(rng: &mut Rng, known: &Known, kind: Option<FileType>) -> Bytes {
    if rng.one_in(12) {
        return fresh(rng, known);
    }
    match known.existing(rng, kind) {
        Some(path) => decorated(rng, path),
        None => fresh(rng, known),
    }
}

/// Where to rename `from` to, without making the tree too deep to walk by path.
pub(super) fn destination(rng: &mut Rng, known: &Known, from: &Bytes) -> Bytes {
    let height = known.height(&from.0);
    for _ in 0..4 {
        let to = if rng.one_in(2) {
            fresh(rng, known)
        } else {
            present(rng, known, None)
        };
        if depth(&to.0) + height <= DEPTH + 2 {
            return to;
        }
    }
    Bytes(name(rng))
}

/// The same path, spelt otherwise now and then.
fn decorated(rng: &mut Rng, path: Vec<u8>) -> Bytes {
    Bytes(match rng.below(160) {
        0..4 => [&path[..], b"/"].concat(),
        4..8 => [b"/", &path[..]].concat(),
        8 => [&path[..], b"/."].concat(),
        9 => [&path[..], b"/.."].concat(),
        10 => [b"./", &path[..]].concat(),
        11 => [b"a/../", &path[..]].concat(),
        12 => [b"../", &path[..]].concat(),
        13 => [b"//", &path[..], b"///"].concat(),
        14 => [&path[..], b"/", &name(rng)].concat(),
        15 => match rng.below(5) {
            0 => Vec::new(),
            1 => b"/".to_vec(),
            2 => b".".to_vec(),
            3 => b"..".to_vec(),
            _ => b"./.".to_vec(),
        },
        16 => {
            // A path of 4094 to 4097 bytes: 4095 is the longest the kernel takes.
            let total = 4094 + rng.index(4);
            let mut long = b"./".repeat(total.saturating_sub(path.len()) / 2);
            if (long.len() + path.len()) % 2 != total % 2 {
                long.push(b'/');
            }
            [&long[..], &path].concat()
        }
        _ => path,
    })
}

/// The target of a symbolic link: existing things, itself, nothing, too much.
pub(super) fn target(rng: &mut Rng, known: &Known) -> Bytes {
    let existing = known.existing(rng, None).unwrap_or_default();
    let last = existing
        .rsplit(|&byte| byte == b'/')
        .next()
        .unwrap_or_default()
        .to_vec();
    Bytes(match rng.below(24) {
        0..8 => [b"/", &existing[..]].concat(),
        8..14 => last,
        14..16 => existing,
        16 => b".".to_vec(),
        17 => b"..".to_vec(),
        18 => [b"../", &last[..]].concat(),
        19 => [&last[..], b"/"].concat(),
        20 => name(rng),
        21 => vec![b't'; *rng.pick(&[1, 127, 128, 129, 255, 256, 1000])],
        22 => b"/".repeat(*rng.pick(&[1, 4094, 4095, 4096])),
        _ => {
            if rng.one_in(3) {
                Vec::new()
            } else {
                b"/a/b/c".to_vec()
            }
        }
    })
}
