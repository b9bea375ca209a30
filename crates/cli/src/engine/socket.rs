//! A socket of messages that can carry a descriptor.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

/// Bytes of a message, at most.
pub(super) const MESSAGE_MAX: usize = 64 << 10;
/// Descriptors with a message.
const DESCRIPTORS: usize = 1;

/// A connected socket.
#[derive(Debug)]
pub(super) struct Socket(OwnedFd);

/// A listening socket for one connection.
#[derive(Debug)]
pub(super) struct Listener {
    socket: OwnedFd,
    name: Vec<u8>,
}

fn make() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        flags,
        None,
    )?)
}

impl Listener {
    /// Listens under a random name in the abstract namespace.
    ///
    /// # Errors
    /// Those of socket(2), bind(2), listen(2).
    pub(super) fn new() -> io::Result<Self> {
        let mut random = [0; 16];
        let random =
            match rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())? {
                16 => u128::from_le_bytes(random),
                _ => return Err(io::Error::other("no random bytes")),
            };
        let name = format!("holdfast-{random:032x}").into_bytes();
        let socket = make()?;
        rustix::net::bind(&socket, &SocketAddrUnix::new_abstract_name(&name)?)?;
        rustix::net::listen(&socket, 1)?;
        Ok(Self { socket, name })
    }

    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }

    /// Waits for a connection; `None` if none comes within the time.
    ///
    /// # Errors
    /// Those of poll(2) and accept(2).
    pub(super) fn accept(&self, timeout: Duration) -> io::Result<Option<Socket>> {
        if !wait(&self.socket, PollFlags::IN, timeout)? {
            return Ok(None);
        }
        let socket = rustix::net::accept_with(&self.socket, SocketFlags::CLOEXEC)?;
        Ok(Some(Socket(socket)))
    }
}

impl Socket {
    /// Connects to a listener of this name.
    ///
    /// # Errors
    /// `ECONNREFUSED` if there is none in this network namespace.
    pub(super) fn connect(name: &[u8]) -> io::Result<Self> {
        let socket = make()?;
        rustix::net::connect(&socket, &SocketAddrUnix::new_abstract_name(name)?)?;
        Ok(Self(socket))
    }

    /// Process and user of the peer.
    ///
    /// # Errors
    /// Those of getsockopt(2).
    pub(super) fn peer(&self) -> io::Result<(u32, u32)> {
        let peer = rustix::net::sockopt::socket_peercred(&self.0)?;
        Ok((peer.pid.as_raw_pid().cast_unsigned(), peer.uid.as_raw()))
    }

    /// Waits until a message can be received or the peer is gone; `false` after the time.
    ///
    /// # Errors
    /// Those of poll(2).
    pub(super) fn wait(&self, timeout: Duration) -> io::Result<bool> {
        wait(&self.0, PollFlags::IN, timeout)
    }

    /// Sends a message, and a descriptor with it.
    ///
    /// # Errors
    /// `EPIPE` when the peer is gone.
    pub(super) fn send(&self, message: &[u8], descriptor: Option<&OwnedFd>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        let descriptors: Vec<_> = descriptor.iter().map(|fd| fd.as_fd()).collect();
        if !descriptors.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(&descriptors)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let sent = rustix::net::sendmsg(
            &self.0,
            &[IoSlice::new(message)],
            &mut beside,
            SendFlags::NOSIGNAL,
        )?;
        if sent == message.len() {
            Ok(())
        } else {
            Err(io::ErrorKind::WriteZero.into())
        }
    }

    /// Receives a message; `None` when the peer is gone.
    ///
    /// # Errors
    /// `InvalidData` for one that is too long.
    pub(super) fn receive(&self) -> io::Result<Option<(Vec<u8>, Option<OwnedFd>)>> {
        let mut message = vec![0; MESSAGE_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = loop {
            let mut slices = [IoSliceMut::new(&mut message)];
            match rustix::net::recvmsg(&self.0, &mut slices, &mut beside, flags) {
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::CONNRESET) => return Ok(None),
                received => break received?,
            }
        };
        if received.flags.contains(ReturnFlags::TRUNC) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut descriptor = None;
        for message in beside.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                descriptor = descriptors.last();
            }
        }
        message.truncate(received.bytes);
        Ok((received.bytes > 0).then_some((message, descriptor)))
    }
}

/// Waits until a descriptor is ready or has an error; `false` after the time.
///
/// # Errors
/// Those of poll(2).
pub(super) fn wait(fd: impl AsFd, flags: PollFlags, timeout: Duration) -> io::Result<bool> {
    let mut fds = [PollFd::new(&fd, flags)];
    let timeout = Timespec {
        tv_sec: timeout.as_secs().cast_signed(),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    match poll(&mut fds, Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn messages_come_whole_with_their_descriptors() {
        let listener = Listener::new().unwrap();
        let client = Socket::connect(listener.name()).unwrap();
        let server = listener.accept(Duration::from_secs(60)).unwrap().unwrap();
        assert_eq!(server.peer().unwrap().0, std::process::id());
        let file = tempfile::tempfile().unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"content", 0).unwrap();
        client.send(b"one", Some(&file.into())).unwrap();
        client.send(b"two", None).unwrap();
        let (one, descriptor) = server.receive().unwrap().unwrap();
        let mut content = String::new();
        std::fs::File::from(descriptor.unwrap())
            .read_to_string(&mut content)
            .unwrap();
        assert_eq!((&one[..], &content[..]), (&b"one"[..], "content"));
        assert!(matches!(server.receive().unwrap(), Some((two, None)) if two == b"two"));
        assert!(!server.wait(Duration::ZERO).unwrap());
        drop(client);
        assert!(server.wait(Duration::from_secs(60)).unwrap());
        assert!(server.receive().unwrap().is_none());
        assert!(server.send(b"x", None).is_err());
        let name = listener.name().to_vec();
        drop(listener);
        assert!(Socket::connect(&name).is_err());
    }
}
