//! Damage at rest: a test changes a device without the knowledge of its user.

use holdfast_device::{BlockDevice, Result};

/// Inverts one bit, counted from the lowest of the first byte.
///
/// # Errors
/// What the device answers.
pub fn flip_bit(device: &dyn BlockDevice, bit: u64) -> Result<()> {
    let sector = bit / 8 / device.alignment() * device.alignment();
    let mut bytes = vec![0; device.alignment() as usize];
    device.read(sector, &mut bytes)?;
    bytes[(bit / 8 - sector) as usize] ^= 1 << (bit % 8);
    device.write(sector, &bytes)
}

/// Writes zeros.
///
/// # Errors
/// What the device answers.
pub fn zero(device: &dyn BlockDevice, offset: u64, len: usize) -> Result<()> {
    device.write(offset, &vec![0; len])
}

/// Exchanges the content of two ranges that do not overlap.
///
/// # Errors
/// What the device answers.
pub fn swap(device: &dyn BlockDevice, one: u64, other: u64, len: usize) -> Result<()> {
    let (mut first, mut second) = (vec![0; len], vec![0; len]);
    device.read(one, &mut first)?;
    device.read(other, &mut second)?;
    device.write(one, &second)?;
    device.write(other, &first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_device::MemoryDevice;

    #[test]
    fn damage_is_where_it_is_meant_to_be_and_nowhere_else() {
        let device = MemoryDevice::new(4096);
        let mut model = vec![0_u8; 4096];
        device.write(512, &[3; 512]).unwrap();
        flip_bit(&device, 1000 * 8 + 2).unwrap();
        model[512..1024].fill(3);
        model[1000] = 7;
        assert!(device.image().to_vec() == model);
        swap(&device, 512, 2048, 512).unwrap();
        model.copy_within(512..1024, 2048);
        model[512..1024].fill(0);
        assert!(device.image().to_vec() == model);
        zero(&device, 2048, 512).unwrap();
        assert!(device.image().to_vec() == [0; 4096]);
    }
}
