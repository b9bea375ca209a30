//! Extensions at the end of creations: the supplementary group.

use super::{Malformed, flags::bit, layout};
use zerocopy::FromBytes;

/// Extensions of a creation, behind its names; checked as a whole by the decoder.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extensions<'a> {
    groups: &'a [u8],
}

impl<'a> Extensions<'a> {
    /// Checks the extension area of a request.
    pub(super) fn parse(mut area: &'a [u8]) -> Result<Self, Malformed> {
        let mut found = Self::default();
        while !area.is_empty() {
            let (header, _) = layout::ExtHeader::read_from_prefix(area)
                .map_err(|_| Malformed::new("extension header is cut off"))?;
            let size = header.size as usize;
            if size < size_of::<layout::ExtHeader>() || size > area.len() {
                return Err(Malformed::new("extension size is out of range"));
            }
            let (record, rest) = area.split_at(size.next_multiple_of(8).min(area.len()));
            let body = record.get(8..size).unwrap_or(&[]);
            // Others are skipped by their size: security contexts, which are not negotiated, and
            // those of a later ABI.
            if header.kind == bit::EXT_GROUPS {
                found.groups = parse_groups(body)?;
            }
            area = rest;
        }
        Ok(found)
    }

    /// Supplementary groups of the caller (the kernel sends at most the parent's).
    pub fn groups(&self) -> impl Iterator<Item = u32> + use<'a> {
        self.groups
            .chunks_exact(4)
            .filter_map(|bytes| u32::read_from_bytes(bytes).ok())
    }
}

fn parse_groups(body: &[u8]) -> Result<&[u8], Malformed> {
    let (count, list) =
        u32::read_from_prefix(body).map_err(|_| Malformed::new("group count is cut off"))?;
    (count as usize)
        .checked_mul(4)
        .and_then(|bytes| list.get(..bytes))
        .ok_or(Malformed::new("group list is cut off"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    fn extension(kind: u32, body: &[u8]) -> Vec<u8> {
        let size = 8 + body.len() as u32;
        let mut bytes = layout::ExtHeader { size, kind }.as_bytes().to_vec();
        bytes.extend_from_slice(body);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    #[test]
    fn groups_are_found_behind_a_security_context() {
        let mut context = 3u32.as_bytes().to_vec();
        context.extend_from_slice(&[0; 4]);
        context.extend_from_slice(b"security.x\0abc");
        let mut area = extension(1, &context);
        let mut groups = 2u32.as_bytes().to_vec();
        groups.extend_from_slice(7u32.as_bytes());
        groups.extend_from_slice(9u32.as_bytes());
        area.extend(extension(32, &groups));
        let parsed = Extensions::parse(&area).unwrap();
        assert_eq!(parsed.groups().collect::<Vec<_>>(), [7, 9]);
    }

    #[test]
    fn counts_beyond_the_area_are_refused() {
        let groups = extension(32, u32::MAX.as_bytes());
        assert!(Extensions::parse(&groups).is_err());
        let mut long = extension(32, &[0; 4]);
        long[0] = 200;
        assert!(Extensions::parse(&long).is_err());
        long[0] = 0;
        assert!(Extensions::parse(&long).is_err());
    }
}
