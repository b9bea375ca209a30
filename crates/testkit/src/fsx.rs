//! fsx through the library: random operations on one file, against an image of its bytes.
//!
//! It follows the "file system exerciser": one file, every way to change its bytes and its length.
//! Each read is compared with an image in memory. Everything goes through the core's own calls. The
//! file is closed, opened again and synced in between.

mod image;
mod op;

pub use image::Image;
pub use op::FsxOp;

use crate::rng::{Rng, pattern};
use holdfast_core::{FileSystem, OpenFile};
use holdfast_types::{Caller, Errno, Fallocate, OpenFlags, Result, SetAttr, Whence};
use std::fmt::Write as _;
use std::io::{IoSlice, IoSliceMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// What to exercise, and how much.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Seed of the operations.
    pub seed: u64,
    /// Number of operations.
    pub operations: usize,
    /// Largest length of the file in bytes.
    pub most: u64,
    /// Operations between two comparisons of the whole file.
    pub between_checks: usize,
}

/// One exercised file.
struct Exercise<'a> {
    fs: &'a FileSystem,
    who: Caller,
    file: OpenFile,
    image: Image,
}

/// As [`exercise`], beside threads that read the file at random offsets and evict its pages. A page
/// that they load must not hold bytes from before a change.
///
/// # Errors
/// As [`exercise`].
pub fn exercise_beside_readers(
    fs: &FileSystem,
    name: &str,
    plan: &Plan,
) -> std::result::Result<(), String> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for reader in 0..2 {
            let is_over = &is_over;
            let seed = plan.seed ^ (reader + 1) << 32;
            scope.spawn(move || read_at_random(fs, name, (seed, plan.most), is_over));
        }
        let report = exercise(fs, name, plan);
        is_over.store(true, Ordering::Relaxed);
        report
    })
}

fn read_at_random(fs: &FileSystem, name: &str, (seed, most): (u64, u64), is_over: &AtomicBool) {
    let (who, mut rng) = (Caller::root(), Rng::new(seed));
    let open = || fs.open_at(&who, &fs.root(), name.as_bytes(), OpenFlags::empty(), 0);
    let mut buf = vec![0; 64 << 10];
    while !is_over.load(Ordering::Relaxed) {
        // It has not been made yet, or an operation opens it anew.
        let Ok(file) = open() else {
            thread::yield_now();
            continue;
        };
        for _ in 0..16 {
            let len = 1 + rng.below(buf.len() as u64) as usize;
            // What it sees depends on the moment; errors are found by the exercise as well.
            let _ = fs.read(&file, rng.below(most), &mut buf[..len]);
        }
        let _ = fs.drop_caches();
    }
}

/// Runs the plan on a new file of this name in the root directory.
///
/// # Errors
/// A report: seed, step, what differs, and the last operations.
pub fn exercise(fs: &FileSystem, name: &str, plan: &Plan) -> std::result::Result<(), String> {
    let who = Caller::root();
    let flags = OpenFlags::READ_WRITE | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
    let file = fs.create(&who, &fs.root(), name.as_bytes(), 0o644, flags);
    let file = file.map_err(|error| format!("cannot create {name}: {error:?}"))?;
    let mut exercise = Exercise {
        fs,
        who,
        file,
        image: Image::default(),
    };
    let mut rng = Rng::new(plan.seed);
    let mut past: Vec<FsxOp> = Vec::with_capacity(plan.operations);
    for step in 1..=plan.operations {
        let op = FsxOp::random(&mut rng, exercise.image.len(), plan.most);
        past.push(op.clone());
        let mut result = exercise.run(&op);
        if result.is_ok() && (step % plan.between_checks == 0 || step == plan.operations) {
            result = exercise.check_all();
        }
        if let Err(what) = result {
            let mut report = format!("fsx seed {} step {step}: {what}\n", plan.seed);
            for (number, op) in past.iter().enumerate().skip(step.saturating_sub(20)) {
                let _ = writeln!(report, "  {:>8} {op:?}", number + 1);
            }
            return Err(report);
        }
    }
    Ok(())
}

type Check = std::result::Result<(), String>;

impl Exercise<'_> {
    fn run(&mut self, op: &FsxOp) -> Check {
        match op {
            FsxOp::Read { offset, lens } => self.read(*offset, lens),
            FsxOp::Write { offset, lens, fill } => self.write(*offset, lens, *fill),
            FsxOp::Append { len, fill } => self.append(*len, *fill),
            FsxOp::Truncate { len } => {
                let set = SetAttr {
                    size: Some(*len),
                    ..SetAttr::default()
                };
                let set = self
                    .fs
                    .setattr(&self.who, self.file.node(), &set, Some(&self.file));
                self.expect(set.map(drop), Ok(()))?;
                self.image.truncate(*len);
                self.check_length()
            }
            FsxOp::Fallocate { mode, offset, len } => self.fallocate(*mode, *offset, *len),
            FsxOp::Copy { from, to, len } => self.copy(*from, *to, *len),
            FsxOp::Seek { offset } => self.seek(*offset),
            FsxOp::Sync { data_only } => {
                let synced = self.fs.fsync(&self.file, *data_only);
                self.expect(synced, Ok(()))
            }
            FsxOp::Reopen => {
                let node = self.file.node().clone();
                let opened = self.fs.open(&self.who, &node, OpenFlags::READ_WRITE);
                self.file = opened.map_err(|error| format!("cannot open again: {error:?}"))?;
                self.check_length()
            }
        }
    }

    fn expect<T: PartialEq + std::fmt::Debug>(&self, got: Result<T>, want: Result<T>) -> Check {
        if got == want {
            Ok(())
        } else {
            Err(format!("answered {got:?}, should be {want:?}"))
        }
    }

    fn check_length(&self) -> Check {
        let size = self.fs.getattr(self.file.node()).size;
        if size == self.image.len() {
            return Ok(());
        }
        Err(format!(
            "the file has {size} bytes, should have {}",
            self.image.len()
        ))
    }

    fn check_all(&self) -> Check {
        self.check_length()?;
        self.read(0, &[self.image.len() as usize + 1])
    }

    fn read(&self, offset: u64, lens: &[usize]) -> Check {
        let total: usize = lens.iter().sum();
        // What is not read must not be touched: the buffer's old bytes show it.
        let mut buffer = vec![0xa5; total];
        let got = if lens.len() == 1 {
            self.fs.read(&self.file, offset, &mut buffer)
        } else {
            let mut rest = &mut buffer[..];
            let mut slices = Vec::new();
            for &len in lens {
                let (slice, behind) = rest.split_at_mut(len);
                slices.push(IoSliceMut::new(slice));
                rest = behind;
            }
            self.fs.read_vectored(&self.file, offset, &mut slices)
        };
        let want = self.image.read(offset, total);
        self.expect(got, Ok(want.len()))?;
        let bad = (0..want.len()).find(|&at| buffer[at] != want[at]);
        if let Some(at) = bad {
            let place = offset + at as u64;
            return Err(format!(
                "byte {place} (page {}, {:#x} in it) is {:#04x}, should be {:#04x}",
                place / 4096,
                place % 4096,
                buffer[at],
                want[at]
            ));
        }
        if buffer[want.len()..].iter().any(|&byte| byte != 0xa5) {
            return Err("the buffer was written behind the end of the file".into());
        }
        Ok(())
    }

    fn write(&mut self, offset: u64, lens: &[usize], fill: u64) -> Check {
        let bytes = pattern(fill, lens.iter().sum());
        let wrote = if lens.len() == 1 {
            self.fs.write(&self.who, &self.file, offset, &bytes)
        } else {
            let mut rest = &bytes[..];
            let cut = lens.iter().map(|&len| {
                let (slice, behind) = rest.split_at(len);
                rest = behind;
                IoSlice::new(slice)
            });
            let slices: Vec<_> = cut.collect();
            self.fs
                .write_vectored(&self.who, &self.file, offset, &slices)
        };
        self.expect(wrote, Ok(bytes.len()))?;
        self.image.write(offset, &bytes);
        self.check_length()
    }

    fn append(&mut self, len: usize, fill: u64) -> Check {
        let bytes = pattern(fill, len);
        let wrote = self.fs.append(&self.who, &self.file, &bytes);
        self.expect(wrote, Ok((self.image.len(), len)))?;
        self.image.write(self.image.len(), &bytes);
        self.check_length()
    }

    fn fallocate(&mut self, mode: Fallocate, offset: u64, len: u64) -> Check {
        let done = self.fs.fallocate(&self.who, &self.file, mode, offset, len);
        let want = self.image.fallocate(mode, offset, len);
        self.expect(done, want)?;
        self.check_length()
    }

    fn copy(&mut self, from: u64, to: u64, len: u64) -> Check {
        let file = &self.file;
        let copied = self
            .fs
            .copy_file_range(&self.who, file, from, file, to, len);
        let available = self.image.len().saturating_sub(from).min(len);
        // The kernel refuses overlap of what it would copy, the end of the file considered.
        let overlaps = from.abs_diff(to) < available;
        if overlaps {
            return self.expect(copied, Err(Errno::EINVAL));
        }
        self.expect(copied, Ok(available))?;
        let bytes = self.image.read(from, available as usize).to_vec();
        self.image.write(to, &bytes);
        self.check_length()
    }

    /// Data may be reported where there are zeros, but never a hole where there is something.
    fn seek(&self, offset: u64) -> Check {
        let data = self.fs.seek(&self.file, offset, Whence::Data);
        let hole = self.fs.seek(&self.file, offset, Whence::Hole);
        if offset >= self.image.len() {
            self.expect(data, Err(Errno::ENXIO))?;
            return self.expect(hole, Err(Errno::ENXIO));
        }
        let end = match data {
            Ok(data) if data >= offset && data < self.image.len() => data,
            Err(Errno::ENXIO) => self.image.len(),
            other => return Err(format!("SEEK_DATA from {offset} answered {other:?}")),
        };
        let skipped = self.image.read(offset, (end - offset) as usize);
        if skipped.iter().any(|&byte| byte != 0) {
            return Err(format!("SEEK_DATA from {offset} skipped data: {data:?}"));
        }
        match hole {
            Ok(hole) if hole >= offset && hole <= self.image.len() => Ok(()),
            other => Err(format!("SEEK_HOLE from {offset} answered {other:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_core::{MemoryLimits, Options};

    #[test]
    fn a_byte_changed_behind_fsx_is_found() {
        let fs = FileSystem::memory(MemoryLimits::default(), Options::default());
        let who = Caller::root();
        let flags = OpenFlags::READ_WRITE | OpenFlags::CREATE;
        let file = fs.create(&who, &fs.root(), b"f", 0o644, flags).unwrap();
        let mut exercise = Exercise {
            fs: &fs,
            who: who.clone(),
            file,
            image: Image::default(),
        };
        exercise.write(0, &[5000], 1).unwrap();
        assert_eq!(exercise.check_all(), Ok(()));
        let byte = !pattern(1, 5000)[4097];
        fs.write(&who, &exercise.file, 4097, &[byte]).unwrap();
        let found = exercise.check_all().unwrap_err();
        assert!(
            found.starts_with("byte 4097 (page 1, 0x1 in it)"),
            "{found}"
        );
    }
}
