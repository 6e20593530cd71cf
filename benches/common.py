"""What the benchmarks share: running a command with a limit, medians, Markdown tables."""

import os
import pathlib
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CPUS = len(os.sched_getaffinity(0))


def cache():
    """The folder that tools/cache.sh fills."""
    if "TEST_COHORT_CACHE" in os.environ:
        return pathlib.Path(os.environ["TEST_COHORT_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "cohort"


def run(command, env=None, seconds=120):
    """Standard output of a command, or None (with a note) when it fails or takes too long."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("COHORT_")}
    clean.update(env or {})
    command = [str(word) for word in command]
    try:
        process = subprocess.Popen(
            command, env=clean, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
    except OSError as error:
        print(f"{command[0]}: {error}", file=sys.stderr)
        return None
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        print(f"no end within {seconds} s: {' '.join(command)}", file=sys.stderr)
        return None
    if process.returncode != 0:
        print(f"exit code {process.returncode}: {' '.join(command)}\n{err[-1500:]}", file=sys.stderr)
        return None
    return out


def build(compiler, source, output, *options):
    """Compiles a C program or ends the benchmark."""
    command = [str(compiler), "-O2", "-std=gnu11", "-o", str(output), str(source), *map(str, options)]
    subprocess.run(command, check=True)
    return output


def table(head, rows):
    """Prints a Markdown table."""
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, ["-" * width for width in widths], *rows]:
        print("| " + " | ".join(str(cell).ljust(width) for cell, width in zip(row, widths)) + " |")
