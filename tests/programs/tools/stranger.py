"""As another user, connects with every job of the machine, and sends a request and more. Nobody answers."""
import os
import socket

with open("/proc/net/unix") as table:
    rows = [line.split() for line in table]
names = [row[7][1:] for row in rows if len(row) > 7 and row[7].startswith("@cohort-control-")]
os.setuid(65534)
answers = 0
for name in names * 20:
    with socket.socket(socket.AF_UNIX) as job:
        job.setblocking(False)
        try:
            job.connect("\0" + name)
            job.setblocking(True)
            job.settimeout(10)
            job.sendall(b"chrt\1\0\1\0\0\0\0\0" + bytes(4096))
            answers += len(job.recv(1))
        except OSError:
            # Dropped, or not let in while the job rests from the one before.
            pass
print(f"{answers} answers from {len(set(names))} jobs" if names else "no jobs")
