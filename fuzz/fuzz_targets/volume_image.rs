//! Images of volumes, changed in their metadata, with right checksums.
//!
//! `crates/testkit/src/crash/mangled.rs` says how the bytes are read. Checking, opening, using and
//! repairing what they make must end, without a panic.

#![no_main]

use holdfast_testkit::crash::Images;
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

static IMAGES: OnceLock<Images> = OnceLock::new();

fuzz_target!(|data: &[u8]| {
    let images = IMAGES.get_or_init(|| Images::make().expect("volumes to begin with"));
    images.try_input(data);
});
