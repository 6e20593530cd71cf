"""Runs a command whose standard error does not block and is full, until somebody reads a second later; then prints
what came."""

import os
import subprocess
import sys
import time

source, sink = os.pipe()
os.set_blocking(sink, False)
filled = 0
try:
    while True:
        filled += os.write(sink, b"x")
except BlockingIOError:
    pass
with subprocess.Popen(sys.argv[1:], stderr=sink) as job:
    os.close(sink)
    time.sleep(1)
    with open(source, "rb") as reader:
        text = reader.read()
print(text[filled:].decode())
sys.exit(job.returncode)
