//! Requests as `hf1_perform` takes them: words and blobs.
//!
//! A request is its code, the number of its words, the number of its blobs, then its own words.
//! `schema/*.sql` describes them function by function. No word is absent: an option is a flag or a
//! bit of a mask, and its value is 0 without it.

mod attributes;
mod content;
mod words;

use crate::connections::Encoded;
use crate::meta::Request;
use holdfast_types::{Errno, RenameFlags, Result, XattrSet};
use words::Encoder;

pub(super) use words::number;

/// Encodes a request.
///
/// # Errors
/// `EINVAL`: it makes no sense, in whatever state the database is.
pub(super) fn encode(request: &Request) -> Result<Encoded> {
    let mut to = Encoder {
        words: vec![0; 3],
        blobs: Vec::new(),
    };
    let code = match request {
        Request::Make { .. } => 1,
        Request::MakeUnnamed { .. } => 2,
        Request::Link { .. } => 3,
        Request::Remove { .. } => 4,
        Request::Rename { .. } => 5,
        Request::SetAttributes { .. } => 6,
        Request::SetXattr { .. } => 7,
        Request::RemoveXattr { .. } => 8,
        Request::Flush(_) => 9,
    };
    match code {
        ..=5 => to.request_of_names(request)?,
        _ => to.request_of_inode(request)?,
    }
    let counts = (to.words.len(), to.blobs.len());
    to.words[..3].copy_from_slice(&[code, counts.0 as i64, counts.1 as i64]);
    Ok(Encoded {
        words: to.words,
        blobs: to.blobs,
    })
}

impl Encoder {
    /// A request that makes, moves or removes a name or an inode.
    fn request_of_names(&mut self, request: &Request) -> Result<()> {
        match request {
            Request::Make { dir, name, new } => {
                self.push_number(dir.0);
                self.push_name(name)?;
                self.push_inode(new);
            }
            Request::MakeUnnamed { dir, new } => {
                self.push_number(dir.0);
                self.push_inode(new);
            }
            Request::Link {
                ino,
                dir,
                name,
                cookie,
            } => {
                self.push_number(ino.0);
                self.push_number(dir.0);
                self.push_number(*cookie);
                self.push_name(name)?;
            }
            Request::Remove {
                dir,
                name,
                directory,
            } => {
                self.push_number(dir.0);
                self.words.push((*directory).into());
                self.push_blob(name);
            }
            Request::Rename {
                from,
                to,
                flags,
                cookie,
                whiteout,
            } => {
                self.push_number(from.0.0);
                self.push_number(to.0.0);
                self.words.push(flags.bits().into());
                self.push_number(*cookie);
                self.push_blob(&from.1);
                self.push_name(&to.1)?;
                let wanted = flags.contains(RenameFlags::WHITEOUT);
                self.words.push(wanted.into());
                if wanted {
                    self.push_inode(whiteout.as_ref().ok_or(Errno::EINVAL)?);
                }
            }

            _ => return Err(Errno::EINVAL),
        }
        Ok(())
    }

    /// A request that changes one inode.
    fn request_of_inode(&mut self, request: &Request) -> Result<()> {
        match request {
            Request::SetAttributes { ino, change } => {
                self.push_number(ino.0);
                self.push_change(change);
            }
            Request::SetXattr {
                ino,
                name,
                value,
                how,
                perm,
            } => {
                self.push_number(ino.0);
                self.words.push(match how {
                    XattrSet::Any => 0,
                    XattrSet::Create => 1,
                    XattrSet::Replace => 2,
                });
                self.push_blob(name);
                self.words.push(value.is_some().into());
                value.iter().for_each(|value| self.push_blob(value));
                self.words.push(perm.is_some().into());
                self.words.push(perm.unwrap_or(0).into());
            }
            Request::RemoveXattr { ino, name } => {
                self.push_number(ino.0);
                self.push_blob(name);
            }
            Request::Flush(flush) => {
                self.push_flush(flush)?;
            }
            _ => return Err(Errno::EINVAL),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::{Change, Edit, Flush, NewInode, Size};
    use holdfast_types::{FileFlags, FileType, Ino, SetTime, Time};

    #[test]
    fn each_request_states_its_length() {
        let new = NewInode {
            ino: Ino(u64::MAX),
            kind: FileType::Symlink,
            perm: 0o777,
            uid: u32::MAX,
            gid: 7,
            rdev: 0,
            flags: FileFlags::empty(),
            project: 0,
            target: Some((*b"to").into()),
            xattrs: vec![((*b"a").into(), (*b"b").into())],
        };
        let name = Box::from(*b"n");
        let make = encode(&Request::Make {
            dir: Ino(1),
            name,
            new,
        });
        let make = make.unwrap();
        assert_eq!(
            make.words,
            [1, 14, 4, 1, i64::MAX, 10, 0o777, -1, 7, 0, 0, 0, 1, 1]
        );
        let blobs: [&[u8]; 4] = [b"n", b"to", b"a", b"b"];
        assert_eq!(make.blobs, blobs);
        let change = Change {
            mtime: Some(SetTime::Now),
            acl: Some((*b"acl").into()),
            ..Change::default()
        };
        let flush = Request::Flush(Flush {
            ino: Ino(2),
            generation: 3,
            edit: Edit::Map {
                cut: None,
                clear: vec![(4096, 8192)],
                add: vec![],
                objects: vec![(5, 6)],
            },
            size: Some(Size::AtLeast(9)),
            changed: Some(Time(4)),
            change,
        });
        let flush = encode(&flush).unwrap();
        let head = [9, 27, 1, 2, 3, 3, 1, 9, 1, 4, 64 | 512];
        assert_eq!(flush.words[..11], head);
        assert_eq!(flush.words[18..], [0, 0, 1, 4096, 12288, 0, 1, 5, 6]);
    }
}
