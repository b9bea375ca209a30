//! Files that programs have mapped.

use super::{on_each_transport, on_each_transport_with, python};
use std::fs;

#[test]
fn a_mapped_file_open_for_appending_is_written_in_place() {
    on_each_transport(|_, _, dir| {
        let path = dir.join("file");
        fs::write(&path, vec![b'-'; 8192]).unwrap();
        let script = "
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_APPEND)
m = mmap.mmap(fd, 8192)
m[4096:4101] = b'hello'
m.flush()
";
        python(script, &path);
        let data = fs::read(&path).unwrap();
        assert_eq!(data.len(), 8192);
        assert_eq!(&data[4096..4101], b"hello");
    });
}

/// Two processes have the file mapped, and the one that sets the time many others as well.
#[test]
fn a_time_that_is_set_after_a_store_through_a_mapping_stays() {
    on_each_transport(|_, _, dir| {
        for others in [0, 3, 100] {
            let path = dir.join(format!("file{others}"));
            fs::write(&path, vec![b'-'; 8192]).unwrap();
            let script = format!(
                "
import mmap, os, sys
path = sys.argv[1]
held = []
for n in range({others}):
    with open(path + str(n), 'w+b') as other:
        other.truncate(4096)
        held.append(mmap.mmap(other.fileno(), 4096))
        held[-1][0] = 1
fd = os.open(path, os.O_RDWR)
m = mmap.mmap(fd, 8192)
for length in 1, 5:
    m[4096:4096 + length] = b'hello'[:length]
    os.utime(path if length == 1 else fd, (1000, 1000))
    m.flush()
    assert os.stat(path).st_mtime == 1000, os.stat(path)
# What is stored later moves it.
m[0:1] = b'x'
m.flush()
assert os.stat(path).st_mtime > 1000, os.stat(path)
m[1:2] = b'y'
m.close()
os.utime(fd, (1000, 1000))
os.close(fd)
assert os.stat(path).st_mtime == 1000, os.stat(path)
"
            );
            python(&script, &path);
            let data = fs::read(&path).unwrap();
            assert_eq!((&data[..2], &data[4096..4101]), (&b"xy"[..], &b"hello"[..]));
        }
    });
}

/// Each waits for a write of the kernel's, which needs a thread as well, and all come by one
/// processor's queue.
#[test]
fn times_are_set_after_stores_by_more_processes_than_there_are_threads() {
    on_each_transport_with(&|config| config.threads_max = 1, |_, _, dir| {
        let script = "
import mmap, os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
children = []
for n in range(24):
    child = os.fork()
    if child == 0:
        path = sys.argv[1] + str(n)
        with open(path, 'w+b') as file:
            file.truncate(4096)
            m = mmap.mmap(file.fileno(), 4096)
            for time in range(1, 40):
                m[0] = time
                os.utime(path, (time, time))
                m.flush()
                if os.stat(path).st_mtime != time:
                    print(path, time, os.stat(path), file=sys.stderr)
                    os._exit(1)
        os._exit(0)
    children.append(child)
sys.exit(sum(os.waitpid(child, 0)[1] != 0 for child in children))
";
        python(script, &dir.join("file"));
    });
}
