//! Several hosts on one machine: network namespaces joined by a bridge, and MPICH's Hydra as their
//! process manager. Where namespaces are forbidden, the hosts are addresses of the loopback
//! interface, which share everything; trials that need more say so and pass.

use crate::command::Program;
use crate::{event, place};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::net::TcpListener;
use std::ops::RangeInclusive;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// First letters of the names of our namespaces; the runner's process id follows.
const PREFIX: &str = "cohort";

/// What the nodes of a job talk through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// What a job takes that is told nothing: sockets, since test machines have no fabric.
    Default,
    /// libfabric's TCP.
    Libfabric,
    /// PSM2 over shared memory, see `tools/with-psm2.sh`.
    Psm2,
    /// libfabric's shared memory.
    Shm,
    /// TCP of a later libfabric, that of the MPICH wheel.
    Later,
}

impl Network {
    /// Ends the names of trials.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Default => "",
            Self::Libfabric => " (libfabric)",
            Self::Psm2 => " (psm2)",
            Self::Shm => " (shm)",
            Self::Later => " (libfabric 2)",
        }
    }
}

/// Namespaces that make up hosts.
#[derive(Debug)]
struct Group {
    /// Namespaces are called `NAME-0`, ... and `NAME-s`, where the bridge is.
    name: String,
    count: u32,
}

/// Groups that nobody has: as good as new.
static FREE: Mutex<Vec<Group>> = Mutex::new(Vec::new());

/// Hosts. What runs there is killed with the value and the last command on them; their namespaces serve other trials
/// then, unless this one changed them.
#[derive(Debug)]
pub struct Hosts {
    lease: Arc<Lease>,
    launcher: PathBuf,
    network: Network,
}

/// Hosts that nobody else has, as long as they or a command on them are there.
#[derive(Debug)]
struct Lease {
    group: Group,
    is_changed: AtomicBool,
}

/// Whether this machine lets us make network namespaces; says so once if not.
pub fn namespaces_work() -> bool {
    static WORK: OnceLock<bool> = OnceLock::new();
    *WORK.get_or_init(|| {
        remove_stale();
        let name = format!("{PREFIX}{}-try", std::process::id());
        let made = ip(&["netns", "add", &name]).and_then(|()| {
            ip(&["-n", &name, "link", "add", "br0", "type", "bridge"])?;
            let pair = ["type", "veth", "peer", "name", "port1"];
            ip(&[&["-n", &name, "link", "add", "port0"][..], &pair].concat())
        });
        let _ = ip(&["netns", "del", &name]);
        if let Err(reason) = &made {
            eprintln!("nodes: no network namespaces here ({reason}): nodes are 127.0.0.1, 127.0.0.2, ...");
        }
        made.is_ok()
    })
}

impl Group {
    fn new(count: u32) -> Result<Self, String> {
        static GROUPS: AtomicU32 = AtomicU32::new(0);
        let group = GROUPS.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{group}", std::process::id());
        let this = Self { name, count };
        if namespaces_work() {
            this.make_namespaces()?;
        }
        Ok(this)
    }

    fn namespace(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.name)
    }

    fn make_namespaces(&self) -> Result<(), String> {
        let bridge = self.namespace("s");
        ip(&["netns", "add", &bridge])?;
        ip(&["-n", &bridge, "link", "add", "br0", "type", "bridge"])?;
        ip(&["-n", &bridge, "link", "set", "br0", "up"])?;
        for host in 0..self.count {
            let (own, port) = (self.namespace(&host.to_string()), format!("port{host}"));
            ip(&["netns", "add", &own])?;
            ip(&["link", "add", "eth0", "netns", &own, "type", "veth", "peer", "name", &port, "netns", &bridge])?;
            ip(&["-n", &bridge, "link", "set", &port, "master", "br0", "up"])?;
            let address = format!("{}/24", address_of(host));
            ip(&["-n", &own, "address", "add", &address, "dev", "eth0"])?;
            ip(&["-n", &own, "link", "set", "lo", "up"])?;
            ip(&["-n", &own, "link", "set", "eth0", "up"])?;
        }
        (0..self.count).try_for_each(|host| self.wait_for_link(host, "eth0"))
    }

    /// Waits until a host's new interface has a carrier, which may come later than it is switched on:
    /// before that, libfabric would choose the loopback interface.
    fn wait_for_link(&self, host: u32, device: &str) -> Result<(), String> {
        let own = self.namespace(&host.to_string());
        event::found(&format!("a carrier of {device} of {own}"), || {
            let shown = Command::new("ip")
                .args(["-n", &own, "-o", "link", "show", "dev", device])
                .output()
                .map_err(|error| format!("ip: {error}"))?;
            let is_up = String::from_utf8_lossy(&shown.stdout).contains("state UP");
            Ok(is_up.then_some(()))
        })
    }

    /// Kills what runs there; whether nothing is left.
    fn is_quiet(&self) -> bool {
        (0..self.count).all(|host| {
            let left = || pids(&self.namespace(&host.to_string()));
            kill(&left());
            event::until("processes of a host to end", || left().is_empty()).is_ok()
        })
    }
}

/// Removes the namespaces that trials have left for others.
pub fn remove_free() {
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    for group in free.drain(..) {
        if namespaces_work() {
            remove(&group.name);
        }
    }
}

/// Address of a host.
fn address_of(host: u32) -> String {
    match namespaces_work() {
        true => format!("10.77.0.{}", host + 1),
        false => format!("127.0.0.{}", host + 1),
    }
}

impl Hosts {
    /// Makes hosts that reach each other.
    ///
    /// # Errors
    /// What the system refused.
    pub fn new(count: u32) -> Result<Self, String> {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = free.iter().position(|group| group.count == count);
        let kept = kept.map(|index| free.swap_remove(index));
        drop(free);
        let group = match kept {
            Some(group) => group,
            None => Group::new(count)?,
        };
        let this = Self {
            launcher: place::scratch()?.join(format!("{}.sh", group.name)),
            lease: Arc::new(Lease { group, is_changed: AtomicBool::new(false) }),
            network: Network::Default,
        };
        this.write_launcher()?;
        Ok(this)
    }

    /// Nobody else gets these hosts: they are not as they were.
    pub fn change(&self) {
        self.lease.is_changed.store(true, Ordering::Relaxed);
    }

    /// The same, for jobs that talk through this network.
    pub fn over(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// What Hydra takes for `ssh`: enters the host's namespace.
    fn write_launcher(&self) -> Result<(), String> {
        let enter = match namespaces_work() {
            true => format!("nsenter --net=/run/netns/{}-$((${{host##*.}} - 1)) ", self.lease.group.name),
            false => String::new(),
        };
        let script = format!(
            "#!/bin/sh\nwhile case $1 in -*) true ;; *) false ;; esac; do shift; done\nhost=$1\n\
             shift\nexec {enter}sh -c \"$*\"\n"
        );
        // A child process writes it, so that no other trial's child inherits a descriptor that is open
        // for writing: executing the file would fail.
        let path = self.launcher.display();
        let command = format!("cat >'{path}' && chmod 755 '{path}'");
        let mut child = Command::new("sh")
            .args(["-c", &command])
            .stdin(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let input = child.stdin.take();
        let written = input.map(|mut input| std::io::Write::write_all(&mut input, script.as_bytes()));
        let status = child.wait().map_err(|error| error.to_string())?;
        match (written, status.success()) {
            (Some(Ok(())), true) => Ok(()),
            _ => Err(format!("cannot write {path}")),
        }
    }

    /// A name that no other group of hosts has.
    pub fn name(&self) -> &str {
        &self.lease.group.name
    }

    /// Where a file of this group's may be made.
    ///
    /// # Errors
    /// There is no folder for it.
    pub fn file(&self, name: &str) -> Result<PathBuf, String> {
        Ok(place::scratch()?.join(format!("{}.{name}", self.lease.group.name)))
    }

    fn namespace(&self, suffix: &str) -> String {
        self.lease.group.namespace(suffix)
    }

    /// Address of a host.
    pub fn address(&self, host: u32) -> String {
        address_of(host)
    }

    /// A command on a host, which may change it.
    pub fn program(&self, host: u32, path: impl AsRef<std::ffi::OsStr>) -> Program {
        self.change();
        self.enter(host, path)
    }

    fn enter(&self, host: u32, path: impl AsRef<std::ffi::OsStr>) -> Program {
        let program = match namespaces_work() {
            true => {
                Program::new("nsenter").arg(format!("--net=/run/netns/{}", self.namespace(&host.to_string()))).arg(path)
            }
            false => Program::new(path),
        };
        program.keeping(self.lease.clone())
    }

    /// Hydra's `mpiexec` on the first host, with the options that start so many processes on each. What it
    /// shall start is still to be added.
    ///
    /// # Errors
    /// It has not been fetched.
    pub fn mpiexec(&self, each: u32) -> Result<Program, String> {
        let addresses: Vec<String> = (0..self.lease.group.count).map(|host| self.address(host)).collect();
        let (each, all) = (each.to_string(), (each * self.lease.group.count).to_string());
        let mpiexec = place::cached("mpich-venv/bin/mpiexec.hydra", "mpich")?;
        let interface = match namespaces_work() {
            true => "eth0",
            false => "lo",
        };
        let launcher = match self.network {
            Network::Psm2 => {
                let script = place::root().join("tools/with-psm2.sh");
                self.enter(0, script).arg(mpiexec)
            }
            _ => self.enter(0, mpiexec),
        };
        Ok(launcher.args(["-iface", interface, "-launcher", "ssh", "-launcher-exec"]).arg(&self.launcher).args([
            "-hosts",
            &addresses.join(","),
            "-ppn",
            &each,
            "-n",
            &all,
        ]))
    }

    /// [`Hosts::mpiexec`] with one `pip-exec` on each host; `ranks` is what its `-n` takes.
    ///
    /// # Errors
    /// Something has not been built or fetched.
    pub fn pip_exec(&self, ranks: &str) -> Result<Program, String> {
        self.pip_exec_after(&[], ranks)
    }

    /// [`Hosts::pip_exec`] that a command with these words starts on each host.
    ///
    /// # Errors
    /// Something has not been built or fetched.
    pub fn pip_exec_after(&self, words: &[String], ranks: &str) -> Result<Program, String> {
        let pip_exec = place::built_file("pip-exec")?;
        let job = self.mpiexec(1)?.args(words).arg(pip_exec);
        let job = job.args(["-n", ranks]);
        Ok(match self.network {
            Network::Default => job,
            Network::Libfabric => job.env("COHORT_NET_PROVIDER", "tcp"),
            Network::Psm2 => job.env("COHORT_NET_PROVIDER", "psm2"),
            Network::Shm => job.env("COHORT_NET_PROVIDER", "shm"),
            Network::Later => job
                .env("COHORT_NET_PROVIDER", "tcp")
                .env("COHORT_NET_LIBFABRIC", place::cached("mpich-venv/lib/mpich/libfabric.so.1", "mpich")?),
        })
    }

    /// Gives each host a bridge for containers with the same address on all, as Docker makes one.
    ///
    /// # Errors
    /// What the system refused.
    pub fn add_inner_bridges(&self, name: &str, address: &str) -> Result<(), String> {
        self.change();
        for host in 0..self.lease.group.count {
            let own = self.namespace(&host.to_string());
            let make = |words: &[&str]| ip(&[&["-n", own.as_str()], words].concat());
            make(&["link", "add", name, "type", "bridge"])?;
            let ends = ["veth-in", "veth-out"];
            let [inner, outer] = ends;
            make(&["link", "add", inner, "type", "veth", "peer", "name", outer])?;
            make(&["link", "set", outer, "master", name])?;
            make(&["address", "add", address, "dev", name])?;
            for device in [inner, outer, name] {
                make(&["link", "set", device, "up"])?;
            }
        }
        (0..self.lease.group.count).try_for_each(|host| self.lease.group.wait_for_link(host, name))
    }

    /// Joins the first two hosts by another pair of interfaces, `eth1`, too.
    ///
    /// # Errors
    /// What the system refused.
    pub fn add_second_network(&self) -> Result<(), String> {
        self.change();
        let [first, second] = [0, 1].map(|host| self.namespace(&host.to_string()));
        ip(&["link", "add", "eth1", "netns", &first, "type", "veth", "peer", "name", "eth1", "netns", &second])?;
        for (own, address) in [(&first, "10.78.0.1/24"), (&second, "10.78.0.2/24")] {
            ip(&["-n", own, "address", "add", address, "dev", "eth1"])?;
            ip(&["-n", own, "link", "set", "eth1", "up"])?;
        }
        (0..2).try_for_each(|host| self.lease.group.wait_for_link(host, "eth1"))
    }

    /// Bytes that have left an interface of a host.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn sent(&self, host: u32, device: &str) -> Result<u64, String> {
        let own = self.namespace(&host.to_string());
        let shown = Command::new("ip")
            .args(["-n", &own, "-s", "-o", "link", "show", "dev", device])
            .output()
            .map_err(|error| format!("ip: {error}"))?;
        let text = String::from_utf8_lossy(&shown.stdout);
        let sent =
            text.split_once("TX:").and_then(|(_, rest)| rest.split_whitespace().find_map(|word| word.parse().ok()));
        sent.ok_or_else(|| format!("{device} of {own}: {text}"))
    }

    /// Listens on ports of a host.
    ///
    /// # Errors
    /// What the system refused.
    pub fn listen(&self, host: u32, mut ports: RangeInclusive<u16>) -> Result<Vec<TcpListener>, String> {
        self.change();
        let address = self.address(host);
        let namespace = format!("/run/netns/{}", self.namespace(&host.to_string()));
        let listen = || {
            if namespaces_work() {
                let file = std::fs::File::open(namespace)?;
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(file.as_fd(), kind)?;
            }
            ports.try_fold(Vec::new(), |mut all, port| {
                all.push(TcpListener::bind((address.as_str(), port))?);
                Ok(all)
            })
        };
        // A thread of its own, which does not come back from there.
        let listening = std::thread::scope(|scope| scope.spawn(listen).join());
        let listening: std::io::Result<_> = listening.map_err(|_| "a thread ended early")?;
        listening.map_err(|error| error.to_string())
    }

    /// Switches the network interface of a host.
    ///
    /// # Errors
    /// What the system refused.
    pub fn set_link(&self, host: u32, state: &str) -> Result<(), String> {
        self.change();
        let own = self.namespace(&host.to_string());
        ip(&["-n", &own, "link", "set", "eth0", state])
    }

    /// Lets what a host sends be late or lost, in the words of `tc`'s netem.
    ///
    /// # Errors
    /// What the system refused.
    pub fn disturb(&self, host: u32, how: &[&str]) -> Result<(), String> {
        self.change();
        let own = self.namespace(&host.to_string());
        let words = ["-n", &own, "qdisc", "add", "dev", "eth0", "root", "netem"];
        command("tc", words.iter().chain(how))
    }

    /// Has nothing that the first host sends to the second one by `eth1` arrive.
    ///
    /// # Errors
    /// What the system refused.
    pub fn cut_second_network(&self) -> Result<(), String> {
        self.change();
        let own = self.namespace("0");
        // Nobody has this address.
        let nobody = ["10.78.0.2", "lladdr", "02:00:00:00:00:99"];
        let words = ["-n", own.as_str(), "neighbour", "replace"];
        ip(&[&words, &nobody[..], &["dev", "eth1"]].concat())
    }

    /// Processes of a host.
    pub fn processes(&self, host: u32) -> Vec<i32> {
        pids(&self.namespace(&host.to_string()))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !namespaces_work() {
            return;
        }
        if self.is_changed.load(Ordering::Relaxed) || !self.group.is_quiet() {
            remove(&self.group.name);
            return;
        }
        let Group { name, count } = &self.group;
        let (name, count) = (name.clone(), *count);
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        free.push(Group { name, count });
    }
}

/// Kills what runs in the namespaces of a group and removes them.
fn remove(group: &str) {
    for name in names() {
        if name.strip_prefix(group).is_some_and(|rest| rest.starts_with('-')) {
            kill(&pids(&name));
            let _ = ip(&["netns", "del", &name]);
        }
    }
}

fn kill(pids: &[i32]) {
    for pid in pids.iter().filter_map(|&pid| Pid::from_raw(pid)) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Removes what runners that were killed have left.
fn remove_stale() {
    for name in names() {
        let Some((pid, rest)) = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-')) else {
            continue;
        };
        let dead = pid.parse::<u32>().is_ok() && !PathBuf::from(format!("/proc/{pid}")).exists();
        if dead && let Some((group, _)) = rest.split_once('-') {
            remove(&format!("{PREFIX}{pid}-{group}"));
        }
    }
}

/// All network namespaces with a name.
fn names() -> Vec<String> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn pids(namespace: &str) -> Vec<i32> {
    let output = Command::new("ip").args(["netns", "pids", namespace]).output();
    let text = output.map_or_else(|_| Vec::new(), |output| output.stdout);
    String::from_utf8_lossy(&text).split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn ip(words: &[&str]) -> Result<(), String> {
    command("ip", words.iter())
}

fn command<'a>(program: &str, words: impl Iterator<Item = &'a &'a str>) -> Result<(), String> {
    let output = Command::new(program).args(words).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}
