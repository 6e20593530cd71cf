"""Listens to the network interface of a host while a command runs there: `wiretap.py MODE INTERFACE COMMAND...`

`read` counts how often a text that `secrets.c` sends is on the wire. `add` puts some bytes of its own into each
connection that has carried much, once it pauses: the other end takes them for the sender's.
"""

import os
import select
import socket
import struct
import subprocess
import sys
import time

TEXT = bytes(range(ord("A"), ord("A") + 24))
MUCH = 1 << 20
PAUSE = 0.5
TCP = 6


def segment(frame):
    """The connection, sequence number, acknowledgement and data of an Ethernet frame with TCP over IPv4."""
    if frame[12:14] != b"\x08\x00" or frame[23] != TCP:
        return None
    internet = frame[14:14 + struct.unpack("!H", frame[16:18])[0]]
    tcp = internet[(internet[0] & 15) * 4:]
    source, target, number, acknowledged = struct.unpack("!HHII", tcp[:12])
    return (internet[12:16], internet[16:20], source, target), number, acknowledged, tcp[(tcp[12] >> 4) * 4:]


def checksum(data):
    words = struct.unpack(f"!{len(data) // 2}H", data)
    total = sum(words)
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def add(connection, number, acknowledged):
    """Sends bytes as the connection's sender would."""
    own, other, source, target = connection
    data = os.urandom(256)

    def tcp(total):
        return struct.pack("!HHIIBBHHH", source, target, number, acknowledged, 5 << 4, 0x18, 512, total, 0) + data
    pseudo = own + other + struct.pack("!HH", TCP, len(tcp(0)))
    packet = tcp(checksum(pseudo + tcp(0)))
    internet = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(packet), 1, 0, 64, TCP, 0, own, other)
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        raw.sendto(internet + packet, (socket.inet_ntoa(other), 0))


class Tap:
    """What goes out of an interface."""

    def __init__(self, interface):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self.socket.bind((interface, 0))
        self.socket.setblocking(False)
        self.seen = self.bytes = 0
        # Of each connection: bytes, the next number, the last acknowledgement, and when.
        self.connections = {}

    def take(self):
        while True:
            try:
                frame, address = self.socket.recvfrom(1 << 17)
            except BlockingIOError:
                return
            parts = segment(frame)
            if parts is None or address[2] != socket.PACKET_OUTGOING:
                continue
            connection, number, acknowledged, data = parts
            self.seen += data.count(TEXT)
            self.bytes += len(data)
            former = self.connections.get(connection, (0, 0, 0, 0))[0]
            following = (number + len(data)) & 0xffffffff
            self.connections[connection] = former + len(data), following, acknowledged, time.monotonic()

    def add_in_pauses(self, done):
        for connection, (count, number, acknowledged, when) in self.connections.items():
            if count > MUCH and connection not in done and time.monotonic() - when > PAUSE:
                done.add(connection)
                add(connection, number, acknowledged)


def main():
    mode, interface, *command = sys.argv[1:]
    tap, done = Tap(interface), set()
    with subprocess.Popen(command, close_fds=False) as child:
        while child.poll() is None:
            select.select([tap.socket], [], [], 0.05)
            tap.take()
            if mode == "add":
                tap.add_in_pauses(done)
        tap.take()
    print(f"tap: {tap.bytes > MUCH and 'much' or 'little'} was sent, the text {tap.seen > 0 and 'in clear' or 'never'}",
          flush=True)
    sys.exit(child.returncode)


main()
