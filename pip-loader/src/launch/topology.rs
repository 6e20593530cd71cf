//! The machine's CPUs, from `/sys`: which this job may use and what they share.

use cohort_base::boot::CpuPlace;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// One CPU of this job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// What the node image is told about it.
    pub place: CpuPlace,
    /// Its socket.
    pub package: u32,
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
    /// one core per CPU and one cache, node and socket for all.
    #[must_use]
    pub fn read() -> Self {
        let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap_or_else(|_| CpuSet::new());
        let usable: Vec<u32> = (0..CpuSet::count())
            .filter(|&cpu| allowed.is_set(cpu).unwrap_or(false))
            .map(|cpu| cpu as u32)
            .collect();
        let cpus = read_cpus(Path::new("/sys/devices/system"), &usable);
        let capacity = match quota() {
            Some(quota) => (quota.ceil() as u32).clamp(1, cpus.len().max(1) as u32),
            None => cpus.len().max(1) as u32,
        };
        Self { cpus, capacity }
    }
}

fn read_cpus(system: &Path, usable: &[u32]) -> Vec<Cpu> {
    let numa_of = numa_nodes(&system.join("node"));
    let describe = |cpu: u32| {
        let folder = system.join(format!("cpu/cpu{cpu}"));
        let first =
            |path: PathBuf| read_text(&path).and_then(|list| parse_list(&list).first().copied());
        let siblings = first(folder.join("topology/core_cpus_list"))
            .or_else(|| first(folder.join("topology/thread_siblings_list")));
        let package = read_text(&folder.join("topology/physical_package_id"));
        Cpu {
            place: CpuPlace {
                cpu,
                core: siblings.unwrap_or(cpu),
                l3: last_cache(&folder).unwrap_or(0),
                numa: numa_of.get(&cpu).copied().unwrap_or(0),
            },
            package: package.and_then(|text| text.parse().ok()).unwrap_or(0),
        }
    };
    usable.iter().map(|&cpu| describe(cpu)).collect()
}

/// The lowest CPU that shares this CPU's cache of the highest level.
fn last_cache(cpu: &Path) -> Option<u32> {
    let level_and_sharers = |index: usize| {
        let cache = cpu.join(format!("cache/index{index}"));
        let level: u32 = read_text(&cache.join("level"))?.parse().ok()?;
        let sharers = parse_list(&read_text(&cache.join("shared_cpu_list"))?);
        Some((level, *sharers.first()?))
    };
    (0..8)
        .map_while(level_and_sharers)
        .max_by_key(|&(level, _)| level)
        .map(|(_, cpu)| cpu)
}

fn numa_nodes(folder: &Path) -> HashMap<u32, u32> {
    let mut nodes = HashMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(Ok(node)) = name.strip_prefix("node").map(str::parse::<u32>) else {
            continue;
        };
        let cpus = read_text(&entry.path().join("cpulist")).unwrap_or_default();
        nodes.extend(parse_list(&cpus).into_iter().map(|cpu| (cpu, node)));
    }
    nodes
}

fn read_text(path: &Path) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
}

/// The kernel's list format: `0-3,8,10-11`, ascending.
fn parse_list(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse::<u32>().ok()?)
    };
    text.split(',')
        .filter_map(range)
        .flatten()
        .take(1 << 16)
        .collect()
}

/// CPUs' worth of time that this process's cgroup or one above it grants, if limited.
fn quota() -> Option<f64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mut least: Option<f64> = None;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let unified = controllers.is_empty();
        if !unified && !controllers.split(',').any(|name| name == "cpu") {
            continue;
        }
        let root = if unified {
            "/sys/fs/cgroup"
        } else {
            "/sys/fs/cgroup/cpu"
        };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(parse_list("0-2,5,7-8"), [0, 1, 2, 5, 7, 8]);
        assert_eq!(parse_list(""), []);
        assert_eq!(parse_list("x,3"), [3]);
    }

    #[test]
    fn quotas() {
        assert_eq!(unified_quota("150000 100000"), Some(1.5));
        assert_eq!(unified_quota("max 100000"), None);
    }

    #[test]
    fn this_machine_has_a_cpu() {
        let topology = Topology::read();
        assert!(!topology.cpus.is_empty());
        assert!((1..=topology.cpus.len() as u32).contains(&topology.capacity));
    }

    #[test]
    fn a_machine_of_two_sockets_is_read_from_its_files() {
        let root = std::env::temp_dir().join(format!("cohort-topology-{}", std::process::id()));
        for cpu in 0..4_u32 {
            let folder = root.join(format!("cpu/cpu{cpu}"));
            fs::create_dir_all(folder.join("topology")).unwrap();
            fs::create_dir_all(folder.join("cache/index0")).unwrap();
            let socket = cpu / 2;
            let pair = format!("{}-{}\n", socket * 2, socket * 2 + 1);
            fs::write(folder.join("topology/core_cpus_list"), format!("{cpu}\n")).unwrap();
            fs::write(
                folder.join("topology/physical_package_id"),
                format!("{socket}\n"),
            )
            .unwrap();
            fs::write(folder.join("cache/index0/level"), "3\n").unwrap();
            fs::write(folder.join("cache/index0/shared_cpu_list"), &pair).unwrap();
            let node = root.join(format!("node/node{socket}"));
            fs::create_dir_all(&node).unwrap();
            fs::write(node.join("cpulist"), &pair).unwrap();
        }
        let cpus = read_cpus(&root, &[1, 2, 3]);
        fs::remove_dir_all(&root).unwrap();
        let place = |cpu, core, l3, numa| CpuPlace {
            cpu,
            core,
            l3,
            numa,
        };
        let places: Vec<_> = cpus.iter().map(|cpu| (cpu.place, cpu.package)).collect();
        assert_eq!(
            places,
            [
                (place(1, 1, 0, 0), 0),
                (place(2, 2, 2, 1), 1),
                (place(3, 3, 2, 1), 1)
            ]
        );
    }
}
