//! The options: names, help texts, and what each does. Those that other launchers share have their names too.

mod running;

use super::readers::{
    Done, add_hosts, check, config_file, exported, goes_on, grace, initial_errhandler, map_by, memory_kinds, names,
    on_failure, output_folder, print, push, set, some, words,
};
use super::values::{self, Page, Unit};
use super::{Inherit, Input, Print, Reader, Shell};
use crate::launch::host_list::{self, Launcher};
use crate::launch::text;
use cohort_base::settings::Progress;
use cohort_manager::wireup::Numbering;
pub use running::RUNNING;

/// How far an option reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One program.
    Program,
    /// The job, on every node.
    Job,
    /// Where the job is started.
    Here,
}

/// One option.
#[derive(Debug)]
pub struct Row {
    /// Its names with their dashes, ours first. Any takes one dash or two.
    pub names: &'static str,
    /// What its value is, if it takes one.
    pub value: &'static str,
    /// How far it reaches.
    pub scope: Scope,
    /// What it does.
    pub help: &'static str,
    /// Reads it.
    pub read: fn(&mut Reader<'_, '_>) -> Done,
}

pub(super) const fn row(
    names: &'static str,
    value: &'static str,
    scope: Scope,
    help: &'static str,
    read: fn(&mut Reader<'_, '_>) -> Done,
) -> Row {
    Row { names, value, scope, help, read }
}

use Scope::{Here, Job, Program};

/// What fits on a screen.
pub static MAIN: &[Row] = &[
    row(
        "-n -np",
        "N",
        Program,
        "ranks of this program (default 1); also -nN. Under a process manager: ranks on each \
         node; -n 4,2: on the first, on the second",
        |r| set(&mut r.section.ranks, values::ranks(&r.words.value(r.option)?)),
    ),
    row("-env", "NAME VALUE", Program, "set an environment variable for this program", |r| {
        push(&mut r.section.environment, r.words.pair(r.option))
    }),
    row("-genv", "NAME VALUE", Job, "the same for all programs; -x NAME=VALUE too", |r| {
        push(&mut r.options.variables.set, r.words.pair(r.option))
    }),
    row("-wdir -wd", "DIR", Program, "working directory of this program", |r| {
        some(&mut r.section.directory, r.words.value(r.option).map(Into::into))
    }),
    row("-l --label -prepend-rank", "", Job, "begin each line of output with its rank: [3] ...", |r| {
        set(&mut r.options.streams.output.label, Ok(true))
    }),
    row(
        "--bind-to",
        "none|hwthread|core|l3cache|numa|socket|board",
        Job,
        "bind each rank to a core, or to what shares a cache ... with its core",
        |r| some(&mut r.options.placement.bind, values::bind(r.option, &r.words.value(r.option)?)),
    ),
    row(
        "--map-by",
        "[ppr:N:]UNIT[:PE=N]",
        Job,
        "order in which ranks take cores: one of each UNIT of --bind-to in turn, or N; binds them. PE=N: N cores \
         each. node: deal out rank numbers over nodes",
        map_by,
    ),
    row(
        "--topology --display-topo",
        "",
        Here,
        "show this machine and where the ranks would run, and start none",
        |r| set(&mut r.options.instead.topology, Ok(true)),
    ),
    row("-c", "CPU", Job, "bind one rank to each core, beginning with that of this CPU", |r| {
        some(&mut r.options.placement.first_cpu, values::number(r.option, &r.words.value(r.option)?, "a CPU number"))
    }),
    row("--timeout", "SECONDS", Job, "end the job after this time, with status 124", |r| {
        some(&mut r.options.start.timeout, values::timeout(&r.words.value(r.option)?))
    }),
    row(
        "--hosts -host -H",
        "A:4,B:4",
        Here,
        "start on these hosts, with 4 ranks each: here, or by the process manager; --launcher \
         hydra|srun|prterun chooses it, --dry-run only prints its command",
        |r| add_hosts(r, host_list::parse),
    ),
    row("--check", "[=WORDS]", Job, "look for mistakes in the use of MPI; --check=list: kinds and words", check),
    row("--isolate", "", Job, "one address space per rank, joined by the network (for debugging)", |r| {
        set(&mut r.options.start.isolate, Ok(true))
    }),
    row("--no-mpi", "", Job, "run programs that use no MPI; needs no Cohort libraries", |r| {
        set(&mut r.options.start.no_mpi, Ok(true))
    }),
    row("--policies", "", Here, "list the progress policies, which are the values of COHORT_PROGRESS", |r| {
        print(r, Progress::LISTING.to_owned())
    }),
    row("--info", "", Here, "settings, pinning, libraries, network and kernel features here, with warnings", |r| {
        set(&mut r.options.instead.info, Ok(true))
    }),
    row("--version -V", "", Here, "the version", |r| print(r, text::version())),
    row(
        "--help -h",
        "[=all]",
        Here,
        "this page; --help=all: every option, also those of other launchers; --help=settings: the COHORT_* variables",
        |r| {
            let part = r.words.attached.take();
            r.print = Some(Print::Help(Page::of(part.as_deref())));
            Ok(())
        },
    ),
];

/// The others.
pub static MORE: &[Row] = &[
    row(
        "--draw",
        "FILE",
        Here,
        "draw a timeline (COHORT_TRACE) into FILE.svg, or the .svg or .html that follows; one --draw for each node",
        |r| push(&mut r.options.instead.draw, r.words.value(r.option).map(Into::into)),
    ),
    row("--launcher", "hydra|srun|prterun", Here, "the process manager for --hosts", |r| {
        let choices = [("hydra", Launcher::Hydra), ("srun", Launcher::Srun), ("prterun", Launcher::Prterun)];
        some(&mut r.options.hosts.launcher, values::choose(r.option, &r.words.value(r.option)?, &choices))
    }),
    row("--dry-run", "", Here, "with --hosts: only print the process manager's command line", |r| {
        set(&mut r.options.hosts.dry_run, Ok(true))
    }),
    row(
        "-memory-alloc-kinds",
        "KINDS",
        Job,
        "kinds of memory that the programs pass to MPI (MPI 4.1, 11.5)",
        memory_kinds,
    ),
    row(
        "-initial-errhandler",
        "mpi_errors_are_fatal|mpi_errors_abort|mpi_errors_return",
        Job,
        "the error handler that programs begin with (MPI 5.0, 11.5)",
        initial_errhandler,
    ),
    row(
        "--on-failure --with-ft",
        "end|continue",
        Job,
        "what happens when a rank fails: the job ends, or the others go on and MPI tells them (MPIX_Comm_shrink ...)",
        on_failure,
    ),
    row("-disable-auto-cleanup --enable-recovery", "", Job, "the same as --on-failure continue", goes_on),
    row(
        "--grace",
        "SECONDS",
        Job,
        "how long ranks may take to end when pip-exec gets SIGTERM (default 30): COHORT_GRACE",
        grace,
    ),
    row(
        "--own-sessions",
        "",
        Job,
        "each rank begins a session of its own: more CPU time on a machine with other work",
        |r| set(&mut r.options.start.own_sessions, Ok(true)),
    ),
    row("--keep-pmi", "", Job, "let ranks see the process manager's variables (PMI_*, PMIX_*)", |r| {
        set(&mut r.options.variables.keep_manager, Ok(true))
    }),
    row(
        "-f --hostfile -machinefile -machine",
        "FILE",
        Here,
        "the hosts of --hosts, one a line: HOST, HOST:4 or HOST slots=4",
        |r| add_hosts(r, |file| host_list::read(file.as_ref())),
    ),
    row(
        "-ppn -perhost -N -npernode",
        "N",
        Here,
        "ranks on each host that has no number; without -n, N ranks on each",
        |r| {
            some(&mut r.options.hosts.per_host, values::count(r.option, &r.words.value(r.option)?, "a number of ranks"))
        },
    ),
    row("-rr -bynode", "", Job, "as --map-by node", |r| set(&mut r.options.placement.numbering, Ok(Numbering::Cyclic))),
    row("--oversubscribe", "", Here, "more ranks than --hosts has slots for may run", |r| {
        some(&mut r.options.placement.oversubscribe, Ok(true))
    }),
    row("--nooversubscribe", "", Job, "refuse more ranks on a node than it has cores", |r| {
        some(&mut r.options.placement.oversubscribe, Ok(false))
    }),
    row("--cpus-per-rank -cpus-per-proc", "N", Job, "as PE=N of --map-by: cores of each rank", |r| {
        some(&mut r.options.placement.cores, values::count(r.option, &r.words.value(r.option)?, "a number of cores"))
    }),
    row("--rank-by", "UNIT", Job, "number the ranks one of each unit in turn, whatever --map-by says", |r| {
        let name = r.words.value(r.option)?;
        match values::unit(r.option, &name.to_string_lossy())? {
            Unit::Slot => r.options.placement.rank_by = None,
            Unit::Node => r.options.placement.numbering = Numbering::Cyclic,
            Unit::Of(level) => r.options.placement.rank_by = Some(level),
        }
        Ok(())
    }),
    row("-x", "NAME[=VALUE]", Job, "give ranks the variable, as it is here if there is no value", exported),
    row("-genvall", "", Job, "ranks inherit the environment (the default)", |r| {
        set(&mut r.options.variables.inherit, Ok(Inherit::All))
    }),
    row("-genvnone", "", Job, "ranks inherit nothing: they have what -env, -genv and -x say", |r| {
        set(&mut r.options.variables.inherit, Ok(Inherit::Only(Vec::new())))
    }),
    row("-genvlist", "A,B", Job, "ranks inherit these variables only", |r| {
        set(&mut r.options.variables.inherit, names(r.words, r.option).map(Inherit::Only))
    }),
    row("-genvexcl", "A,B", Job, "ranks inherit all variables but these", |r| {
        set(&mut r.options.variables.inherit, names(r.words, r.option).map(Inherit::Except))
    }),
    row("-envall", "", Program, "as -genvall, for this program", |r| some(&mut r.section.inherit, Ok(Inherit::All))),
    row("-envnone", "", Program, "as -genvnone, for this program", |r| {
        some(&mut r.section.inherit, Ok(Inherit::Only(Vec::new())))
    }),
    row("-envlist", "A,B", Program, "as -genvlist, for this program", |r| {
        some(&mut r.section.inherit, names(r.words, r.option).map(Inherit::Only))
    }),
    row("-envexcl", "A,B", Program, "as -genvexcl, for this program", |r| {
        some(&mut r.section.inherit, names(r.words, r.option).map(Inherit::Except))
    }),
    row("--tag-output", "", Job, "begin each line as Open MPI does: [1,3]<stdout>:", |r| {
        set(&mut r.options.streams.output.tag, Ok(true))
    }),
    row("--timestamp-output", "", Job, "begin each line with the time and <stdout>:", |r| {
        set(&mut r.options.streams.output.timestamp, Ok(true))
    }),
    row("-prepend-pattern", "TEXT", Job, "begin each line with TEXT; %r: its rank, %h: the host, %p: the node", |r| {
        some(&mut r.options.streams.output.pattern, words(r.words, r.option))
    }),
    row(
        "-outfile-pattern",
        "FILE",
        Job,
        "ranks write their standard output to files; %r: the rank, %h: the host",
        |r| some(&mut r.options.streams.output.files[0], words(r.words, r.option)),
    ),
    row("-errfile-pattern", "FILE", Job, "the same for standard error", |r| {
        some(&mut r.options.streams.output.files[1], words(r.words, r.option))
    }),
    row(
        "--output-filename",
        "DIR[:nocopy,nojobid]",
        Job,
        "each rank's output also goes to DIR/1/rank.N/stdout and stderr; nocopy: there only; nojobid: without 1/",
        output_folder,
    ),
    row("-s --stdin", "all|none|N", Job, "the rank that gets standard input (default 0)", |r| {
        let value = r.words.value(r.option)?;
        let choices = [("all", Input::All), ("none", Input::None)];
        let found = values::choose(r.option, &value, &choices);
        let number = |_| values::number(r.option, &value, "all, none or a rank").map(Input::Rank);
        set(&mut r.options.streams.input, found.or_else(number))
    }),
    row("-configfile -app", "FILE", Here, "read options and programs from a file, a program on each line", config_file),
    row("--report-bindings", "", Job, "say which CPUs each rank is bound to", |r| {
        set(&mut r.options.said.report.bindings, Ok(true))
    }),
    row("--display-map --display-allocation", "", Job, "show the machine and where ranks run, and start them", |r| {
        set(&mut r.options.said.report.map, Ok(true))
    }),
    row("-print-rank-map", "", Job, "say which ranks run on which host", |r| {
        set(&mut r.options.said.report.ranks, Ok(true))
    }),
    row("-v -verbose", "", Job, "say what is started, with which libraries", |r| {
        set(&mut r.options.said.report.start, Ok(true))
    }),
    row("-q --quiet", "", Job, "no advice and no notes, only errors", |r| set(&mut r.options.said.quiet, Ok(true))),
    row("--allow-run-as-root", "", Here, "nothing: root may", |_| Ok(())),
    row("-ordered-output", "", Here, "nothing: lines are whole anyway", |_| Ok(())),
];

/// What packagers use.
static HIDDEN: &[Row] = &[
    row("--man", "", Here, "the page for man(1)", |r| {
        r.print = Some(Print::Manual);
        Ok(())
    }),
    row("--completion", "bash|zsh|fish", Here, "what completes these options in a shell", |r| {
        let shells = [("bash", Shell::Bash), ("zsh", Shell::Zsh), ("fish", Shell::Fish)];
        let shell = values::choose(r.option, &r.words.value(r.option)?, &shells)?;
        r.print = Some(Print::Completion(shell));
        Ok(())
    }),
];

/// The option with this name, dashes aside.
pub fn find(name: &str) -> Option<&'static Row> {
    let mut all = rows().chain(HIDDEN);
    all.find(|row| row.plain_names().any(|own| own == name))
}

/// All options.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    MAIN.iter().chain(RUNNING).chain(MORE)
}

impl Row {
    /// Its names without their dashes.
    pub fn plain_names(&self) -> impl Iterator<Item = &'static str> {
        self.names.split(' ').map(|name| name.trim_start_matches('-'))
    }

    /// How many words follow it as its value; one that follows `=` in the same word is none.
    pub fn value_words(&self) -> usize {
        match self.value.starts_with("[=") {
            true => 0,
            false => self.value.split_whitespace().count(),
        }
    }

    /// The words that its value may be, if it is one of some.
    pub fn choices(&self) -> impl Iterator<Item = &'static str> {
        let choices = self.value.split('|').filter(|_| self.value.contains('|'));
        choices.filter(|word| word.chars().all(|letter| !letter.is_ascii_uppercase()))
    }

    /// Its value is the path of a file or folder.
    pub fn takes_path(&self) -> bool {
        self.value.starts_with("FILE") || self.value.starts_with("DIR")
    }
}
