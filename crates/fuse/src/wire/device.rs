//! Device numbers: 32 bits on the wire, `makedev(3)` here.

/// From the kernel's packing (12 bits of major, 20 of minor) to `makedev(3)`'s.
pub(crate) const fn unpack(packed: u32) -> u64 {
    let major = (packed >> 8) & 0xfff;
    let minor = (packed & 0xff) | ((packed >> 12) & 0xfff00);
    libc::makedev(major, minor)
}

/// From `makedev(3)`'s packing to the kernel's; larger numbers than that holds are cut.
pub(crate) const fn pack(device: u64) -> u32 {
    let major = libc::major(device) & 0xfff;
    let minor = libc::minor(device) & 0xf_ffff;
    (minor & 0xff) | (major << 8) | ((minor & 0xfff00) << 12)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_survive_the_wire() {
        for (major, minor) in [(1, 3), (8, 0x12345), (0xfff, 0xf_ffff), (259, 7)] {
            let device = libc::makedev(major, minor);
            assert_eq!(unpack(pack(device)), device);
        }
        assert_eq!(pack(libc::makedev(1, 3)), 0x103);
    }
}
