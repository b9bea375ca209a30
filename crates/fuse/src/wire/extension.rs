//! Extensions at the end of creations: security contexts, the supplementary group.

use super::{Malformed, flags::bit, layout};
use zerocopy::FromBytes;

/// What a creation carries behind its names; checked as a whole when the request is decoded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extensions<'a> {
    groups: &'a [u8],
    contexts: &'a [u8],
    context_count: u32,
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
            match header.kind {
                bit::EXT_GROUPS => found.groups = parse_groups(body)?,
                count @ 0..=bit::EXT_SECCTX_MAX => {
                    check_contexts(body, count)?;
                    found.contexts = body;
                    found.context_count = count;
                }
                // An extension of a later ABI: its size lets it be skipped.
                _ => {}
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

    /// Security contexts: pairs of attribute name and value.
    pub fn security_contexts(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut rest = self.contexts;
        (0..self.context_count).map_while(move |_| {
            let (name, value, after) = split_context(rest)?;
            rest = after;
            Some((name, value))
        })
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

fn check_contexts(mut body: &[u8], count: u32) -> Result<(), Malformed> {
    for _ in 0..count {
        let (_, _, after) =
            split_context(body).ok_or(Malformed::new("security context is cut off"))?;
        body = after;
    }
    Ok(())
}

/// Splits `{size, name NUL, value}` and the padding behind it off the front.
fn split_context(body: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (context, rest) = layout::SecCtx::read_from_prefix(body).ok()?;
    let end = rest.iter().position(|&byte| byte == 0)?;
    let name = rest.get(..end)?;
    let value_start = end + 1;
    let value_end = value_start.checked_add(context.size as usize)?;
    let value = rest.get(value_start..value_end)?;
    let after = rest.get(value_end.next_multiple_of(8).min(rest.len())..)?;
    Some((name, value, after))
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
    fn groups_and_contexts_are_found_in_one_area() {
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
        let contexts: Vec<_> = parsed.security_contexts().collect();
        assert_eq!(contexts, [(&b"security.x"[..], &b"abc"[..])]);
    }

    #[test]
    fn counts_beyond_the_area_are_refused() {
        let groups = extension(32, u32::MAX.as_bytes());
        assert!(Extensions::parse(&groups).is_err());
        let context = extension(31, &[0; 8]);
        assert!(Extensions::parse(&context).is_err());
        let mut long = extension(32, &[0; 4]);
        long[0] = 200;
        assert!(Extensions::parse(&long).is_err());
        long[0] = 0;
        assert!(Extensions::parse(&long).is_err());
    }
}
