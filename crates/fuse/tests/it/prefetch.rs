//! Prefetch by ioctl(2) on an open directory, as docs/book/reference/prefetch.md tells programs to.

use crate::support::{on_each_transport, python};
use std::fs;

/// Goes over a directory of 10 files by 4, then asks for what is refused.
const SCRIPT: &str = r#"
import errno, fcntl, os, struct, sys
top, PREFETCH = sys.argv[1], 0xC03868F7
def ask(fd, cursor=0, entries=0, size=56, flags=0, more=0, command=PREFETCH):
    asked = struct.pack("IIQQQQQQ", size, flags, cursor, entries, more, 77, 0, more)
    try:
        answer = struct.unpack("IIQQQQQQ", fcntl.ioctl(fd, command, asked))
    except OSError as error:
        return errno.errorcode[error.errno]
    return answer[2], answer[5]
def expect(what, got, wanted):
    if got != wanted:
        sys.exit("%s: %r, not %r" % (what, got, wanted))
directory = os.open(top + "/dir", os.O_RDONLY)
cursor, passed = 0, []
while True:
    before = cursor
    cursor, done = ask(directory, cursor, 4)
    if done == 0:
        break
    passed.append(done)
expect("parts", passed, [4, 4, 2])
expect("the cursor at the end", cursor, before)
expect("a batch", ask(directory)[1], 10)
expect("a size", ask(directory, size=48), "EINVAL")
expect("a flag", ask(directory, flags=8), "EINVAL")
expect("a reserved field", ask(directory, more=1), "EINVAL")
expect("another command", ask(directory, command=PREFETCH + 1), "ENOTTY")
expect("a file", ask(os.open(top + "/dir/0", os.O_RDONLY)), "ENOTTY")
expect("the root", ask(os.open(top, os.O_RDONLY))[1], 1)
os.chmod(top + "/dir", 0o744)
expect("the superuser", ask(directory)[1], 10)
os.setgroups([])
os.setgid(1000)
os.setuid(1000)
expect("without permission to search", ask(directory), "EACCES")
"#;

#[test]
fn a_program_prefetches_by_a_directory_that_it_has_open() {
    on_each_transport(
        |_| (),
        |_, _, dir| {
            fs::create_dir(dir.join("dir")).unwrap();
            for number in 0..10 {
                fs::write(dir.join(format!("dir/{number}")), b"x").unwrap();
            }
            python(SCRIPT, dir);
        },
    );
}
