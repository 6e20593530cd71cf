//! The command line, in mpiexec's manner: long options take one dash or two, a value
//! follows as the next word or after `=`, and `:` separates programs.

use super::host_list::{self, Host, Launcher};
use super::topology::Level;
use super::{Refusal, text};
use cohort_base::settings::{MEMORY_KINDS, Progress, nearest};
use cohort_manager::Place;
use cohort_manager::wireup::{Numbering, RANKS_MAX};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

/// What a command line asks for.
#[derive(Debug)]
pub enum Request {
    /// Print this text and end.
    Print(&'static str),
    /// Run a job.
    Run(Options),
    /// Show the machine, and where the ranks of such a job would run; programs may be missing.
    Show(Options),
}

/// A job.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The programs, in rank order; at least one.
    pub sections: Vec<Section>,
    /// `-genv`: for every program.
    pub environment: Vec<(OsString, OsString)>,
    /// `--label`.
    pub label: bool,
    /// `--bind-to`, if given.
    pub bind: Option<Bind>,
    /// `--map-by`, if given.
    pub map: Option<Level>,
    /// `-c`: the CPU whose core is the first to take.
    pub first_cpu: Option<u32>,
    /// `--topology`: only show the machine and where ranks would run.
    pub topology: bool,
    /// `--timeout`.
    pub timeout: Option<Duration>,
    /// `--no-mpi`: open no node image.
    pub no_mpi: bool,
    /// `--hosts`: start the job there.
    pub hosts: Option<Vec<Host>>,
    /// `--launcher`: the process manager to do so, if not the first that is found.
    pub launcher: Option<Launcher>,
    /// `--dry-run`: only print the process manager's command line.
    pub dry_run: bool,
    /// `--isolate`: each rank gets an address space of its own.
    pub isolate: bool,
    /// `--map-by node`: how ranks are numbered over several nodes.
    pub numbering: Numbering,
    /// `--keep-pmi`: ranks inherit the process manager's variables.
    pub keep_manager: bool,
}

/// One program of a job.
#[derive(Debug, PartialEq, Eq)]
pub struct Section {
    /// `-n`: ranks on each node, one number for all or one for each; empty if not given.
    pub ranks: Vec<usize>,
    /// `-env`.
    pub environment: Vec<(OsString, OsString)>,
    /// `-wdir`.
    pub directory: Option<PathBuf>,
    /// The program's name as typed; empty if there is none, with `--topology`.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

impl Section {
    /// How many ranks of this program run on a node.
    ///
    /// # Errors
    /// `-n` has other nodes in mind than the job has.
    pub fn ranks_on(&self, place: Place) -> Result<usize, Refusal> {
        match self.ranks.as_slice() {
            [] => Ok(1),
            [every] => Ok(*every),
            each if each.len() == place.count as usize => Ok(each[place.index as usize]),
            each => Err(Refusal::new(format!(
                "-n gives ranks for {} nodes, but the job has {} (--hosts starts one on several)",
                each.len(),
                place.count
            ))),
        }
    }
}

/// `--bind-to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bind {
    /// Ranks run where the system puts them.
    None,
    /// Each rank stays on its core, or on what shares a cache, a node or a socket with it.
    To(Level),
}

/// All options, without dashes: names to match and to suggest.
const NAMES: [&str; 25] = [
    "n",
    "np",
    "env",
    "genv",
    "wdir",
    "wd",
    "l",
    "label",
    "bind-to",
    "map-by",
    "topology",
    "c",
    "timeout",
    "hosts",
    "launcher",
    "dry-run",
    "no-mpi",
    "isolate",
    "keep-pmi",
    "memory-alloc-kinds",
    "policies",
    "version",
    "help",
    "V",
    "h",
];

/// Reads the arguments of `pip-exec`, without its own name.
///
/// # Errors
/// The message for the user.
pub fn parse(arguments: Vec<OsString>) -> Result<Request, Refusal> {
    let mut options = Options::default();
    for words in arguments.split(|word| word == ":") {
        match parse_section(words, &mut options)? {
            Parsed::Section(section) => options.sections.push(section),
            Parsed::Print(text) => return Ok(Request::Print(text)),
        }
    }
    let hosts = options.hosts.is_some();
    if options.topology {
        return match hosts {
            true => Err(Refusal::new(
                "--topology shows this machine; to see another one, run it there without --hosts",
            )),
            false => Ok(Request::Show(options)),
        };
    }
    if options
        .sections
        .iter()
        .any(|section| section.program.is_empty())
    {
        return Err(Refusal::new(match options.sections.len() {
            1 => "no program to run; see pip-exec --help",
            _ => "a `:` without a program on one of its sides",
        }));
    }
    if !hosts && (options.dry_run || options.launcher.is_some()) {
        let what = "--dry-run and --launcher go with --hosts, which is missing";
        return Err(Refusal::new(what));
    }
    Ok(Request::Run(options))
}

/// What the words of one section ask for.
enum Parsed {
    /// This text.
    Print(&'static str),
    /// A program, or none with options only.
    Section(Section),
}

/// Words of one section that are still to be read.
struct Words<'a> {
    rest: std::slice::Iter<'a, OsString>,
    /// What followed `=` in the last option, if anything.
    attached: Option<OsString>,
}

impl Words<'_> {
    fn value(&mut self, option: &str) -> Result<OsString, Refusal> {
        match self.attached.take() {
            Some(value) => Ok(value),
            None => self
                .rest
                .next()
                .cloned()
                .ok_or_else(|| Refusal::new(format!("option {option} needs a value"))),
        }
    }

    fn pair(&mut self, option: &str) -> Result<(OsString, OsString), Refusal> {
        // mpiexec knows `-env NAME VALUE`; `-env NAME=VALUE` is what people also type.
        let name = self.value(option)?;
        if let Some((name, value)) = split_at_equals(&name) {
            return Ok((name, value));
        }
        if name.is_empty() {
            return Err(Refusal::new(format!(
                "option {option} needs a name and a value"
            )));
        }
        let value = self
            .rest
            .next()
            .cloned()
            .ok_or_else(|| Refusal::new(format!("option {option} needs a name and a value")))?;
        Ok((name, value))
    }
}

/// Reads one section.
fn parse_section(words: &[OsString], options: &mut Options) -> Result<Parsed, Refusal> {
    let mut section = Section {
        ranks: Vec::new(),
        environment: Vec::new(),
        directory: None,
        program: OsString::new(),
        arguments: Vec::new(),
    };
    let mut words = Words {
        rest: words.iter(),
        attached: None,
    };
    while let Some(word) = words.rest.next() {
        if word == "--" || !word.as_encoded_bytes().starts_with(b"-") {
            let program = if word == "--" {
                words.rest.next()
            } else {
                Some(word)
            };
            let Some(program) = program else { break };
            section.program.clone_from(program);
            section.arguments = words.rest.cloned().collect();
            break;
        }
        if let Some(text) = parse_option(word, &mut words, &mut section, options)? {
            return Ok(Parsed::Print(text));
        }
    }
    Ok(Parsed::Section(section))
}

/// Reads one option; gives the text to print for those that ask for one.
fn parse_option(
    word: &OsStr,
    words: &mut Words<'_>,
    section: &mut Section,
    options: &mut Options,
) -> Result<Option<&'static str>, Refusal> {
    let (option, attached) = match split_at_equals(word) {
        Some((option, value)) => (option, Some(value)),
        None => (word.to_owned(), None),
    };
    words.attached = attached;
    let option = option.to_string_lossy().into_owned();
    match option.trim_start_matches('-') {
        "n" | "np" => section.ranks = ranks(&words.value(&option)?)?,
        "env" => section.environment.push(words.pair(&option)?),
        "genv" => options.environment.push(words.pair(&option)?),
        "wdir" | "wd" => section.directory = Some(words.value(&option)?.into()),
        "l" | "label" => options.label = true,
        "memory-alloc-kinds" => {
            let kinds = words.value(&option)?;
            options.environment.push((MEMORY_KINDS.into(), kinds));
        }
        "no-mpi" => options.no_mpi = true,
        "isolate" => options.isolate = true,
        "dry-run" => options.dry_run = true,
        "hosts" => options.hosts = Some(host_list::parse(&words.value(&option)?)?),
        "launcher" => {
            let choices = [
                ("hydra", Launcher::Hydra),
                ("srun", Launcher::Srun),
                ("prterun", Launcher::Prterun),
            ];
            options.launcher = Some(choose(&option, &words.value(&option)?, &choices)?);
        }
        "keep-pmi" => options.keep_manager = true,
        "bind-to" => {
            let levels = Level::ALL.map(|(name, level)| (name, Bind::To(level)));
            let choices: Vec<_> = [("none", Bind::None)].into_iter().chain(levels).collect();
            options.bind = Some(choose(&option, &words.value(&option)?, &choices)?);
        }
        "map-by" => {
            let levels = Level::ALL.map(|(name, level)| (name, Some(level)));
            let choices: Vec<_> = levels.into_iter().chain([("node", None)]).collect();
            match choose(&option, &words.value(&option)?, &choices)? {
                None => options.numbering = Numbering::Cyclic,
                map => options.map = map,
            }
        }
        "c" => options.first_cpu = Some(number(&option, &words.value(&option)?, "a CPU number")?),
        "topology" => options.topology = true,
        "timeout" => options.timeout = Some(timeout(&words.value(&option)?)?),
        "help" | "h" => return Ok(Some(text::HELP)),
        "version" | "V" => return Ok(Some(text::VERSION)),
        "policies" => return Ok(Some(Progress::LISTING)),
        name => return Err(unknown(&option, name)),
    }
    match words.attached.take() {
        Some(_) => Err(Refusal::new(format!("option {option} takes no value"))),
        None => Ok(None),
    }
}

fn unknown(option: &str, name: &str) -> Refusal {
    let hint = match nearest(name, NAMES.into_iter()) {
        Some(near) => {
            let dashes = if option.starts_with("--") && near.len() > 2 {
                "--"
            } else {
                "-"
            };
            format!("; did you mean {dashes}{near}?")
        }
        None => "; see pip-exec --help".to_owned(),
    };
    Refusal::new(format!("unknown option {option}{hint}"))
}

fn split_at_equals(word: &OsStr) -> Option<(OsString, OsString)> {
    use std::os::unix::ffi::OsStrExt;
    let bytes = word.as_bytes();
    let at = bytes
        .iter()
        .position(|&byte| byte == b'=')
        .filter(|&at| at > 0)?;
    Some((
        OsStr::from_bytes(&bytes[..at]).to_owned(),
        OsStr::from_bytes(&bytes[at + 1..]).to_owned(),
    ))
}

fn ranks(value: &OsStr) -> Result<Vec<usize>, Refusal> {
    let text = value.to_string_lossy();
    let count = |part| {
        let what = "a number of ranks, 1 or more, or one for each node (4,2)";
        match number("-n", OsStr::new(part), what)? {
            ranks if ranks <= RANKS_MAX as usize => Ok(ranks),
            ranks => Err(Refusal::new(format!(
                "-n {ranks}: more than {RANKS_MAX} ranks cannot exist"
            ))),
        }
    };
    let ranks = text.split(',').map(count).collect::<Result<Vec<_>, _>>()?;
    match ranks.iter().sum() {
        0_usize => Err(Refusal::new("-n 0: a program needs at least one rank")),
        _ => Ok(ranks),
    }
}

fn timeout(value: &OsStr) -> Result<Duration, Refusal> {
    let seconds: f64 = number("--timeout", value, "seconds")?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|limit| !limit.is_zero() && limit.as_secs() < 1 << 31)
        .ok_or_else(|| {
            Refusal::new(format!(
                "--timeout {seconds}: it takes seconds, more than 0"
            ))
        })
}

fn number<T: std::str::FromStr>(option: &str, value: &OsStr, what: &str) -> Result<T, Refusal> {
    let parsed = value.to_str().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| {
        Refusal::new(format!(
            "option {option} takes {what}, not \"{}\"",
            value.to_string_lossy()
        ))
    })
}

fn choose<T: Copy>(option: &str, value: &OsStr, choices: &[(&str, T)]) -> Result<T, Refusal> {
    let found = choices.iter().find(|(name, _)| value == OsStr::new(name));
    found.map(|&(_, choice)| choice).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|&(name, _)| name).collect();
        let names = names.join(", ");
        Refusal::new(format!(
            "option {option} takes {names}, not \"{}\"",
            value.to_string_lossy()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Options {
        match parse(line.split_whitespace().map(OsString::from).collect()) {
            Ok(Request::Run(options)) => options,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn refusal(line: &str) -> String {
        match parse(line.split_whitespace().map(OsString::from).collect()) {
            Err(refusal) => refusal.to_string(),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_program_keeps_its_own_options() {
        let options = run("-n 3 ./app -n 5 --help");
        assert_eq!(options.sections.len(), 1);
        assert_eq!(options.sections[0].ranks, [3]);
        assert_eq!(options.sections[0].arguments, ["-n", "5", "--help"]);
    }

    #[test]
    fn every_node_may_have_its_own_number_of_ranks() {
        let on = |line: &str, index, count| run(line).sections[0].ranks_on(Place { index, count });
        assert_eq!(on("-n 4,2 p", 1, 2).unwrap(), 2);
        assert_eq!(on("-n 3 p", 6, 7).unwrap(), 3);
        assert_eq!(on("p", 0, 1).unwrap(), 1);
        let message = on("-n 4,2 p", 0, 1).unwrap_err().to_string();
        assert!(message.contains("2 nodes, but the job has 1"), "{message}");
        assert_eq!(run("--map-by node p").numbering, Numbering::Cyclic);
    }

    #[test]
    fn sections_have_their_own_environment_and_share_the_global_one() {
        let options = run("-genv A 1 -env B 2 -np 1 p : -wdir /tmp --n=2 -env C=3 -- -q");
        assert_eq!(options.environment, [("A".into(), "1".into())]);
        assert_eq!(options.sections[0].environment, [("B".into(), "2".into())]);
        assert_eq!(options.sections[1].environment, [("C".into(), "3".into())]);
        assert_eq!(options.sections[1].ranks, [2]);
        assert_eq!(options.sections[1].program, "-q");
        assert_eq!(
            options.sections[1].directory.as_deref(),
            Some("/tmp".as_ref())
        );
    }

    #[test]
    fn long_options_take_one_dash_or_two() {
        for line in [
            "-bind-to core -map-by numa -timeout 1.5 -label p",
            "--bind-to=core --map-by numa --timeout=1.5 -l p",
        ] {
            let options = run(line);
            assert_eq!(options.bind, Some(Bind::To(Level::Core)));
            assert_eq!(options.map, Some(Level::Numa));
            assert_eq!(options.timeout, Some(Duration::from_millis(1500)));
            assert!(options.label);
        }
    }

    #[test]
    fn refusals_name_what_is_valid() {
        assert!(refusal("-n 0 p").contains("at least one rank"));
        assert!(refusal("-n x p").contains("a number of ranks"));
        assert!(refusal("-n").contains("needs a value"));
        assert!(refusal("--tiemout 3 p").contains("did you mean --timeout?"));
        assert!(refusal("-genvs A 1 p").contains("did you mean -genv?"));
        let levels = "none, core, l3cache, numa, socket, not \"l3\"";
        assert!(refusal("--bind-to l3 p").contains(levels));
        assert!(refusal("--map-by Core p").contains("core, l3cache, numa, socket, node"));
        assert!(refusal("--timeout 0 p").contains("more than 0"));
        assert!(refusal("--label=yes p").contains("takes no value"));
        assert!(refusal("").contains("no program"));
        assert!(refusal("p :").contains("without a program"));
        assert!(refusal("--dry-run p").contains("--hosts"));
        assert!(refusal("--launcher ssh --hosts a p").contains("hydra, srun, prterun"));
        assert!(refusal("-n 2,x p").contains("4,2"));
    }

    #[test]
    fn the_machine_is_shown_with_and_without_programs() {
        let show = |line: &str| {
            let words = line.split_whitespace().map(OsString::from).collect();
            match parse(words) {
                Ok(Request::Show(options)) => options,
                other => panic!("{line}: {other:?}"),
            }
        };
        assert!(show("--topology").sections[0].ranks.is_empty());
        assert_eq!(show("--topology -n 3").sections[0].ranks, [3]);
        let options = show("-n 1 a : --topology -n 2 --bind-to l3cache b");
        assert_eq!(options.sections.len(), 2);
        assert_eq!(options.bind, Some(Bind::To(Level::L3Cache)));
        assert!(refusal("--topology --hosts a p").contains("without --hosts"));
    }

    #[test]
    fn help_fits_on_a_screen() {
        assert!(text::HELP.lines().count() <= 40);
        assert!(text::HELP.lines().all(|line| line.len() <= 100));
        for name in NAMES.into_iter().filter(|name| name.len() > 2) {
            assert!(text::HELP.contains(&format!("-{name}")), "{name}");
        }
        assert!(matches!(
            parse(vec!["--help".into()]),
            Ok(Request::Print(text::HELP))
        ));
        assert!(matches!(
            parse(vec!["-n".into(), "2".into(), "--version".into()]),
            Ok(Request::Print(text::VERSION))
        ));
        assert!(matches!(
            parse(vec!["--policies".into()]),
            Ok(Request::Print(Progress::LISTING))
        ));
    }
}
