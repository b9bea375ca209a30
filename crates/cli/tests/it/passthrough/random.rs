//! Random operations on a few open files, compared with their expected bytes.

use super::Mount;
use holdfast_fuse::{Passthrough, TransportChoice};
use holdfast_testkit::rng::Rng;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

const STEPS: usize = 600;
/// About the threshold of large files.
const SIZES: [u64; 5] = [0, 5_000, (1 << 20) - 1, 1 << 20, 1_200_000];

/// The expected content of a file.
#[derive(Default)]
struct Model(Vec<u8>);

impl Model {
    fn write(&mut self, at: usize, bytes: &[u8]) {
        if self.0.len() < at + bytes.len() {
            self.0.resize(at + bytes.len(), 0);
        }
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

fn open(path: &Path, random: &mut Rng) -> File {
    let writes = random.below(2) == 0;
    OpenOptions::new()
        .read(true)
        .write(writes)
        .open(path)
        .unwrap()
}

fn run(mount: &Mount, seed: u64) {
    let random = &mut Rng::new(seed);
    let (path, below) = (mount.at("file"), mount.below("file"));
    let mut model = Model::default();
    let mut open_files: Vec<File> = Vec::new();
    fs::write(&path, b"").unwrap();
    for step in 0..STEPS {
        let what = random.below(10);
        let at = random.below(1_300_000) as usize;
        let bytes = vec![step as u8; 1 + random.below(20_000) as usize];
        match what {
            0 | 1 if open_files.len() < 4 => open_files.push(open(&path, random)),
            2 if !open_files.is_empty() => {
                let index = random.below(open_files.len() as u64) as usize;
                drop(open_files.swap_remove(index));
            }
            3 => {
                let size = SIZES[random.below(SIZES.len() as u64) as usize];
                let file = OpenOptions::new().write(true).open(&path).unwrap();
                file.set_len(size).unwrap();
                model.0.resize(size as usize, 0);
            }
            4 => {
                let mut file = OpenOptions::new().append(true).open(&path).unwrap();
                std::io::Write::write_all(&mut file, &bytes).unwrap();
                model.write(model.0.len(), &bytes);
            }
            5 | 6 => {
                for file in &open_files {
                    // Some are open for reading only.
                    if file.write_at(&bytes, at as u64).is_ok() {
                        model.write(at, &bytes);
                    }
                }
            }
            _ => {}
        }
        let len = fs::metadata(&path).unwrap().len();
        assert_eq!(len, model.0.len() as u64, "seed {seed}, step {step}");
        let start = at.min(model.0.len());
        let want = &model.0[start..model.0.len().min(start + 5_000)];
        for file in &open_files {
            let mut read = vec![0; want.len()];
            file.read_exact_at(&mut read, start as u64).unwrap();
            assert_eq!(read, want, "seed {seed}, step {step}");
        }
        if step % 50 == 0 {
            assert!(fs::read(&path).unwrap() == model.0, "step {step}");
            assert!(fs::read(&below).unwrap() == model.0, "step {step}");
        }
    }
}

#[test]
fn random_operations_leave_the_bytes_that_they_should() {
    for transport in [TransportChoice::Dev, TransportChoice::Uring] {
        for (seed, passthrough) in [Passthrough::Auto, Passthrough::All]
            .into_iter()
            .enumerate()
        {
            let Some(mount) = Mount::new(transport, passthrough) else {
                continue;
            };
            run(&mount, seed as u64);
            mount.end();
        }
    }
}
