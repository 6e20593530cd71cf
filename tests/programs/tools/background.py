"""Runs a command in the background of a terminal until that has stopped it, as it reads there. After some seconds the
command comes to the foreground, where it finds a line and the end of the input.
    background.py SECONDS COMMAND..."""
import os
import pty
import signal
import sys
import time


def shell(seconds, command):
    """What a shell does for `command &` and `fg`: the status."""
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.execvp(command[0], command)
    try:
        os.setpgid(job, job)
    except PermissionError:
        pass  # It has done so itself.
    _, status = os.waitpid(job, os.WUNTRACED)
    if not os.WIFSTOPPED(status) or os.WSTOPSIG(status) != signal.SIGTTIN:
        print("the terminal has not stopped it")
        return 99
    time.sleep(seconds)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.tcsetpgrp(0, job)
    os.killpg(job, signal.SIGCONT)
    _, status = os.waitpid(job, 0)
    return os.waitstatus_to_exitcode(status)


def main():
    child, terminal = pty.fork()
    if child == 0:
        status = shell(float(sys.argv[1]), sys.argv[2:])
        sys.stdout.flush()
        os._exit(status)
    os.write(terminal, b"a line\n\x04")
    try:
        while text := os.read(terminal, 4096):
            sys.stdout.buffer.write(text)
    except OSError:
        pass  # All that had it open have ended.
    sys.stdout.flush()
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


main()
