//! `--topology`: the machine as a tree, with the ranks of a job beside what they are bound to.

use super::binding::{self, Binding, ranges};
use super::options::Options;
use super::topology::{self, Cpu, Level, System, Topology};
use cohort_manager::Place;
use pip_ground::Refusal;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Longest list of ranks that is written out, in letters.
const LIST_MAX: usize = 40;

/// Draws this machine and the ranks of a job of one node; no program is looked at.
///
/// # Errors
/// The ranks cannot be bound as the options say.
pub fn of_this_machine(options: &Options) -> Result<String, Refusal> {
    let topology = Topology::read();
    let place = Place { index: 0, count: 1 };
    let mut ranks = 0;
    for section in &options.sections {
        // Without a program and a number, only the machine is of interest.
        if !section.ranks.is_empty() || !section.program.is_empty() {
            ranks += binding::ranks_of(section, &options.placement, &topology, place)?;
        }
    }
    let turns = binding::turns(&options.placement, &topology)?;
    let picture = Picture {
        system: System::this_machine(),
        bindings: turns.map(|turns| binding::deal(&turns, 0, ranks)),
        level: binding::level(&options.placement),
        ranks,
        memory: allowed_memory(),
        quota: topology::quota(),
        topology,
    };
    Ok(picture.draw())
}

/// The NUMA nodes whose memory this process may use, if the system tells.
fn allowed_memory() -> Option<Vec<u32>> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Mems_allowed_list:"))?;
    Some(topology::parse_list(list.trim()))
}

struct Picture<'a> {
    system: System<'a>,
    topology: Topology,
    bindings: Option<Vec<Binding>>,
    /// What ranks are bound to, if they are.
    level: Option<Level>,
    ranks: usize,
    /// Nodes whose memory the job may use, if known.
    memory: Option<Vec<u32>>,
    /// What a cgroup allows, in CPUs' worth of time.
    quota: Option<f64>,
}

impl Picture<'_> {
    fn draw(&self) -> String {
        let usable: BTreeSet<u32> = self.topology.cpus.iter().map(|cpu| cpu.place.cpu).collect();
        let all: BTreeSet<u32> = self.system.online().into_iter().chain(usable.clone()).collect();
        let all: Vec<u32> = all.into_iter().collect();
        let cpus = self.system.describe(&all);
        let mut text = self.headline(all.len());
        self.draw_groups(&mut text, &cpus, &nesting(&cpus), 0);
        let with_cpus: BTreeSet<u32> = cpus.iter().map(|cpu| cpu.place.numa).collect();
        for node in self.system.nodes() {
            if !with_cpus.contains(&node) {
                let _ = writeln!(text, "{}, without CPUs", self.describe_node(node));
            }
        }
        if self.ranks > 0 {
            text.push_str(&self.summary());
        }
        text
    }

    /// How much of the machine the job may use.
    fn headline(&self, all: usize) -> String {
        let usable: Vec<u32> = self.topology.cpus.iter().map(|cpu| cpu.place.cpu).collect();
        let mut text = counted(all, "CPU");
        if usable.len() < all {
            let _ = write!(text, ", of which this job may use {}: {}", usable.len(), ranges(&usable));
        }
        let offline = self.system.offline();
        if !offline.is_empty() {
            let _ = write!(text, "; offline: {}", ranges(&offline));
        }
        if let Some(quota) = self.quota {
            let _ = write!(text, "; a cgroup allows the time of {quota:.1} CPUs");
        }
        text + "\n"
    }

    fn draw_groups(&self, text: &mut String, cpus: &[Cpu], levels: &[Level], depth: usize) {
        let Some((&level, inner)) = levels.split_first() else {
            return;
        };
        let mut groups: BTreeMap<u32, Vec<Cpu>> = BTreeMap::new();
        for cpu in cpus {
            groups.entry(level.of(cpu)).or_default().push(*cpu);
        }
        for (id, members) in groups {
            let line = format!("{:1$}{2}", "", 2 * depth, self.describe(level, id, &members));
            match self.ranks_at(level, id) {
                Some(ranks) => {
                    let _ = writeln!(text, "{line:<38} {ranks}");
                }
                None => {
                    let _ = writeln!(text, "{line}");
                }
            }
            self.draw_groups(text, &members, inner, depth + 1);
        }
    }

    fn describe(&self, level: Level, id: u32, members: &[Cpu]) -> String {
        match level {
            Level::Socket => format!("socket {id}"),
            Level::Numa => self.describe_node(id),
            Level::L3Cache => {
                let size = self.system.last_cache_size(id);
                let kilobytes = size.and_then(|size| size.strip_suffix('K')?.parse().ok());
                kilobytes.map_or_else(|| "l3cache".into(), |k| format!("l3cache, {}", sized(k)))
            }
            Level::HwThread | Level::Core | Level::Board => {
                let number = |member: &Cpu| {
                    let cpu = member.place.cpu;
                    let usable = self.topology.cpus.iter().any(|own| own.place.cpu == cpu);
                    if usable { cpu.to_string() } else { format!("({cpu})") }
                };
                let numbers: Vec<String> = members.iter().map(number).collect();
                let noun = if numbers.len() == 1 { "CPU" } else { "CPUs" };
                format!("core, {noun} {}", numbers.join(" "))
            }
        }
    }

    fn describe_node(&self, node: u32) -> String {
        let mut text = format!("numa {node}");
        if let Some(kilobytes) = self.system.memory(node) {
            let _ = write!(text, ", {}", sized(kilobytes));
        }
        if self.memory.as_ref().is_some_and(|allowed| !allowed.contains(&node)) {
            text.push_str(" that this job may not use");
        }
        text
    }

    /// The ranks bound to a core, cache, node or socket, in words.
    fn ranks_at(&self, level: Level, id: u32) -> Option<String> {
        let bindings = self.bindings.as_ref().filter(|_| self.shown_at() == Some(level))?;
        let is_here = |binding: &Binding| {
            let mut cpus = self.topology.cpus.iter();
            cpus.any(|cpu| cpu.place.cpu == binding.cpu && level.of(cpu) == id)
        };
        let here = (0..).zip(bindings).filter(|(_, binding)| is_here(binding));
        let ranks: Vec<u32> = here.map(|(rank, _)| rank).collect();
        match ranks.len() {
            0 => None,
            1 => Some(format!("rank {}", ranks[0])),
            count => match ranges(&ranks) {
                list if list.len() <= LIST_MAX => Some(format!("ranks {list}")),
                _ => {
                    let (first, last) = (ranges(&ranks[..3]), ranks[count - 1]);
                    Some(format!("{count} ranks: {first},...,{last}"))
                }
            },
        }
    }

    /// The level of the tree at which ranks are shown.
    fn shown_at(&self) -> Option<Level> {
        self.level.map(|level| match level {
            Level::HwThread => Level::Core,
            level => level,
        })
    }

    fn summary(&self) -> String {
        let ranks = counted(self.ranks, "rank");
        let mut text = match self.level {
            Some(level) => format!("{ranks}, bound by {}", level.name()),
            None => format!("{ranks}, not bound (--bind-to core binds them)"),
        };
        let capacity = self.topology.capacity;
        if self.ranks > capacity as usize {
            let cpus = counted(capacity as usize, "CPU");
            let _ = write!(text, "; they take turns on {cpus}");
        }
        text + "\n"
    }
}

/// The levels from the outermost to cores. Which of cache, node and socket holds which differs
/// between machines: the one with fewer members of its kind is outside.
fn nesting(cpus: &[Cpu]) -> [Level; 4] {
    let mut levels = [Level::Socket, Level::Numa, Level::L3Cache, Level::Core];
    let kinds = |level: &Level| cpus.iter().map(|cpu| level.of(cpu)).collect::<BTreeSet<_>>().len();
    levels[..3].sort_by_key(kinds);
    levels
}

fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

fn sized(kilobytes: u64) -> String {
    match kilobytes {
        0..1024 => format!("{kilobytes} KiB"),
        1024..0x10_0000 => format!("{:.0} MiB", kilobytes as f64 / 1024.0),
        _ => format!("{:.1} GiB", kilobytes as f64 / (1024.0 * 1024.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::{Bind, Placement};
    use super::super::topology::tests::{large, on_large};
    use super::*;

    fn lines(placement: &Placement, usable: impl IntoIterator<Item = u32>, ranks: usize) -> Vec<String> {
        let topology = large(usable);
        let text = on_large(|system| {
            let turns = binding::turns(placement, &topology).expect("usable");
            let picture = Picture {
                system: *system,
                bindings: turns.map(|turns| binding::deal(&turns, 0, ranks)),
                level: binding::level(placement),
                ranks,
                memory: Some(vec![0, 1, 2, 3, 8]),
                quota: None,
                topology: topology.clone(),
            };
            picture.draw()
        });
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_large_machine_is_a_tree() {
        let lines = lines(&Placement::default(), 0..128, 0);
        assert_eq!(
            lines[..6],
            [
                "128 CPUs",
                "socket 0",
                "  numa 0, 32.0 GiB",
                "    l3cache, 32 MiB",
                "      core, CPUs 0 64",
                "      core, CPUs 1 65",
            ]
        );
        assert_eq!(lines.len(), 1 + 2 + 8 + 16 + 64 + 1);
        assert_eq!(lines[lines.len() - 1], "numa 8, 16.0 GiB, without CPUs");
        assert!(lines.contains(&"  numa 4, 32.0 GiB that this job may not use".to_owned()));
    }

    #[test]
    fn ranks_stand_beside_what_they_are_bound_to() {
        let placement =
            Placement { bind: Some(Bind::To(Level::L3Cache)), map: Some(Level::Socket), ..Placement::default() };
        let drawn = lines(&placement, (0..8).chain(32..40), 6);
        let ranked: Vec<&String> = drawn.iter().filter(|line| line.contains("rank")).collect();
        assert_eq!(
            ranked,
            [
                "    l3cache, 32 MiB                    ranks 0,2,4",
                "    l3cache, 32 MiB                    ranks 1,3,5",
                "6 ranks, bound by l3cache",
            ]
        );
        assert_eq!(drawn[0], "128 CPUs, of which this job may use 16: 0-7,32-39");
        assert!(drawn.contains(&"      core, CPUs 0 (64)".to_owned()));
    }

    #[test]
    fn ranks_beyond_the_cpus_are_said_to_take_turns() {
        let placement = Placement { bind: Some(Bind::To(Level::Core)), ..Placement::default() };
        let drawn = lines(&placement, [5, 69], 3);
        let core = "      core, CPUs 5 69                  ranks 0-2".to_owned();
        assert!(drawn.contains(&core), "{drawn:?}");
        let last = &drawn[drawn.len() - 1];
        assert_eq!(last, "3 ranks, bound by core; they take turns on 2 CPUs");
        let drawn = lines(&placement, 0..2, 257);
        let core = "      core, CPUs 0 (64)                129 ranks: 0,2,4,...,256".to_owned();
        assert!(drawn.contains(&core), "{drawn:?}");
        let last = lines(&Placement::default(), 0..4, 1).pop();
        let expected = "1 rank, not bound (--bind-to core binds them)";
        assert_eq!(last.as_deref(), Some(expected));
    }

    #[test]
    fn what_is_fewer_is_outside() {
        let mut cpus = large(0..128).cpus;
        let usual = [Level::Socket, Level::Numa, Level::L3Cache, Level::Core];
        assert_eq!(nesting(&cpus), usual);
        for cpu in &mut cpus {
            // One node for both sockets, and a cache for each half of a socket.
            (cpu.place.numa, cpu.place.l3) = (0, cpu.place.core / 16);
        }
        assert_eq!(nesting(&cpus)[..3], [Level::Numa, Level::Socket, Level::L3Cache]);
    }
}
