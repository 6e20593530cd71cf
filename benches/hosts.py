"""Hosts on one machine: network namespaces, two joined by a pair of virtual interfaces, more by a bridge."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

# What each MPI is told so that nodes talk over TCP; and where ranks of a node share memory.
OPEN_MPI_TCP = ("--mca", "pml", "ob1", "--mca", "btl", "tcp,self")
OPEN_MPI_TCP_SHARED = (*OPEN_MPI_TCP[:-1], "tcp,self,sm")
MPICH_TCP = {"UCX_TLS": "tcp,self"}
INTEL_TCP = {"FI_PROVIDER": "tcp", "I_MPI_FABRICS": "ofi", "I_MPI_COLL_INTRANODE": "pt2pt", "I_MPI_PIN": "0"}
INTEL_TCP_SHARED = {"FI_PROVIDER": "tcp", "I_MPI_FABRICS": "shm:ofi", "I_MPI_PIN": "0"}

# What Open MPI is told on any machine: ranks may outnumber CPUs.
OPEN_MPI_CROWDED = ("--oversubscribe", "--bind-to", "none", *(("--allow-run-as-root",) if os.getuid() == 0 else ()))

# Settings in which ranks that wait leave the CPU to others.
OPEN_MPI_YIELDS = ("--mca", "mpi_yield_when_idle", "1")
MPICH_YIELDS = {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}
OPEN_MPI_FLAT = ("--mca", "coll", "^han,sm,smdirect,xhc")  # without collectives in shared memory
INTEL_YIELDS = ({"I_MPI_THREAD_YIELD": "2"}, {"I_MPI_THREAD_YIELD": "3", "I_MPI_THREAD_SLEEP": "10"})


class Hosts:
    """A context. Where namespaces are forbidden, hosts are addresses of the loopback interface. `link` are words of
    `tc` for what each host sends, such as `tbf rate 1gbit burst 512kb latency 20ms`."""

    def __init__(self, count=2, link=()):
        self.names = [f"cohort-bench{os.getpid()}-{host}" for host in range(count)]
        self.switch = f"cohort-bench{os.getpid()}-switch"
        self.addresses = [f"10.78.0.{host + 1}" for host in range(count)]
        self.apart = self._make()
        if not self.apart:
            self.addresses = [f"127.0.0.{host + 1}" for host in range(count)]
        self.interface = "eth0" if self.apart else "lo"
        self._folder = tempfile.TemporaryDirectory()
        self.launcher = pathlib.Path(self._folder.name) / "launcher"
        # What launchers take for ssh: skips options, takes the host, enters its namespace. Each has a name of its own:
        # Open MPI takes hosts of one name for one.
        number = "$((${host##*.} - 1))"
        enter = f"nsenter --net=/run/netns/{self.names[0][:-1]}{number} " if self.apart else ""
        named = f'unshare --uts sh -c "hostname node{number}; $*"' if self.apart else 'sh -c "$*"'
        self.launcher.write_text(
            "#!/bin/sh\nwhile case $1 in -*) true ;; *) false ;; esac; do shift; done\nhost=$1\nshift\n"
            f"exec {enter}{named}\n")
        self.launcher.chmod(0o755)
        self._slow_down(link)

    def _make(self):
        """Whether the namespaces could be made."""
        words = [f"netns add {name}" for name in self.names]
        if len(self.names) == 2:
            first, second = self.names
            words.append(f"link add eth0 netns {first} type veth peer name eth0 netns {second}")
        else:
            words += [f"netns add {self.switch}", f"-n {self.switch} link add name switch type bridge",
                      f"-n {self.switch} link set switch up"]
            for port, name in enumerate(self.names):
                words += [f"link add eth0 netns {name} type veth peer name port{port} netns {self.switch}",
                          f"-n {self.switch} link set port{port} master switch up"]
        for name, address in zip(self.names, self.addresses):
            words.append(f"-n {name} address add {address}/24 dev eth0")
            words += [f"-n {name} link set {link} up" for link in ("lo", "eth0")]
        return all(self._ip(line) for line in words) and all(self._is_up(name) for name in self.names)

    def _slow_down(self, link):
        """Gives each host's interface the link's discipline, or ends the benchmark."""
        for name in self.names if link else ():
            words = ["tc", "-n", name, "qdisc", "add", "dev", "eth0", "root", *link]
            done = subprocess.run(words, stderr=subprocess.PIPE, text=True, check=False) if self.apart else None
            if done is None or done.returncode:
                self.__exit__()
                sys.exit(f"the link '{' '.join(link)}' cannot be had here: "
                         f"{done.stderr.strip() if done else 'network namespaces are forbidden'}")

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

    def hydra(self, mpiexec, each=1):
        """Hydra's command, which gives each host `each` processes in turn; their number (-n) and the program are
        still to be added."""
        return [*self.first(), mpiexec, "-iface", self.interface, "-launcher", "ssh",
                "-launcher-exec", self.launcher, "-hosts", ",".join(self.addresses), "-ppn", each]

    def open_mpi(self, mpiexec, each=1):
        """Open MPI's command for `each` processes on each host."""
        hosts = ",".join(f"{address}:{each}" for address in self.addresses)
        return [*self.first(), mpiexec, "--prtemca", "plm_ssh_agent", self.launcher,
                "--prtemca", "prte_if_include", self.interface, "--host", hosts,
                "--mca", "btl_tcp_if_include", self.interface]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in (*self.names, *([self.switch] if len(self.names) > 2 else [])):
            self._ip(f"netns del {name}")
        self._folder.cleanup()
