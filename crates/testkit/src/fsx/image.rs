use holdfast_types::{Errno, Fallocate, Result};

/// The naive model of a file: its bytes in a vector.
#[derive(Clone, Debug, Default)]
pub struct Image {
    bytes: Vec<u8>,
}

const PAGE: u64 = 4096;

impl Image {
    /// The file's length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Is the file empty?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes a read of this range gives.
    #[must_use]
    pub fn read(&self, offset: u64, len: usize) -> &[u8] {
        let start = (offset as usize).min(self.bytes.len());
        &self.bytes[start..start.saturating_add(len).min(self.bytes.len())]
    }

    /// Overwrites or extends; a gap becomes zeros. Nothing written extends nothing.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        let (start, end) = (offset as usize, offset as usize + data.len());
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[start..end].copy_from_slice(data);
    }

    /// Cuts or extends with zeros.
    pub fn truncate(&mut self, len: u64) {
        self.bytes.resize(len as usize, 0);
    }

    /// fallocate(2), as file systems with blocks of 4 KiB define it.
    ///
    /// # Errors
    /// `EINVAL` for no bytes, and for a shift of a range that is not whole blocks. `EINVAL` for a
    /// collapse that reaches the end, and for an insert that begins at or behind it.
    pub fn fallocate(&mut self, mode: Fallocate, offset: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Err(Errno::EINVAL);
        }
        let (start, end) = (offset as usize, (offset + len) as usize);
        let aligned = offset.is_multiple_of(PAGE) && len.is_multiple_of(PAGE);
        let size = self.bytes.len();
        if mode.contains(Fallocate::COLLAPSE_RANGE) {
            if !aligned || end >= size {
                return Err(Errno::EINVAL);
            }
            self.bytes.drain(start..end);
            return Ok(());
        }
        if mode.contains(Fallocate::INSERT_RANGE) {
            if !aligned || start >= size {
                return Err(Errno::EINVAL);
            }
            self.bytes.resize(size + len as usize, 0);
            self.bytes.copy_within(start..size, end);
            self.bytes[start..end].fill(0);
            return Ok(());
        }
        if mode.intersects(Fallocate::PUNCH_HOLE | Fallocate::ZERO_RANGE) {
            self.bytes[start.min(size)..end.min(size)].fill(0);
        }
        if !mode.contains(Fallocate::KEEP_SIZE) && end > size {
            self.bytes.resize(end, 0);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collapse_undoes_insert() {
        let mut image = Image::default();
        image.write(0, &[1; 10_000]);
        let before = image.bytes.clone();
        image
            .fallocate(Fallocate::INSERT_RANGE, 4096, 8192)
            .unwrap();
        assert_eq!(image.len(), 18_192);
        assert_eq!(image.read(4096, 8192), [0; 8192]);
        image
            .fallocate(Fallocate::COLLAPSE_RANGE, 4096, 8192)
            .unwrap();
        assert_eq!(image.bytes, before);
        assert_eq!(
            image.fallocate(Fallocate::COLLAPSE_RANGE, 8192, 4096),
            Err(Errno::EINVAL)
        );
        assert_eq!(
            image.fallocate(Fallocate::INSERT_RANGE, 12_288, 4096),
            Err(Errno::EINVAL)
        );
    }
}
