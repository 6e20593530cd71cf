"""Ranks of an interpreter without mpi4py: each is a process of its own with its own state."""

import os
import pathlib
import sys
import tempfile
import time

board = pathlib.Path(tempfile.gettempdir()) / f"cohort-who-{os.getppid()}"
board.mkdir(exist_ok=True)
(board / str(os.getpid())).touch()
deadline = time.monotonic() + 20
while len(list(board.iterdir())) < 4 and time.monotonic() < deadline:
    time.sleep(0.01)
pids = sorted(int(entry.name) for entry in board.iterdir())
time.sleep(0.2)
if os.getpid() == pids[-1]:
    for entry in board.iterdir():
        entry.unlink()
    board.rmdir()
    print(len(pids), "different processes")
sys.exit(0 if len(pids) == 4 else 1)
