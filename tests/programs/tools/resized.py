"""Runs a command in a terminal whose size changes once, and says how often its rank hears of that.
    resized.py COMMAND...    the command runs `resized.py --rank`"""
import fcntl
import os
import pty
import signal
import struct
import sys
import termios

HEARD = []


def rank():
    signal.signal(signal.SIGWINCH, lambda *_: (HEARD.append(1), print("resized", flush=True)))
    signal.signal(signal.SIGUSR1, lambda *_: (print(f"heard {len(HEARD)} times", flush=True), os._exit(0)))
    print("ready", flush=True)
    while True:
        signal.pause()


def until(terminal, word, text=b""):
    """What the terminal shows up to a word."""
    while word not in text:
        text += os.read(terminal, 4096)
    return text


def main():
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(sys.argv[1], sys.argv[1:])
    until(terminal, b"ready")
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    until(terminal, b"resized")
    # Behind what is passed on of the other signal.
    os.kill(child, signal.SIGUSR1)
    print(until(terminal, b" times").decode())
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


rank() if sys.argv[1] == "--rank" else main()
