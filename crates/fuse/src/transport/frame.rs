//! One request and its reply, in one piece of memory.
//!
//! A frame is a page, and behind it room for the largest payload. Over io_uring the kernel's header
//! area is at the start of the page, and names, data and replies are in the payload. A read from
//! `/dev/fuse` ends its fixed part at the page's end, so that the data of a WRITE is page-aligned.
//! The reply's payload is in the same place, with its header directly before it.
//!
//! # Invariants
//! Request and reply share the payload: a reply is written when the request is no longer borrowed,
//! as the borrow checker ensures.

use super::sys::Region;
use crate::wire::{Body, Header, Malformed, layout, reply::put};
use holdfast_types::Errno;
use std::io;
use zerocopy::FromBytes;

/// Bytes in front of the payload.
pub(crate) const PAYLOAD: usize = 4096;
/// Where a read from the device starts: a header and WRITE's structure before the payload.
const DEVICE: usize = PAYLOAD - size_of::<layout::InHeader>() - size_of::<layout::WriteIn>();
/// Smallest payload: the largest extended attribute, its name and structure fit.
const PAYLOAD_MIN: usize = 128 << 10;

/// The ring entry's areas within the page.
const RING_OP: usize = 128;
const RING_ENTRY: usize = 256;
/// Length of the ring entry's header area in bytes.
pub(crate) const RING_HEADERS: usize = 288;
/// Where in the page the two iovecs of a registration stand.
pub(crate) const RING_IOVECS: usize = 1024;

/// Memory for one request at a time.
#[derive(Debug)]
pub(crate) struct Frame {
    region: Region,
    header: Header,
    form: Form,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Empty,
    /// Read from the device, up to this byte of the region.
    Flat {
        end: usize,
    },
    /// From a ring, with this much payload.
    Split {
        payload: usize,
        commit_id: u64,
    },
}

impl Frame {
    /// A frame for payloads up to `payload_max` bytes.
    pub(crate) fn new(payload_max: usize) -> io::Result<Self> {
        let region = Region::new(PAYLOAD + payload_max.max(PAYLOAD_MIN))?;
        let header = Header {
            opcode: 0,
            unique: 0,
            ino: holdfast_types::Ino(0),
            uid: 0,
            gid: 0,
            pid: 0,
            len: 0,
            extension_len: 0,
        };
        Ok(Self {
            region,
            header,
            form: Form::Empty,
        })
    }

    pub(crate) fn region_mut(&mut self) -> &mut Region {
        &mut self.region
    }

    pub(crate) fn header(&self) -> Header {
        self.header
    }

    /// Where to read a request from the device to.
    pub(crate) fn device_area(&mut self) -> &mut [u8] {
        &mut self.region[DEVICE..]
    }

    /// `len` bytes were read to the device area.
    pub(crate) fn accept_flat(&mut self, len: usize) -> Result<(), Malformed> {
        let bytes = self
            .region
            .get(DEVICE..DEVICE + len)
            .ok_or(Malformed::new("request is longer than its buffer"))?;
        self.header = Header::decode(bytes)?;
        self.form = Form::Flat { end: DEVICE + len };
        if self.header.len as usize != len {
            return Err(Malformed::new("length differs from what was read"));
        }
        Ok(())
    }

    /// The kernel has put a request into the ring entry.
    pub(crate) fn accept_split(&mut self) -> Result<(), Malformed> {
        let (entry, _) = layout::RingEntInOut::read_from_prefix(&self.region[RING_ENTRY..])
            .map_err(|_| Malformed::new("ring entry is cut off"))?;
        let commit_id = entry.commit_id;
        self.form = Form::Split {
            payload: 0,
            commit_id,
        };
        self.header = Header::decode(&self.region[..RING_OP])?;
        let payload = entry.payload_len as usize;
        if payload > self.region.len() - PAYLOAD {
            return Err(Malformed::new("payload is longer than its buffer"));
        }
        self.form = Form::Split { payload, commit_id };
        Ok(())
    }

    /// What stands behind the header.
    pub(crate) fn body(&self) -> Body<'_> {
        match self.form {
            Form::Empty => Body::Flat(&[]),
            Form::Flat { end } => {
                Body::Flat(&self.region[DEVICE + size_of::<layout::InHeader>()..end])
            }
            Form::Split { payload, .. } => Body::Split {
                fixed: &self.region[RING_OP..RING_ENTRY],
                payload: &self.region[PAYLOAD..PAYLOAD + payload],
            },
        }
    }

    /// Where the reply's payload goes.
    pub(crate) fn out(&mut self) -> &mut [u8] {
        &mut self.region[PAYLOAD..]
    }

    /// The reply as it is written to the device; its payload stands in [`Frame::out`].
    pub(crate) fn device_reply(&mut self, result: Result<usize, Errno>) -> &[u8] {
        let head = size_of::<layout::OutHeader>();
        let (header, payload) = self.out_header(result);
        put(&mut self.region[PAYLOAD - head..], &header);
        &self.region[PAYLOAD - head..PAYLOAD + payload]
    }

    /// Puts the reply into the ring entry; gives the number to commit it by.
    pub(crate) fn ring_reply(&mut self, result: Result<usize, Errno>) -> u64 {
        let (header, payload) = self.out_header(result);
        put(&mut self.region, &header);
        let commit_id = match self.form {
            Form::Split { commit_id, .. } => commit_id,
            Form::Empty | Form::Flat { .. } => 0,
        };
        let entry = layout::RingEntInOut {
            commit_id,
            payload_len: payload as u32,
            ..Default::default()
        };
        put(&mut self.region[RING_ENTRY..], &entry);
        commit_id
    }

    fn out_header(&self, result: Result<usize, Errno>) -> (layout::OutHeader, usize) {
        let (error, payload) = match result {
            Ok(payload) => (0, payload),
            Err(errno) => (-errno.raw(), 0),
        };
        let len = (size_of::<layout::OutHeader>() + payload) as u32;
        (
            layout::OutHeader {
                len,
                error,
                unique: self.header.unique,
            },
            payload,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Dialect, Request};
    use zerocopy::IntoBytes;

    fn write_request(data: &[u8]) -> Vec<u8> {
        let header = layout::InHeader {
            len: (80 + data.len()) as u32,
            opcode: 16,
            unique: 6,
            nodeid: 3,
            ..Default::default()
        };
        let write = layout::WriteIn {
            size: data.len() as u32,
            offset: 9,
            ..Default::default()
        };
        [header.as_bytes(), write.as_bytes(), data].concat()
    }

    #[test]
    fn the_data_of_a_write_is_page_aligned_and_the_reply_one_run() {
        let mut frame = Frame::new(1 << 16).unwrap();
        let request = write_request(b"abc");
        frame.device_area()[..request.len()].copy_from_slice(&request);
        frame.accept_flat(request.len()).unwrap();
        let decoded = Request::decode(&frame.header(), frame.body(), Dialect::default()).unwrap();
        let Request::Write(write) = decoded else {
            panic!("{decoded:?}")
        };
        assert_eq!(write.data, b"abc");
        assert_eq!(write.data.as_ptr().align_offset(4096), 0);
        frame.out()[..2].copy_from_slice(b"ok");
        let reply = frame.device_reply(Ok(2));
        assert_eq!(reply.len(), 18);
        assert_eq!(&reply[16..], b"ok");
        assert_eq!(
            frame.device_reply(Err(Errno::ENOENT))[4..8],
            (-2i32).to_le_bytes()
        );
    }

    #[test]
    fn a_length_that_differs_from_what_was_read_is_refused() {
        let mut frame = Frame::new(1 << 16).unwrap();
        let request = write_request(b"abc");
        frame.device_area()[..request.len()].copy_from_slice(&request);
        assert!(frame.accept_flat(request.len() - 1).is_err());
        assert!(frame.accept_flat(10).is_err());
        assert!(frame.accept_flat(1 << 20).is_err());
    }

    #[test]
    fn a_ring_entry_with_an_absurd_payload_is_refused_but_can_be_answered() {
        let mut frame = Frame::new(1 << 16).unwrap();
        let header = layout::InHeader {
            len: 40,
            opcode: 3,
            unique: 8,
            ..Default::default()
        };
        put(frame.region_mut(), &header);
        let entry = layout::RingEntInOut {
            commit_id: 8,
            payload_len: u32::MAX,
            ..Default::default()
        };
        put(&mut frame.region_mut()[RING_ENTRY..], &entry);
        assert!(frame.accept_split().is_err());
        assert_eq!(frame.ring_reply(Err(Errno::EIO)), 8);
    }
}
