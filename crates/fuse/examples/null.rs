//! The smallest file system that answers: an empty file under every name, nothing kept. It shows
//! what an implementation needs: `null DIR [dev|uring]`.

use holdfast_fuse::{
    Answer, Config, Context, Opened, Operations, Session, TransportChoice,
    wire::{OpenReply, ReadRequest, Request},
};
use holdfast_types::{Attr, Errno, FileType, Ino, Result, Time};
use std::{error::Error, path::Path, sync::Arc};

struct Null;

fn attr(ino: Ino) -> Attr {
    let kind = if ino == Ino::ROOT {
        FileType::Directory
    } else {
        FileType::Regular
    };
    Attr {
        ino,
        kind,
        perm: 0o755,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        size: 1 << 30,
        blocks: 0,
        atime: Time(0),
        mtime: Time(0),
        ctime: Time(0),
        btime: Time(0),
    }
}

impl Operations for Null {
    fn answer(&self, _: &Context<'_>, ino: Ino, request: Request<'_>) -> Result<Answer> {
        Ok(match request {
            Request::Lookup { .. } => Answer::Entry(attr(Ino(2))),
            Request::GetAttr => Answer::Attr(attr(ino)),
            Request::StatX => Answer::StatX(attr(ino)),
            Request::Open(_) => Answer::Opened(Opened {
                fh: 0,
                flags: OpenReply::DIRECT_IO | OpenReply::PARALLEL_DIRECT_WRITES,
                backing: None,
            }),
            Request::Write(write) => Answer::Written(write.data.len()),
            Request::Release(_) => Answer::Done,
            _ => return Err(Errno::ENOSYS),
        })
    }

    fn read(&self, _: Ino, _: &ReadRequest, out: &mut [u8]) -> Result<usize> {
        Ok(out.len())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let dir = arguments.first().ok_or("usage: null DIR [dev|uring]")?;
    let transport = match arguments.get(1).map(String::as_str) {
        Some("dev") => TransportChoice::Dev,
        Some("uring") => TransportChoice::Uring,
        _ => TransportChoice::Auto,
    };
    let config = Config {
        transport,
        ..Config::default()
    };
    let session = Session::mount(Arc::new(Null), Path::new(dir), &config)?;
    println!("mounted over {}", session.info().transport);
    session.wait();
    Ok(())
}
