use super::*;
use crate::{FormatOptions, format};
use holdfast_device::MemoryDevice;

const MIB: u64 = 1 << 20;

#[test]
fn a_new_volume_is_sound_and_a_device_without_one_is_not() {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(16 * MIB));
    let report = check(&device, &CheckOptions::default(), &|_, _, _| {});
    assert_eq!(report.findings.len(), 2, "{:?}", report.findings);
    format(&device, &FormatOptions::default()).unwrap();
    let report = check(&device, &CheckOptions::default(), &|_, _, _| {});
    assert!(report.is_clean(), "{:?}", report.findings);
    assert!(!report.replayed);
}
