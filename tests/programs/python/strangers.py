"""Strangers at the port of a launcher, while its job starts.

    strangers.py PIP_EXEC end|signal [NAMESPACE_0 NAMESPACE_1 NAMESPACE_2]

Is the manager of a job of two nodes, by PMI-1. When node 0 listens and node 1 is to be told where, node 1 has to wait:
strangers of the third network namespace connect by thousands and say nothing, and others send megabytes. Then the
job goes on (`end`), or node 0 gets SIGTERM (`signal`). The last line says what became of it.
"""
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time

IDLE, TALKERS, SECONDS = 5000, 4, 4

FLOOD = f"""
import resource, socket, sys, threading, time
host, port = sys.argv[1], int(sys.argv[2])
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
limit = 20000 if limit == resource.RLIM_INFINITY else min(limit, 20000)
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
end, sent = time.monotonic() + {SECONDS}, 0
def talk():
    global sent
    while time.monotonic() < end:
        try:
            with socket.create_connection((host, port), 1) as stream:
                while time.monotonic() < end:
                    sent += stream.send(bytes(1 << 20))
        except OSError:
            pass
talkers = [threading.Thread(target=talk) for _ in range({TALKERS})]
for talker in talkers: talker.start()
idle = []
while len(idle) < min({IDLE}, limit - 100) and time.monotonic() < end:
    try: idle.append(socket.create_connection((host, port), 1))
    except OSError: pass
print("full", len(idle), flush=True)
for talker in talkers: talker.join()
print("sent", sent, flush=True)
sys.stdin.read()
"""


class Node:
    def __init__(self, index, words):
        self.index = index
        self.stream, end = socket.socketpair()
        variables = {"PMI_FD": end.fileno(), "PMI_RANK": index, "PMI_SIZE": 2}
        environment = os.environ | {name: str(value) for name, value in variables.items()}
        self.process = subprocess.Popen(words, env=environment, pass_fds=[end.fileno()], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        end.close()

    def listener(self):
        """Address and port at which it listens, or None."""
        with open(f"/proc/{self.process.pid}/net/tcp") as table:
            lines = [line.split() for line in list(table)[1:]]
        inodes = {os.readlink(entry.path) for entry in os.scandir(f"/proc/{self.process.pid}/fd")}
        for line in lines:
            if line[3] == "0A" and f"socket:[{line[9]}]" in inodes:
                address, port = line[1].split(":")
                return socket.inet_ntoa(bytes.fromhex(address)[::-1]), int(port, 16)
        return None

    def memory(self):
        """Resident memory in KiB."""
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(r"VmRSS:\s*(\d+)", status.read())[1])


values, barrier = {}, threading.Barrier(2)
held, released = threading.Event(), threading.Event()


def serve(node):
    def answer(text):
        node.stream.sendall(text.encode() + b"\n")

    for line in node.stream.makefile():
        fields = dict(field.split("=", 1) for field in line.split())
        match fields["cmd"]:
            case "init":
                answer("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0")
            case "get_maxes":
                answer("cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024")
            case "get_my_kvsname":
                answer("cmd=my_kvsname kvsname=space")
            case "get_appnum":
                answer("cmd=appnum rc=0 appnum=0")
            case "put":
                values[fields["key"]] = fields["value"]
                answer("cmd=put_result rc=0")
            case "barrier_in":
                barrier.wait()
                answer("cmd=barrier_out")
            case "get":
                if node.index == 1 and "door" in fields["key"]:
                    held.set()
                    released.wait()
                answer(f"cmd=get_result rc=0 value={values[fields['key']]}")
            case "finalize":
                answer("cmd=finalize_ack")
            case "abort":
                pass


def main():
    pip_exec, what, *namespaces = sys.argv[1:]
    enter = [["nsenter", f"--net=/run/netns/{name}"] for name in namespaces] or [[], [], []]
    job = [pip_exec, "--no-mpi", "-n", "1", "echo", "here"]
    nodes = [Node(index, enter[index] + job) for index in range(2)]
    for node in nodes:
        threading.Thread(target=serve, args=[node], daemon=True).start()
    assert held.wait(60), "node 1 was not told where node 0 listens"
    while not (listener := nodes[0].listener()):
        time.sleep(0.01)
    before = most = nodes[0].memory()
    host = listener[0]
    print("listens at", host)
    flood = subprocess.Popen(enter[2] + [sys.executable, "-c", FLOOD, host, str(listener[1])],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(flood.stdout))
    reader.start()
    while not any(line.startswith("full") for line in list(lines)):
        most = max(most, nodes[0].memory())
        time.sleep(0.01)
    print(*lines, f"{most - before} KiB more")
    if what == "signal":
        nodes[0].process.send_signal(signal.SIGTERM)
        # Its manager would now end the other node.
        nodes[0].process.wait(30)
        nodes[1].process.kill()
    else:
        released.set()
    said = [node.process.communicate(timeout=60) for node in nodes]
    flood.stdin.close()
    reader.join()
    flood.wait(60)
    print(*lines, *(text for both in said for text in both), sep="\n")
    statuses = [node.process.returncode for node in nodes]
    bounded = most - before < 16 << 10
    print("outcome:", *statuses, [text for text, _ in said], "bounded" if bounded else "unbounded")


main()
