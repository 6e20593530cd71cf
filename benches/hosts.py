"""Two hosts on one machine: network namespaces joined by a pair of virtual interfaces."""

import os
import pathlib
import subprocess
import tempfile
import time

ADDRESSES = ("10.78.0.1", "10.78.0.2")


class Hosts:
    """A context. Where namespaces are forbidden, both hosts are addresses of the loopback interface."""

    def __init__(self):
        self.names = [f"cohort-bench{os.getpid()}-{host}" for host in range(2)]
        self.apart = self._make()
        self.addresses = ADDRESSES if self.apart else ("127.0.0.1", "127.0.0.2")
        self.interface = "eth0" if self.apart else "lo"
        self._folder = tempfile.TemporaryDirectory()
        self.launcher = pathlib.Path(self._folder.name) / "launcher"
        # What launchers take for ssh: skips options, takes the host, enters its namespace.
        enter = f'nsenter --net=/run/netns/{self.names[0][:-1]}$((${{host##*.}} - 1)) ' if self.apart else ""
        self.launcher.write_text(
            "#!/bin/sh\nwhile case $1 in -*) true ;; *) false ;; esac; do shift; done\nhost=$1\nshift\n"
            f'exec {enter}sh -c "$*"\n')
        self.launcher.chmod(0o755)

    def _make(self):
        """Whether the namespaces could be made."""
        first, second = self.names
        words = [
            f"netns add {first}", f"netns add {second}",
            f"link add eth0 netns {first} type veth peer name eth0 netns {second}",
            *(f"-n {name} address add {address}/24 dev eth0" for name, address in zip(self.names, ADDRESSES)),
            *(f"-n {name} link set {link} up" for name in self.names for link in ("lo", "eth0")),
        ]
        return all(self._ip(line) for line in words) and all(self._is_up(name) for name in self.names)

    @staticmethod
    def _is_up(name):
        """Whether the interface gets a carrier, which may come later than it is switched on."""
        for _ in range(500):
            shown = subprocess.run(["ip", "-n", name, "-o", "link", "show", "dev", "eth0"],
                                   stdout=subprocess.PIPE, text=True, check=False)
            if "state UP" in shown.stdout:
                return True
            time.sleep(0.01)
        return False

    @staticmethod
    def _ip(words):
        try:
            done = subprocess.run(["ip", *words.split()], stderr=subprocess.DEVNULL, check=False)
        except OSError:
            return False
        return done.returncode == 0

    def first(self):
        """What a command on the first host begins with."""
        return ["nsenter", f"--net=/run/netns/{self.names[0]}"] if self.apart else []

    def hydra(self, mpiexec):
        """Hydra's command, which deals processes out in turn; their number (-n) and the program are
        still to be added."""
        return [*self.first(), mpiexec, "-iface", self.interface, "-launcher", "ssh",
                "-launcher-exec", self.launcher, "-hosts", ",".join(self.addresses), "-ppn", 1]

    def open_mpi(self, mpiexec, each=1):
        """Open MPI's command for `each` processes on each host. Both hosts have one name, and its collectives through
        shared memory go by names: they would wait for ever."""
        hosts = ",".join(f"{address}:{each}" for address in self.addresses)
        return [*self.first(), mpiexec, "--prtemca", "plm_ssh_agent", self.launcher,
                "--prtemca", "prte_if_include", self.interface, "--host", hosts,
                "--mca", "btl_tcp_if_include", self.interface, "--mca", "coll", "^han,sm,smdirect,xhc"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in self.names:
            self._ip(f"netns del {name}")
        self._folder.cleanup()
