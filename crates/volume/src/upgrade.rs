//! The upgrade: a volume of an earlier Holdfast gets the features of the present one, in place.

use std::sync::Arc;

use holdfast_device::BlockDevice;

use crate::check::{CheckOptions, Progress, Report, check};
use crate::store::VolumeStore;
use crate::{Error, Result};

/// Checks the volume on a device, and brings it to the features that a new one has; says what the check saw, and
/// whether there was anything to be done. An earlier Holdfast refuses the volume then.
///
/// A crash meanwhile leaves the volume as it was, or as it is to be.
///
/// # Errors
/// [`Error::Damaged`] if anything is wrong: nothing was changed. Those of the device, and if there is no room for
/// new nodes.
pub fn upgrade(
    device: &Arc<dyn BlockDevice>,
    options: &CheckOptions,
    progress: &Progress<'_>,
) -> Result<(Report, bool)> {
    let report = check(device, options, progress);
    if !report.is_clean() {
        let why = "the volume is damaged: repair it before it is upgraded";
        return Err(Error::Damaged(why.to_owned()));
    }
    let upgraded = VolumeStore::upgrade(device)?;
    Ok((report, upgraded))
}
