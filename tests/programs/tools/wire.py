"""A bad wire between two network namespaces: wire.py FIRST SECOND [FAULT=VALUE ...]

Takes the place of their `eth0` by interfaces of its own (TAP) with the same addresses, says "ready", and passes frames
on until it is killed. Faults, in percent of all frames: lost, doubled, swapped (later than its followers), broken (one
bit is another). `delay` is in milliseconds; `rate` in KB/s, with frames lost beyond a queue of 64, as a switch has it.

And what firewalls do, without a word: `cut=KB` passes nothing more of a TCP connection that has carried so much,
`closed=1` no beginning of one that leads to the second end (0: the first; 2: to either), and to a port from
47000 to 47099.
"""

import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time

TUNSETIFF, IFF_TAP, IFF_NO_PI, CLONE_NEWNET = 0x400454CA, 2, 0x1000, 0x40000000
QUEUE = 64
libc = ctypes.CDLL(None, use_errno=True)


def ip(*words):
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


def tap(namespace):
    """A new `eth0` of a namespace, with the address of the old one."""
    address = ip("-n", namespace, "-o", "-4", "address", "show", "dev", "eth0").split("inet ")[1].split()[0]
    ip("-n", namespace, "link", "delete", "eth0")
    with open(f"/run/netns/{namespace}") as place:
        if libc.setns(place.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), namespace)
    wire = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(wire, TUNSETIFF, struct.pack("16sH22x", b"eth0", IFF_TAP | IFF_NO_PI))
    ip("-n", namespace, "address", "add", address, "dev", "eth0")
    ip("-n", namespace, "link", "set", "eth0", "up")
    return wire


class Direction:
    """Frames on their way to one end."""

    def __init__(self, end):
        self.end, self.frames, self.free_at, self.number = end, [], 0.0, 0

    def take(self, frame, faults, chance):
        now = time.monotonic()
        if chance("lost"):
            return
        if chance("broken") and len(frame) > 60:
            at = random.randrange(34, len(frame))
            frame = frame[:at] + bytes([frame[at] ^ 1 << random.randrange(8)]) + frame[at + 1 :]
        due = now + faults.get("delay", 0) / 1000
        if "rate" in faults:
            if len(self.frames) >= QUEUE:
                return
            self.free_at = max(self.free_at, now) + len(frame) / 1000 / faults["rate"]
            due = max(due, self.free_at)
        if chance("swapped"):
            due += 0.003
        for _ in range(2 if chance("doubled") else 1):
            self.number += 1
            heapq.heappush(self.frames, (due, self.number, frame))

    def give(self):
        """Frames whose time has come; seconds until the next."""
        while self.frames and self.frames[0][0] <= time.monotonic():
            try:
                os.write(self.end, heapq.heappop(self.frames)[2])
            except BlockingIOError:
                pass
        return max(0.0, self.frames[0][0] - time.monotonic()) if self.frames else 1.0


class Firewall:
    """Which frames it drops."""

    def __init__(self, faults):
        self.cut, self.closed, self.carried = faults.get("cut"), faults.get("closed"), {}

    def drops(self, frame, end):
        if frame[12:14] != b"\x08\x00" or frame[23] != 6:
            return False
        start = 14 + (frame[14] & 15) * 4
        port = frame[start + 2] << 8 | frame[start + 3]
        begins = frame[start + 13] & 0x12 == 2 and 47000 <= port < 47100
        if begins and self.closed in (end, 2):
            return True
        if self.cut is None:
            return False
        ends = frozenset((frame[26:30] + frame[start : start + 2], frame[30:34] + frame[start + 2 : start + 4]))
        self.carried[ends] = self.carried.get(ends, 0) + len(frame)
        return self.carried[ends] > self.cut * 1000


def main():
    faults = {name: float(value) for name, value in (word.split("=") for word in sys.argv[3:])}
    ends = [tap(namespace) for namespace in sys.argv[1:3]]
    ways = {ends[0]: Direction(ends[1]), ends[1]: Direction(ends[0])}
    firewall = Firewall(faults)
    print("ready", flush=True)
    while True:
        wait = min(way.give() for way in ways.values())
        for end in select.select(ends, [], [], wait)[0]:
            for _ in range(16):
                try:
                    frame = os.read(end, 65536)
                except BlockingIOError:
                    break
                if firewall.drops(frame, 1 - ends.index(end)):
                    continue
                ways[end].take(frame, faults, lambda name: random.random() * 100 < faults.get(name, 0))


main()
