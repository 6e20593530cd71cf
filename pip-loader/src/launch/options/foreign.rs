//! Options of other launchers about what is inside them: accepted where nothing is lost without them, refused with
//! the way out where the job would not do what was asked.

use super::Words;
use pip_ground::Refusal;

/// Such options: names without dashes, and how many words follow them.
struct Rows {
    names: &'static str,
    values: usize,
    /// What to use instead, if the job would be another one without it.
    instead: Option<&'static str>,
}

const fn harmless(values: usize, names: &'static str) -> Rows {
    Rows { names, values, instead: None }
}

const fn refused(names: &'static str, instead: &'static str) -> Rows {
    Rows { names, values: 0, instead: Some(instead) }
}

static TABLE: &[Rows] = &[
    // Hydra's, Intel's too.
    harmless(
        1,
        "iface bootstrap bootstrap-exec bootstrap-exec-args launcher-exec launcher-exec-args rmk demux usize topolib \
         branch-count tmpdir pmi-port localhost tune order-nodes hostos pmi-connect port-range bind-to-cache",
    ),
    harmless(
        0,
        "disable-x enable-x disable-hostname-propagation enable-hostname-propagation auto-cleanup \
         enable-auto-cleanup silent-abort profile skip-launch-node noconf debug d hydra-bstrap pmi1 \
         pmi2 pmix",
    ),
    refused(
        "continuous max-restarts",
        "failed ranks are not started again: --on-failure continue lets the others go on",
    ),
    refused(
        "ckpointlib ckpoint-prefix ckpoint-num ckpoint-interval",
        "checkpoints are the program's own; SIGUSR1, SIGUSR2 and SIGTERM to pip-exec reach the ranks",
    ),
    refused(
        "gdb gdba gtool gtoolfile trace t check_mpi mps aps vtune tv xterm stop-on-exec stop-in-init",
        "put the tool before the program, as in pip-exec -n 2 gdb ./app",
    ),
    // Published names are found without a server.
    harmless(1, "nameserver ompi-server server-wait-time"),
    refused("dvm dvm-uri", "each job has launchers of its own, which end with it"),
    refused(
        "binding rankfile rf cpu-set cpu-list",
        "--bind-to, --map-by and --rank-by place the ranks, taskset before pip-exec chooses CPUs",
    ),
    refused("nolocal", "--hosts names the hosts that take ranks"),
    refused("path", "set PATH, or write the program's path"),
    refused("preload-files preload-binary pernode-file", "copy the files before the job starts"),
    // Open MPI's.
    harmless(2, "mca gmca omca prtemca pmixmca"),
    harmless(
        1,
        "prefix am tune-file personality report-pid report-uri launch-agent hnp runtime-options report-state \
         fwd-mpirun-port-range display forward-signals",
    ),
    harmless(
        0,
        "noprefix novm do-not-resolve leave-session-attached debug-devel debug-daemons debug-daemons-file \
         use-regexp use-hwthread-cpus show-progress display-devel-map display-devel-allocation \
         report-child-jobs-separately tune-nothing get-stack-traces nolocal-hnp",
    ),
];

/// Parameters of Open MPI that place ranks: what they ask for has an option.
const PLACING: [(&str, &str); 6] = [
    ("rmaps_base_mapping_policy", "--map-by"),
    ("rmaps_default_mapping_policy", "--map-by"),
    ("rmaps_base_oversubscribe", "--oversubscribe"),
    ("rmaps_base_ranking_policy", "--rank-by"),
    ("hwloc_base_binding_policy", "--bind-to"),
    ("hwloc_default_binding_policy", "--bind-to"),
];

/// Reads the option `name` (typed as `option`) of another launcher and what belongs to it, if it is one.
///
/// # Errors
/// The job would not do what was asked; the message says what does.
pub fn read(name: &str, option: &str, words: &mut Words<'_>) -> Result<bool, Refusal> {
    let has = |rows: &&Rows| rows.names.split_whitespace().any(|own| own == name);
    let Some(rows) = TABLE.iter().find(has) else {
        return Ok(false);
    };
    if let Some(instead) = rows.instead {
        return Err(Refusal::new(format!("option {option} of another launcher means nothing here: {instead}")));
    }
    for index in 0..rows.values {
        let value = words.value(option)?;
        if let Some((parameter, own)) = PLACING.iter().find(|(parameter, _)| value == *parameter)
            && index == 0
        {
            return Err(Refusal::new(format!("option {option} {parameter}: use {own}")));
        }
    }
    Ok(true)
}

/// All names.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().flat_map(|rows| rows.names.split_whitespace())
}
