use super::*;
use crate::{FormatOptions, format};
use holdfast_core::{FileSystem, Options};
use holdfast_device::MemoryDevice;
use holdfast_types::Caller;

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

#[test]
fn a_volume_without_superblocks_is_told_from_what_never_was_one() {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(16 * MIB));
    let refused = |device: &Arc<dyn BlockDevice>| recognize(device).unwrap_err().to_string();
    let text = refused(&device);
    assert!(
        text.contains("holds no Holdfast volume: it begins with zeros"),
        "{text}"
    );
    let short: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(4096));
    assert!(refused(&short).contains("too short"));
    let empty: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(0));
    assert!(refused(&empty).contains("too short"));
    device.write(1024, &[b'x'; 512]).unwrap();
    assert!(refused(&device).contains("it begins with something else"));
    device.write(0, &[b"XFSB", &[0; 508][..]].concat()).unwrap();
    assert!(refused(&device).contains("but an xfs file system"));

    format(&device, &FormatOptions::default()).unwrap();
    let store = VolumeStore::open(Arc::clone(&device), &OpenOptions::default()).unwrap();
    let store = Arc::new(store);
    let fs = FileSystem::new(Arc::clone(&store) as _, Options::default()).unwrap();
    fs.mkdir(&Caller::root(), &fs.root(), b"dir", 0o755)
        .unwrap();
    fs.close().unwrap();
    store.close().unwrap();
    recognize(&device).unwrap();
    for slot in SLOTS {
        device
            .write(slot * BLOCK as u64 + 512, &[0xff; 512])
            .unwrap();
    }
    recognize(&device).expect("damaged superblocks");
    for slot in SLOTS {
        device.write(slot * BLOCK as u64, &[0; BLOCK]).unwrap();
    }
    recognize(&device).expect("no superblocks");
}
