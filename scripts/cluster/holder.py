"""Keeps a file open, with bytes that were not stored: FILE SIGNAL.

Waits until the file SIGNAL exists. Then fsync must tell that the bytes are lost.
"""

import errno
import os
import sys
import time

fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o644)
os.write(fd, b"first\n")
os.fsync(fd)
os.write(fd, b"dirty\n")
with open(sys.argv[2] + ".ready", "w", encoding="ascii"):
    pass
while not os.path.exists(sys.argv[2]):
    time.sleep(0.05)
try:
    os.fsync(fd)
except OSError as error:
    sys.exit(error.errno not in (errno.ESTALE, errno.EIO))
sys.exit("fsync succeeds")
