//! The machine's CPUs, from `/sys`: which this job may use and what they share.
//!
//! The kernel lists the CPUs that share a core, a cache, a node or a socket. A list is read once for
//! all its CPUs, so a machine of 128 CPUs takes some 400 files and not 1,400. Which CPUs the job may
//! use is the affinity mask: the kernel leaves out what `taskset`, a cpuset cgroup or an offline CPU
//! take away. A cgroup's quota limits time, not CPUs; it is read too.

use cohort_base::boot::CpuLocation;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

#[cfg(test)]
pub(super) mod tests;

/// One CPU of this job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// What the node image is told about it.
    pub place: CpuLocation,
    /// Its socket.
    pub package: u32,
}

/// What CPUs may share, from the narrowest to the widest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A hardware thread: a CPU as the kernel counts.
    HwThread,
    /// A physical core.
    Core,
    /// The last-level cache.
    L3Cache,
    /// A NUMA node.
    Numa,
    /// A socket.
    Socket,
    /// The whole machine.
    Board,
}

impl Level {
    /// Every level with its name on the command line.
    pub const ALL: [(&'static str, Self); 6] = [
        ("hwthread", Self::HwThread),
        ("core", Self::Core),
        ("l3cache", Self::L3Cache),
        ("numa", Self::Numa),
        ("socket", Self::Socket),
        ("board", Self::Board),
    ];

    /// Our name of a level that others call otherwise.
    #[must_use]
    pub fn own_name(name: &str) -> &str {
        match name {
            "package" => "socket",
            "machine" => "board",
            "l3" => "l3cache",
            name => name,
        }
    }

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }

    /// The thread, core, cache, node or socket of a CPU; equal for those that share it.
    #[must_use]
    pub fn of(self, cpu: &Cpu) -> u32 {
        match self {
            Self::HwThread => cpu.place.cpu,
            Self::Core => cpu.place.core,
            Self::L3Cache => cpu.place.l3,
            Self::Numa => cpu.place.numa,
            Self::Socket => cpu.package,
            Self::Board => 0,
        }
    }
}

/// The CPUs of this job.
#[derive(Clone, Debug)]
pub struct Topology {
    /// CPUs in the affinity mask, in ascending order.
    pub cpus: Vec<Cpu>,
    /// How many CPUs' worth of time the job may use: fewer than `cpus` under a cgroup quota.
    pub capacity: u32,
}

impl Topology {
    /// Reads the topology of this machine. What `/sys` does not tell is taken to be
    /// one core per CPU, one cache per socket, and one node and socket for all.
    #[must_use]
    pub fn read() -> Self {
        let cpus = System::this_machine().describe(&allowed());
        let capacity = match quota() {
            Some(quota) => (quota.ceil() as u32).clamp(1, cpus.len().max(1) as u32),
            None => cpus.len().max(1) as u32,
        };
        Self { cpus, capacity }
    }
}

/// The CPUs in this thread's affinity mask.
fn allowed() -> Vec<u32> {
    let mask = cohort_manager::affinity();
    let bits = |(byte, bits): (u32, u8)| {
        let set = (0..8).filter(move |bit| bits >> bit & 1 != 0);
        set.map(move |bit| byte * 8 + bit)
    };
    (0..).zip(mask).flat_map(bits).collect()
}

/// The kernel's description of a machine: files below `/sys/devices/system`.
#[derive(Clone, Copy)]
pub(super) struct System<'a> {
    /// The content of a file, if it exists, without blanks at its end.
    read: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> System<'a> {
    /// The machine that this process runs on.
    pub fn this_machine() -> System<'static> {
        System { read: &|path| read_text(&Path::new("/sys/devices/system").join(path)) }
    }

    /// A machine whose files `read` gives.
    #[cfg(test)]
    pub fn new(read: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { read }
    }

    /// Describes these CPUs.
    pub fn describe(&self, cpus: &[u32]) -> Vec<Cpu> {
        let topology = |cpu: u32, names: [&str; 2]| {
            let read = |name| self.list(&format!("cpu/cpu{cpu}/topology/{name}"));
            names.into_iter().find_map(read)
        };
        // Kernels before 5.3 know the second name of each only.
        let cores = groups(cpus, |cpu| topology(cpu, ["core_cpus_list", "thread_siblings_list"]));
        let packages = groups(cpus, |cpu| topology(cpu, ["package_cpus_list", "core_siblings_list"]));
        let caches = groups(cpus, |cpu| self.list(&self.last_cache(cpu, "shared_cpu_list")?));
        let nodes = self.numa_nodes();
        // A socket has a number besides its lowest CPU.
        let mut numbers: HashMap<u32, u32> = HashMap::new();
        let describe = |&cpu: &u32| {
            let sharing = |groups: &HashMap<u32, u32>| groups.get(&cpu).copied();
            let first = sharing(&packages);
            let number = || self.number(&format!("cpu/cpu{cpu}/topology/physical_package_id"));
            let package = match first {
                Some(first) => *numbers.entry(first).or_insert_with(|| number().unwrap_or(0)),
                None => number().unwrap_or(0),
            };
            Cpu {
                place: CpuLocation {
                    cpu,
                    core: sharing(&cores).unwrap_or(cpu),
                    l3: sharing(&caches).or(first).unwrap_or(0),
                    numa: sharing(&nodes).unwrap_or(0),
                },
                package,
            }
        };
        cpus.iter().map(describe).collect()
    }

    /// A file of a CPU's cache of the highest level.
    fn last_cache(&self, cpu: u32, file: &str) -> Option<String> {
        let cache = |index: u32| format!("cpu/cpu{cpu}/cache/index{index}");
        let level = |index| Some((self.number(&format!("{}/level", cache(index)))?, index));
        let (_, index) = (0..8).map_while(level).max()?;
        Some(format!("{}/{file}", cache(index)))
    }

    /// The size of a CPU's cache of the highest level, as the kernel writes it.
    pub fn last_cache_size(&self, cpu: u32) -> Option<String> {
        (self.read)(&self.last_cache(cpu, "size")?)
    }

    /// The NUMA node of each CPU.
    fn numa_nodes(&self) -> HashMap<u32, u32> {
        let cpus = |node: u32| {
            let cpus = self.list(&format!("node/node{node}/cpulist"));
            cpus.unwrap_or_default().into_iter().zip(std::iter::repeat(node))
        };
        // The first node counts where firmware gives a CPU to several.
        self.nodes().into_iter().rev().flat_map(cpus).collect()
    }

    /// The NUMA nodes.
    pub fn nodes(&self) -> Vec<u32> {
        self.list("node/online").unwrap_or_default()
    }

    /// The memory of a NUMA node in KiB.
    pub fn memory(&self, node: u32) -> Option<u64> {
        let text = (self.read)(&format!("node/node{node}/meminfo"))?;
        let (_, rest) = text.split_once("MemTotal:")?;
        rest.split_whitespace().next()?.parse().ok()
    }

    /// The CPUs that run; those that are offline are not among them.
    pub fn online(&self) -> Vec<u32> {
        self.list("cpu/online").unwrap_or_default()
    }

    /// The CPUs that exist and do not run.
    pub fn offline(&self) -> Vec<u32> {
        self.list("cpu/offline").unwrap_or_default()
    }

    fn list(&self, path: &str) -> Option<Vec<u32>> {
        Some(parse_list(&(self.read)(path)?))
    }

    fn number(&self, path: &str) -> Option<u32> {
        (self.read)(path)?.parse().ok()
    }
}

/// For each CPU the lowest of those that it shares something with. `sharers` reads all that share it
/// with one CPU; it is asked once for all of them.
fn groups(cpus: &[u32], sharers: impl Fn(u32) -> Option<Vec<u32>>) -> HashMap<u32, u32> {
    let mut groups = HashMap::new();
    for &cpu in cpus {
        if groups.contains_key(&cpu) {
            continue;
        }
        // A list that lacks the CPU itself is not about it.
        if let Some(list) = sharers(cpu).filter(|list| list.contains(&cpu)) {
            for &sharer in &list {
                groups.entry(sharer).or_insert(list[0]);
            }
        }
    }
    groups
}

fn read_text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// The kernel's list format: `0-3,8,10-11`, ascending.
pub(super) fn parse_list(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse::<u32>().ok()?)
    };
    text.split(',').filter_map(range).flatten().take(1 << 16).collect()
}

/// CPUs' worth of time that this process's cgroup or one above it grants, if limited.
pub(super) fn quota() -> Option<f64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mut least: Option<f64> = None;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let unified = controllers.is_empty();
        if !unified && !controllers.split(',').any(|name| name == "cpu") {
            continue;
        }
        let root = if unified { "/sys/fs/cgroup" } else { "/sys/fs/cgroup/cpu" };
        for folder in Path::new(path.trim_start_matches('/')).ancestors() {
            let folder = Path::new(root).join(folder);
            let limit = if unified {
                read_text(&folder.join("cpu.max")).and_then(|text| unified_quota(&text))
            } else {
                legacy_quota(&folder)
            };
            least = [least, limit].into_iter().flatten().reduce(f64::min);
        }
    }
    least
}

fn unified_quota(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok().filter(|&period| period > 0.0)?)
}

fn legacy_quota(folder: &Path) -> Option<f64> {
    let number = |name: &str| read_text(&folder.join(name))?.parse::<f64>().ok();
    let quota = number("cpu.cfs_quota_us").filter(|&quota| quota > 0.0)?;
    Some(quota / number("cpu.cfs_period_us").filter(|&period| period > 0.0)?)
}
