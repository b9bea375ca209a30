//! One device, several threads.

use holdfast_device::{BlockDevice, FileDevice, MemoryDevice, ReadRequest, WriteRequest};

const THREADS: usize = 4;
const REGION: usize = 1 << 20;
const PIECE: usize = 4096;

/// Each thread writes scattered ranges of its own region and reads them back, concurrently with the
/// others.
fn threads_keep_apart(device: &dyn BlockDevice) {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for round in 0..24_usize {
                    write_and_read(device, thread, round);
                }
            });
        }
    });
}

fn write_and_read(device: &dyn BlockDevice, thread: usize, round: usize) {
    let places: Vec<u64> = (0..40)
        .map(|nth| (nth * 37 + round) % (REGION / PIECE))
        .map(|piece| (thread * REGION + piece * PIECE) as u64)
        .collect();
    let fill = |at: u64| (at / PIECE as u64) as u8 ^ (round * THREADS + thread) as u8;
    let written: Vec<Vec<u8>> = places.iter().map(|&at| vec![fill(at); PIECE + 1]).collect();
    let requests = places.iter().zip(&written);
    let requests: Vec<_> = requests
        .map(|(&at, bytes)| WriteRequest::new(at, &bytes[1..]))
        .collect();
    device.write_batch(&requests).unwrap();
    if round % 8 == thread {
        device.flush().unwrap();
    }
    let mut read = vec![vec![0; PIECE + 1]; places.len()];
    let mut requests: Vec<_> = places
        .iter()
        .zip(&mut read)
        .map(|(&at, buf)| ReadRequest::new(at, &mut buf[1..]))
        .collect();
    device.read_batch(&mut requests).unwrap();
    for (&at, buf) in places.iter().zip(&read) {
        assert!(buf[1..].iter().all(|&byte| byte == fill(at)), "at {at}");
    }
}

#[test]
fn threads_do_not_get_each_others_bytes() {
    let size = (THREADS * REGION) as u64;
    threads_keep_apart(&MemoryDevice::new(size));
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("image");
    threads_keep_apart(&FileDevice::create(&path, size).unwrap());
}
