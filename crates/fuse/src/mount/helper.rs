//! Mounting by `fusermount3`, for users other than root.

use super::{AtimeOption, MountError, MountOptions, UmountError, holders::holders};
use rustix::{
    io::{FdFlags, fcntl_setfd},
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags,
        SocketType, recvmsg, socketpair,
    },
};
use std::{
    ffi::OsString,
    io::{self, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
    process::{Command, Output, Stdio},
};

const HELPER: &str = "fusermount3";

/// Mounts by the helper; gives the device it opened.
pub(super) fn mount(dir: &Path, options: &MountOptions) -> Result<OwnedFd, MountError> {
    let start = |source: io::Error| MountError::Start { source };
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(|code| start(code.into()))?;
    // This end goes to the helper, by its number.
    fcntl_setfd(&theirs, FdFlags::empty()).map_err(|code| start(code.into()))?;
    let child = Command::new(HELPER)
        .arg("-o")
        .arg(words(options))
        .arg("--")
        .arg(dir)
        .env("_FUSE_COMMFD", theirs.as_raw_fd().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    drop(theirs);
    let child = child.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => MountError::NoHelper,
        _ => start(error),
    })?;
    let device = receive(&ours).map_err(start);
    let output = child.wait_with_output().map_err(start)?;
    match device? {
        Some(device) if output.status.success() => Ok(device),
        _ => Err(MountError::Helper {
            message: message(&output),
        }),
    }
}

/// The options as `fusermount3 -o` takes them.
fn words(options: &MountOptions) -> OsString {
    let flags = [
        (options.read_only, "ro"),
        (options.nosuid, "nosuid"),
        (options.nodev, "nodev"),
        (options.noexec, "noexec"),
        (options.sync, "sync"),
        (options.dirsync, "dirsync"),
        (options.atime == AtimeOption::None, "noatime"),
        // Versions of it that do not know this refuse it.
        (options.nosymfollow, "nosymfollow"),
        (options.default_permissions, "default_permissions"),
        (options.allow_other == Some(true), "allow_other"),
    ];
    let given = flags.into_iter().filter(|(given, _)| *given);
    let mut words: Vec<String> = given.map(|(_, word)| word.into()).collect();
    let escaped = |text: &str| text.replace('\\', "\\\\").replace(',', "\\,");
    words.push(format!("fsname={}", escaped(&options.fsname)));
    words.push(format!("subtype={}", escaped(&options.subtype)));
    if options.max_read != 0 {
        words.push(format!("max_read={}", options.max_read));
    }
    words.join(",").into()
}

/// The descriptor that the helper sends, or `None` if it closes the socket.
fn receive(socket: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut data = [IoSliceMut::new(&mut byte)];
    let got = recvmsg(socket, &mut data, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    if got.bytes == 0 {
        return Ok(None);
    }
    Ok(control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    }))
}

/// Unmounts by the helper.
pub(super) fn unmount(dir: &Path, lazy: bool) -> Result<(), UmountError> {
    let mut command = Command::new(HELPER);
    command.arg("-u");
    if lazy {
        command.arg("-z");
    }
    let output = command.arg("--").arg(dir).stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(refusal(dir, message(&output))),
        Err(_) => Err(UmountError::NotPermitted {
            dir: dir.to_owned(),
        }),
    }
}

/// The error for a message of the helper, which has no other error codes.
fn refusal(dir: &Path, message: String) -> UmountError {
    if message.contains("Device or resource busy") {
        UmountError::Busy {
            dir: dir.to_owned(),
            holders: holders(dir),
        }
    } else {
        UmountError::Helper { message }
    }
}

fn message(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    match text.trim() {
        "" => format!("{}", output.status),
        text => text.trim_start_matches("fusermount3: ").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_in_use_is_told_from_other_failures() {
        let refused = |text: &str| refusal(Path::new("/nowhere"), text.to_owned());
        let busy = refused("failed to unmount /nowhere: Device or resource busy");
        assert!(matches!(busy, UmountError::Busy { .. }), "{busy}");
        let other = refused("entry for /nowhere not found in /etc/mtab");
        assert!(other.to_string().contains("not found"), "{other}");
    }
}
