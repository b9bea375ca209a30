//! Packed images: only the sectors that are not zeros, in zlib format.
//!
//! `HFsparse`, the number of sectors of the image (8 bytes), then for each kept sector its number
//! (4 bytes) and its 512 bytes.

use holdfast_device::{BlockDevice, MemoryDevice};

const MAGIC: &[u8; 8] = b"HFsparse";
const SECTOR: usize = 512;

/// Packs an image.
pub(crate) fn pack(device: &MemoryDevice) -> Vec<u8> {
    let sectors = device.size() / SECTOR as u64;
    let mut packed = MAGIC.to_vec();
    packed.extend(sectors.to_le_bytes());
    for sector in 0..sectors {
        let mut bytes = [0; SECTOR];
        device.read(sector * SECTOR as u64, &mut bytes).unwrap();
        if bytes.iter().any(|byte| *byte != 0) {
            packed.extend((sector as u32).to_le_bytes());
            packed.extend(bytes);
        }
    }
    miniz_oxide::deflate::compress_to_vec_zlib(&packed, 9)
}

/// Unpacks an image.
pub(crate) fn unpack(packed: &[u8]) -> MemoryDevice {
    let packed = miniz_oxide::inflate::decompress_to_vec_zlib(packed).unwrap();
    let (head, kept) = packed.split_at(16);
    assert_eq!(&head[..8], MAGIC);
    let sectors = u64::from_le_bytes(head[8..].try_into().unwrap());
    let device = MemoryDevice::new(sectors * SECTOR as u64);
    let kept = kept.chunks_exact(4 + SECTOR);
    assert!(kept.remainder().is_empty());
    for one in kept {
        let (number, bytes) = one.split_at(4);
        let sector = u32::from_le_bytes(number.try_into().unwrap());
        device
            .write(u64::from(sector) * SECTOR as u64, bytes)
            .unwrap();
    }
    device
}

#[test]
fn what_is_packed_is_unpacked() {
    let device = MemoryDevice::new(1 << 20);
    device.write(4096, &[1; 512]).unwrap();
    device.write(512 * 77, &[3; 1024]).unwrap();
    let again = unpack(&pack(&device));
    let read = |device: &MemoryDevice| {
        let mut bytes = vec![0; 1 << 20];
        device.read(0, &mut bytes).unwrap();
        bytes
    };
    assert!(read(&device) == read(&again));
}
