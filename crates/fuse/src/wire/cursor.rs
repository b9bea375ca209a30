//! The bytes behind a request's header, read from the front.

use super::{Extensions, Header, Malformed, Request};
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// The bytes behind a request's header, as the transport has them.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// One run, as read from `/dev/fuse`.
    Flat(&'a [u8]),
    /// The fixed structure apart from the rest, as io_uring delivers.
    Split {
        /// Area of the operation's structure; may be longer than it.
        fixed: &'a [u8],
        /// Names and data.
        payload: &'a [u8],
    },
}

/// The result of decoding a request.
pub(super) type Decoded<'a> = Result<Request<'a>, Malformed>;

/// Reads structures, names and data from the front of a body.
pub(super) struct Cursor<'a> {
    pub(super) rest: &'a [u8],
    /// With io_uring: the separate fixed structure, until it is read.
    fixed: Option<&'a [u8]>,
    extensions: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(header: &Header, body: Body<'a>) -> Result<Self, Malformed> {
        let (fixed, all) = match body {
            Body::Flat(bytes) => (None, bytes),
            Body::Split { fixed, payload } => (Some(fixed), payload),
        };
        let split = all
            .len()
            .checked_sub(header.extension_len as usize)
            .ok_or(Malformed::new("extensions are longer than the body"))?;
        let (rest, extensions) = all.split_at(split);
        Ok(Self {
            rest,
            fixed,
            extensions,
        })
    }

    /// The operation's structure.
    pub(super) fn fixed<T: FromBytes + KnownLayout + Immutable>(&mut self) -> Result<T, Malformed> {
        let cut_off = Malformed::new("structure is cut off");
        if let Some(fixed) = self.fixed.take() {
            return T::read_from_prefix(fixed)
                .map(|(value, _)| value)
                .map_err(|_| cut_off);
        }
        let (value, rest) = T::read_from_prefix(self.rest).map_err(|_| cut_off)?;
        self.rest = rest;
        Ok(value)
    }

    /// A string up to its NUL.
    pub(super) fn name(&mut self) -> Result<&'a [u8], Malformed> {
        let end = self
            .rest
            .iter()
            .position(|&byte| byte == 0)
            .ok_or(Malformed::new("name has no end"))?;
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..).unwrap_or(&[]);
        Ok(name)
    }

    pub(super) fn data(&mut self, len: u32) -> Result<&'a [u8], Malformed> {
        let (data, rest) = self
            .rest
            .split_at_checked(len as usize)
            .ok_or(Malformed::new("data is cut off"))?;
        self.rest = rest;
        Ok(data)
    }

    pub(super) fn extensions(&self) -> Result<Extensions<'a>, Malformed> {
        Extensions::parse(self.extensions)
    }
}
