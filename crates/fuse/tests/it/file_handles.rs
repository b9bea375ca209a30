//! Files that are opened by a handle alone, as NFS servers and backup programs do.

use crate::support::{on_each_transport, python};
use std::fs;

/// Takes a handle of each path, has the kernel forget unused inodes, and opens the handles again.
/// Then removes the last file and expects its handle to be stale.
const SCRIPT: &str = r#"
import ctypes, errno, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint), ("kind", ctypes.c_int), ("data", ctypes.c_ubyte * 128)]
def take(path):
    handle, mount = Handle(), ctypes.c_int()
    handle.bytes = 128
    if libc.name_to_handle_at(-100, path.encode(), ctypes.byref(handle), ctypes.byref(mount), 0):
        sys.exit(path + ": " + os.strerror(ctypes.get_errno()))
    return handle
top = os.open(sys.argv[1], os.O_RDONLY)
def opened(handle):
    return libc.open_by_handle_at(top, ctypes.byref(handle), os.O_RDONLY)
paths = [sys.argv[1] + name for name in ("", "/dir", "/dir/file")]
numbers = [os.stat(path).st_ino for path in paths]
handles = [take(path) for path in paths]
with open("/proc/sys/vm/drop_caches", "w") as caches:
    caches.write("2")
for handle, number in zip(handles, numbers):
    fd = opened(handle)
    if fd < 0 or os.fstat(fd).st_ino != number:
        sys.exit("not opened: " + os.strerror(ctypes.get_errno()))
    os.close(fd)
os.unlink(paths[-1])
# The kernel holds the file until it has the answer to the last close, which it does not wait for.
for _ in range(1000):
    fd = opened(handles[-1])
    if fd < 0:
        break
    os.close(fd)
    time.sleep(0.01)
if fd >= 0 or ctypes.get_errno() != errno.ESTALE:
    sys.exit("a handle of what is gone: " + os.strerror(ctypes.get_errno()))
"#;

#[test]
fn handles_open_files_that_the_kernel_has_forgotten_and_are_stale_when_they_are_gone() {
    on_each_transport(
        |_| (),
        |_, _, dir| {
            fs::create_dir(dir.join("dir")).unwrap();
            fs::write(dir.join("dir/file"), b"x").unwrap();
            python(SCRIPT, dir);
        },
    );
}
