//! Allocations of batch systems that have several hosts, of which a job without `--hosts` takes one.

use super::options::{Options, Variables};
use std::collections::HashSet;
use std::ffi::OsStr;

/// What is to be said of a job that runs on this host alone, if it looks as if it was meant for several.
#[must_use]
pub fn advice(options: &Options) -> Vec<String> {
    let variables = &options.variables;
    let has = |name: &str| variables.found(name).and_then(OsStr::to_str).map(str::to_owned);
    // What a manager has started is on each host, and what a rank starts is meant for its own.
    if options.hosts.chosen.is_some() || cohort_manager::is_present(has) || has(cohort_base::boot::DESCENDANT).is_some()
    {
        return Vec::new();
    }
    let ranks: usize = options.sections.iter().map(|section| section.ranks.iter().sum::<usize>().max(1)).sum();
    let allocated = unused(variables).filter(|_| ranks > 1).map(|(system, hosts, way)| {
        format!("{system} has given this job {hosts} hosts, and all {ranks} ranks run on this one; {way} uses them all")
    });
    let per_host = options.hosts.per_host.filter(|&per_host| per_host < ranks).map(|per_host| {
        format!("-ppn {per_host} does nothing: no hosts are named (--hosts), so that all {ranks} ranks run on this one")
    });
    allocated.into_iter().chain(per_host).collect()
}

/// The batch system whose allocation has several hosts, how many, and what uses them.
fn unused(variables: &Variables) -> Option<(&'static str, usize, &'static str)> {
    let text = |name: &str| variables.found(name).and_then(OsStr::to_str).map(str::to_owned);
    let distinct = |words: String| words.split_whitespace().collect::<HashSet<_>>().len();
    let slurm = || text("SLURM_JOB_NUM_NODES")?.parse().ok();
    let pbs = || std::fs::read_to_string(text("PBS_NODEFILE")?).ok().map(distinct);
    let lsf = || text("LSB_HOSTS").map(distinct);
    let found = [
        ("Slurm", slurm(), "--hosts \"$(scontrol show hostnames | paste -sd,)\", or srun before pip-exec,"),
        ("PBS", pbs(), "-f \"$PBS_NODEFILE\""),
        ("LSF", lsf(), "--hosts \"$(echo $LSB_HOSTS | tr ' ' ,)\""),
    ];
    found
        .into_iter()
        .find_map(|(system, hosts, way)| hosts.filter(|&hosts| hosts > 1).map(|hosts| (system, hosts, way)))
}

#[cfg(test)]
mod tests {
    use super::super::options::{Request, parse};
    use super::*;
    use std::ffi::OsString;

    fn said(line: &str, around: &[(&str, &str)]) -> String {
        let words = line.split_whitespace().map(OsString::from).collect();
        let around = around.iter().map(|&(name, value)| (name.into(), value.into())).collect();
        let Ok(Request::Run(options)) = parse(words, around) else {
            panic!("{line}");
        };
        advice(&options).join("\n")
    }

    #[test]
    fn hosts_that_are_not_used_are_told() {
        let slurm = ("SLURM_JOB_NUM_NODES", "2");
        assert!(said("-n 4 p", &[slurm]).contains("Slurm has given this job 2 hosts, and all 4 ranks"));
        assert!(said("-n 4 p", &[("LSB_HOSTS", "a a b b")]).starts_with("LSF has given this job 2 hosts"));
        assert_eq!(said("-n 4 p", &[("SLURM_JOB_NUM_NODES", "1")]), "");
        assert_eq!(said("-n 1 p", &[slurm]), "", "what prepares a job needs one host");
        assert_eq!(said("-n 4 p", &[slurm, ("PMI_FD", "3")]), "", "one of several");
        assert_eq!(said("--hosts a,b -n 4 p", &[slurm]), "");
    }

    #[test]
    fn a_number_of_ranks_on_each_host_needs_hosts() {
        assert!(said("-n 4 -ppn 2 p", &[]).contains("no hosts are named"));
        assert_eq!(said("-n 4 -ppn 4 p", &[]), "");
        assert_eq!(said("-ppn 4 p", &[]), "");
        assert_eq!(said("-hosts a,b -n 4 -ppn 2 p", &[]), "");
    }
}
