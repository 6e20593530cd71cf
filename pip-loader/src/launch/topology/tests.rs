use super::*;

/// The files of a machine of two sockets, each of four NUMA nodes, each of two caches, each of four
/// cores, each of two threads: CPU n and n + 64 share core n.
fn large_files() -> HashMap<String, String> {
    let mut files = HashMap::new();
    let mut add = |path: String, text: String| files.insert(path, text);
    let with_twins = |first: u32, cores: u32| {
        let last = first + cores - 1;
        format!("{first}-{last},{}-{}", first + 64, last + 64)
    };
    for cpu in 0..128_u32 {
        let core = cpu % 64;
        let group = |cores: u32| with_twins(core / cores * cores, cores);
        let folder = format!("cpu/cpu{cpu}");
        let topology = format!("{folder}/topology");
        add(format!("{topology}/core_cpus_list"), format!("{core},{}", core + 64));
        add(format!("{topology}/package_cpus_list"), group(32));
        add(format!("{topology}/physical_package_id"), (core / 32).to_string());
        for (index, level) in ["1", "1", "2", "3"].into_iter().enumerate() {
            let cache = format!("{folder}/cache/index{index}");
            let shared = if level == "3" { group(4) } else { format!("{core},{}", core + 64) };
            add(format!("{cache}/level"), level.into());
            add(format!("{cache}/shared_cpu_list"), shared);
            add(format!("{cache}/size"), "32768K".into());
        }
    }
    for node in 0..8_u32 {
        add(format!("node/node{node}/cpulist"), with_twins(node * 8, 8));
        let memory = format!("Node {node} MemTotal:       33554432 kB\nNode {node} MemFree: 1 kB");
        add(format!("node/node{node}/meminfo"), memory);
    }
    add("node/node8/cpulist".into(), String::new());
    add("node/node8/meminfo".into(), "Node 8 MemTotal: 16777216 kB".into());
    add("node/online".into(), "0-8".into());
    add("cpu/online".into(), "0-127".into());
    files
}

/// Runs `look` on a machine of these files.
fn on<T>(files: &HashMap<String, String>, look: impl FnOnce(&System<'_>) -> T) -> T {
    look(&System::new(&|path| files.get(path).cloned()))
}

/// Runs `look` on the large machine.
pub(in crate::launch) fn on_large<T>(look: impl FnOnce(&System<'_>) -> T) -> T {
    on(&large_files(), look)
}

/// What a job that may use these CPUs sees of the large machine.
pub(in crate::launch) fn large(usable: impl IntoIterator<Item = u32>) -> Topology {
    let mut usable: Vec<u32> = usable.into_iter().collect();
    usable.sort_unstable();
    let cpus = on_large(|system| system.describe(&usable));
    let capacity = cpus.len() as u32;
    Topology { cpus, capacity }
}

/// The files of a machine as they were recorded, a line each: path, blank, content.
fn recorded(text: &str) -> HashMap<String, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let file = |line: &str| line.split_once(' ').map(|(path, text)| (path.into(), text.into()));
    lines.filter_map(file).collect()
}

/// CPU, core, last-level cache, NUMA node and socket.
fn rows(cpus: &[Cpu]) -> Vec<[u32; 5]> {
    let row = |cpu: &Cpu| {
        let place = cpu.place;
        [place.cpu, place.core, place.l3, place.numa, cpu.package]
    };
    cpus.iter().map(row).collect()
}

#[test]
fn lists_of_cpus() {
    assert_eq!(parse_list("0-2,5,7-8"), [0, 1, 2, 5, 7, 8]);
    assert!(parse_list("").is_empty());
    assert_eq!(parse_list("x,3"), [3]);
}

#[test]
fn quotas() {
    assert_eq!(unified_quota("150000 100000"), Some(1.5));
    assert_eq!(unified_quota("max 100000"), None);
}

#[test]
fn levels_have_their_own_names() {
    for (name, level) in Level::ALL {
        assert_eq!(level.name(), name);
    }
}

#[test]
fn this_machine_has_a_cpu() {
    let topology = Topology::read();
    assert!(!topology.cpus.is_empty());
    assert!((1..=topology.cpus.len() as u32).contains(&topology.capacity));
    let online = System::this_machine().online();
    assert!(topology.cpus.iter().all(|cpu| online.contains(&cpu.place.cpu)));
}

#[test]
fn every_level_of_a_large_machine_is_seen() {
    let cpus = large(0..128).cpus;
    for cpu in &cpus {
        let core = cpu.place.cpu % 64;
        let expected = [cpu.place.cpu, core, core / 4 * 4, core / 8, core / 32];
        assert_eq!(rows(&[*cpu]), [expected]);
    }
    on_large(|system| {
        assert_eq!(system.memory(7), Some(32 << 20));
        assert_eq!(system.last_cache_size(3).as_deref(), Some("32768K"));
        assert_eq!(system.nodes().len(), 9);
    });
}

#[test]
fn a_list_is_read_once_for_all_its_cpus() {
    let files = large_files();
    let count = std::cell::Cell::new(0);
    let read = |path: &str| {
        count.set(count.get() + 1);
        files.get(path).cloned()
    };
    let all: Vec<u32> = (0..128).collect();
    assert_eq!(System::new(&read).describe(&all).len(), 128);
    // 64 cores, 2 sockets with their numbers, 16 caches of 5 tries and a list, 9 nodes and their list.
    assert_eq!(count.get(), 64 + 4 + 16 * 6 + 10);
}

/// Eight Opterons with a NUMA node each; CPU 4 is offline.
#[test]
fn a_recorded_machine_with_an_offline_cpu() {
    let files = recorded(include_str!("opteron-8s2c-offline.txt"));
    on(&files, |system| {
        let online = system.online();
        assert_eq!(online, parse_list("0-3,5-15"));
        let cpus = system.describe(&online);
        for (cpu, row) in online.iter().zip(rows(&cpus)) {
            // Nothing is shared but a node and its socket.
            assert_eq!(row, [*cpu, *cpu, *cpu, cpu / 2, cpu / 2]);
        }
        // The kernel would not say so of an offline CPU, but a mask may be older than the files.
        assert_eq!(rows(&system.describe(&[4, 5]))[1], [5, 5, 5, 2, 2]);
    });
}

/// Two Xeons that the kernel numbers in turn, with a cache for each two cores. The firmware gives all
/// CPUs to each of eight NUMA nodes.
#[test]
fn a_recorded_machine_whose_sockets_are_numbered_in_turn() {
    let files = recorded(include_str!("xeon-2s4c-nodes.txt"));
    let cpus = on(&files, |system| system.describe(&system.online()));
    let expected = [0, 1, 0, 1, 4, 5, 4, 5].into_iter().zip(0..);
    let expected: Vec<_> = expected.map(|(l3, cpu)| [cpu, cpu, l3, 0, cpu % 2]).collect();
    assert_eq!(rows(&cpus), expected);
}

#[test]
fn a_machine_that_tells_nothing_has_a_core_per_cpu() {
    let rows = on(&HashMap::new(), |system| rows(&system.describe(&[2, 3])));
    assert_eq!(rows, [[2, 2, 0, 0, 0], [3, 3, 0, 0, 0]]);
}
