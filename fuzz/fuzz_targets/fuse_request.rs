//! Any bytes, as a FUSE request: read from `/dev/fuse`, and delivered by io_uring.
//!
//! The first byte chooses the dialect and where io_uring would split the body. Decoding must end
//! in a request or an error, and every list that a request carries must be walkable.

#![no_main]

use holdfast_fuse::wire::{Body, Dialect, Header, Request};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, bytes)) = data.split_first() else {
        return;
    };
    let Ok(header) = Header::decode(bytes) else {
        return;
    };
    let dialect = Dialect {
        setxattr_ext: choice & 0x80 != 0,
    };
    let body = &bytes[40..];
    if let Ok(request) = Request::decode(&header, Body::Flat(body), dialect) {
        walk(&request, body.len());
    }
    let (fixed, payload) = body.split_at(body.len().min(usize::from(choice & 0x7f)));
    if let Ok(request) = Request::decode(&header, Body::Split { fixed, payload }, dialect) {
        walk(&request, body.len());
    }
});

/// Walks every list; none may be longer than the bytes it came from.
fn walk(request: &Request<'_>, len: usize) {
    let extensions = match request {
        Request::BatchForget(forgets) => {
            assert!(forgets.iter().count() * 16 <= len);
            return;
        }
        Request::Write(write) => {
            assert!(write.data.len() <= len);
            return;
        }
        Request::Symlink { extensions, .. }
        | Request::Mknod { extensions, .. }
        | Request::Mkdir { extensions, .. } => extensions,
        Request::Create(create) | Request::TmpFile(create) => &create.extensions,
        _ => return,
    };
    assert!(extensions.groups().count() * 4 <= len);
}
