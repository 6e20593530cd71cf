//! The command line, in mpiexec's manner: long options take one dash or two, a value
//! follows as the next word or after `=`, and `:` separates programs.

mod completion;
mod foreign;
mod groups;
mod help;
mod man;
mod readers;
mod table;
#[cfg(test)]
mod tests;
mod values;

use super::host_list;
use cohort_base::settings::{TABLE, nearest};
use cohort_manager::Place;
use pip_ground::{Environment, Refusal};
use pip_insight::ask::{Ask, Wanted};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use table::Scope;

pub use groups::{Bind, Hosts, Inherit, Input, Instead, Output, Placement, Report, Said, Start, Streams, Variables};

/// What a command line asks for.
#[derive(Debug)]
pub enum Request {
    /// Print this text and end.
    Print(String),
    /// Run a job.
    Run(Options),
    /// Show what is installed, how it is set and what the machine can do.
    Info(Options),
    /// Ask jobs that run.
    Ask(Ask),
    /// Draw timelines.
    Draw {
        /// Those of the nodes of a job.
        timelines: Vec<PathBuf>,
        /// The file of the picture.
        picture: Option<PathBuf>,
    },
    /// Show the machine, and where the ranks of such a job would run; programs may be missing.
    Show(Options),
}

/// A job. What is asked for lies in groups, by who needs to know it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The programs, in rank order; at least one.
    pub sections: Vec<Section>,
    /// What programs find in their environment.
    pub variables: Variables,
    /// Standard input, output and error.
    pub streams: Streams,
    /// Which rank runs where.
    pub placement: Placement,
    /// Where the job is started.
    pub hosts: Hosts,
    /// How ranks are started, and for how long.
    pub start: Start,
    /// What to do instead.
    pub instead: Instead,
    /// What the user is told.
    pub said: Said,
    /// `-configfile`.
    pub config: Option<PathBuf>,
}

impl Options {
    /// The programs and their arguments, for people.
    #[must_use]
    pub fn command(&self) -> String {
        let words = |section: &Section| {
            let words = std::iter::once(&section.program).chain(&section.arguments);
            let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
            words.join(" ")
        };
        let programs: Vec<String> = self.sections.iter().map(words).collect();
        programs.join(" : ")
    }
}

/// One program of a job.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// `-n`: ranks on each node, one number for all or one for each; empty if not given.
    pub ranks: Vec<usize>,
    /// `-env`.
    pub environment: Vec<(OsString, OsString)>,
    /// `-envlist` and its like, if one was given.
    pub inherit: Option<Inherit>,
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
            each => Err(values::wrong_nodes(each.len(), place)),
        }
    }

    /// The words of its environment, for another node.
    pub fn environment_words(&self) -> Vec<OsString> {
        let mut words = self.inherit.as_ref().map_or_else(Vec::new, Inherit::words);
        for (name, value) in &self.environment {
            words.extend(["-env".into(), name.clone(), value.clone()]);
        }
        words
    }
}

/// Reads the arguments of `pip-exec`, without its own name, which has this environment.
///
/// # Errors
/// The message for the user.
pub fn parse(arguments: Vec<OsString>, around: Environment) -> Result<Request, Refusal> {
    let variables = Variables { around, ..Variables::default() };
    let mut options = Options { variables, ..Options::default() };
    if let Some(text) = parse_sections(&arguments, &mut options)? {
        return Ok(Request::Print(text));
    }
    if let Some(text) = parse_config(&mut options)? {
        return Ok(Request::Print(text));
    }
    if options.instead.info {
        return Ok(Request::Info(options));
    }
    if let Some(ask) = options.instead.ask {
        return asked(ask, &options);
    }
    if !options.instead.draw.is_empty() {
        return draw(options);
    }
    if options.instead.topology {
        return match options.hosts.named.is_empty() {
            false => {
                Err(Refusal::new("--topology shows this machine; to see another one, run it there without --hosts"))
            }
            true => Ok(Request::Show(options)),
        };
    }
    if options.sections.iter().any(|section| section.program.is_empty()) {
        return Err(Refusal::new(match options.sections.len() {
            1 => "no program to run; see pip-exec --help",
            _ => "a `:` without a program on one of its sides",
        }));
    }
    let by_manager = options.hosts.dry_run || options.hosts.launcher.is_some();
    if options.hosts.named.is_empty() && by_manager {
        let what = "--dry-run and --launcher go with --hosts, which is missing";
        return Err(Refusal::new(what));
    }
    settle_hosts(&mut options, by_manager)?;
    Ok(Request::Run(options))
}

/// Reads the file of `-configfile`, if there is one, as [`parse_sections`] does.
fn parse_config(options: &mut Options) -> Result<Option<String>, Refusal> {
    let Some(path) = options.config.clone() else {
        return Ok(None);
    };
    // The words that name it have no program; what they say of one would be lost.
    let about_nothing = |section: &Section| section.program.is_empty() && *section != Section::default();
    if options.sections.iter().any(about_nothing) {
        return Err(Refusal::new(format!(
            "-configfile {}: -n, -env, -wdir and their like are about one program, and none follows them; write them \
             on its line of the file",
            path.display()
        )));
    }
    options.sections.retain(|section| !section.program.is_empty());
    for words in values::config(&path)? {
        if let Some(text) = parse_sections(&words, options)? {
            return Ok(Some(text));
        }
    }
    Ok(None)
}

/// What is neither an option nor the value of one.
fn words_behind(options: &Options) -> impl Iterator<Item = &OsString> {
    options.sections.iter().flat_map(|section| {
        let program = Some(&section.program).filter(|program| !program.is_empty());
        program.into_iter().chain(&section.arguments)
    })
}

/// Nothing follows what asks jobs that run.
fn asked(ask: Ask, options: &Options) -> Result<Request, Refusal> {
    let Some(word) = words_behind(options).next() else {
        return Ok(Request::Ask(match ask {
            Ask::Top(Wanted { pid, .. }) => Ask::Top(Wanted { pid, ..options.instead.watch }),
            other => other,
        }));
    };
    let word = word.display();
    Err(Refusal::new(match ask {
        Ask::Jobs => format!(
            "--ps lists all your jobs on this machine and takes nothing else; what is {word} for? One job is shown by \
             --inspect PID or --top=PID"
        ),
        Ask::Inspect(_) | Ask::Top(_) => {
            format!("--inspect and --top look at a job that runs, and start none; what is {word} for?")
        }
    }))
}

/// What follows the options of `--draw` is the picture's name.
fn draw(options: Options) -> Result<Request, Refusal> {
    let (picture, more) = {
        let mut words = words_behind(&options);
        (words.next().map(PathBuf::from), words.next().cloned())
    };
    match more {
        Some(more) => Err(Refusal::new(format!(
            "--draw draws one picture; what is {} for? Timelines of other nodes have a --draw of their own",
            more.display()
        ))),
        None => Ok(Request::Draw { timelines: options.instead.draw, picture }),
    }
}

/// Decides how many ranks the hosts take, and whether others than this one take part.
fn settle_hosts(options: &mut Options, by_manager: bool) -> Result<(), Refusal> {
    let named = std::mem::take(&mut options.hosts.named);
    if named.is_empty() {
        if let (Some(ranks), [section]) = (options.hosts.per_host, &mut *options.sections)
            && section.ranks.is_empty()
        {
            section.ranks = vec![ranks];
        }
        return Ok(());
    }
    let only = options.sections.len() == 1;
    let wanted = |section: &Section| match section.ranks.as_slice() {
        [] if only => None,
        [] => Some(1),
        each => Some(each.iter().sum()),
    };
    let wanted = options.sections.iter().map(wanted).sum::<Option<usize>>();
    let oversubscribe = options.placement.oversubscribe == Some(true);
    let hosts = host_list::settle(&named, options.hosts.per_host, wanted, oversubscribe);
    if by_manager || !named.iter().all(|host| host_list::is_here(&host.name)) {
        options.hosts.chosen = Some(hosts);
        return Ok(());
    }
    let room = hosts.iter().map(|host| host.slots).sum();
    if let Some(wanted) = wanted.filter(|&wanted| wanted > room) {
        return Err(host_list::too_few(wanted, &hosts));
    }
    if let ([section], None) = (&mut *options.sections, wanted) {
        section.ranks = vec![room];
    }
    Ok(())
}

/// Reads sections that `:` separates; gives the text to print if an option asks for one.
fn parse_sections(arguments: &[OsString], options: &mut Options) -> Result<Option<String>, Refusal> {
    for words in arguments.split(|word| word == ":" || word == host_list::NEXT) {
        match parse_section(words, options)? {
            Parsed::Section(section) => options.sections.push(section),
            Parsed::Print(text) => return Ok(Some(text)),
        }
    }
    Ok(None)
}

/// What the words of one section ask for.
enum Parsed {
    /// This text.
    Print(String),
    /// A program, or none with options only.
    Section(Section),
}

/// Words of one section that are still to be read.
struct Words<'a> {
    rest: std::slice::Iter<'a, OsString>,
    /// What followed `=` in the last option, if anything.
    attached: Option<OsString>,
    /// The words of the last option.
    taken: Vec<OsString>,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<&'a OsString> {
        let word = self.rest.next();
        self.taken.extend(word.cloned());
        word
    }

    /// The next word, if it is a number.
    fn next_number<T: std::str::FromStr>(&mut self) -> Option<T> {
        let word = self.rest.as_slice().first()?;
        let number = word.to_str()?.parse().ok()?;
        self.next();
        Some(number)
    }
}

/// What an option is read with.
struct Reader<'a, 'w> {
    /// It, as it was typed.
    option: &'a str,
    words: &'a mut Words<'w>,
    section: &'a mut Section,
    options: &'a mut Options,
    /// What to print instead of running a job.
    print: Option<Print>,
}

/// What an option prints.
enum Print {
    /// A text.
    Text(String),
    /// The page about options.
    Help(values::Page),
    /// The page for man(1).
    Manual,
    /// What completes options in a shell.
    Completion(Shell),
}

/// The shells that can complete options.
#[derive(Clone, Copy)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Reads one section.
fn parse_section(words: &[OsString], options: &mut Options) -> Result<Parsed, Refusal> {
    let mut section = Section::default();
    let mut words = Words { rest: words.iter(), attached: None, taken: Vec::new() };
    while let Some(word) = words.rest.next() {
        if word == "--" || !word.as_encoded_bytes().starts_with(b"-") {
            let program = if word == "--" { words.rest.next() } else { Some(word) };
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
) -> Result<Option<String>, Refusal> {
    let (option, attached) = match values::split_at_equals(word) {
        Some((option, value)) => (option, Some(value)),
        None => (word.to_owned(), None),
    };
    words.attached = attached;
    words.taken = vec![word.to_owned()];
    let option = option.to_string_lossy().into_owned();
    let name = option.trim_start_matches('-');
    let mut print = None;
    if let Some(row) = table::find(name) {
        let mut reader = Reader { option: &option, words: &mut *words, section, options: &mut *options, print: None };
        (row.read)(&mut reader)?;
        print = reader.print.map(|print| match print {
            Print::Text(text) => text,
            Print::Help(page) => help::page(page),
            Print::Manual => man::page(),
            Print::Completion(shell) => completion::script(shell),
        });
        if row.scope == Scope::Job {
            options.hosts.typed.append(&mut words.taken);
        }
    } else if let Some(count) = glued(name) {
        section.ranks = values::ranks(OsStr::new(count))?;
    } else if foreign::read(name, &option, words)? {
        options.said.ignored.push(option.clone());
    } else {
        return Err(unknown(&option, name));
    }
    match words.attached.take() {
        Some(_) => Err(Refusal::new(format!("option {option} takes no value"))),
        None => Ok(print),
    }
}

/// The number of `-n2` and `-np2`.
fn glued(name: &str) -> Option<&str> {
    let rest = name.strip_prefix('n')?;
    let count = rest.strip_prefix('p').unwrap_or(rest);
    let is_count = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
    is_count.then_some(count)
}

/// Suggests the nearest option that exists.
fn unknown(option: &str, name: &str) -> Refusal {
    let own = table::rows().flat_map(table::Row::plain_names);
    let near = nearest(name, own.chain(foreign::names()).filter(|own| own.len() > 1));
    let hint = match near {
        Some(near) => {
            let dashes = if option.starts_with("--") && near.len() > 2 { "--" } else { "-" };
            format!("; did you mean {dashes}{near}?")
        }
        None => match setting_named(name) {
            Some(setting) => {
                format!("; set {setting} in the environment, or with -genv {setting} VALUE")
            }
            None => "; see pip-exec --help=all".to_owned(),
        },
    };
    Refusal::new(format!("unknown option {option}{hint}"))
}

/// The setting of the environment that an option like `--progress` means.
fn setting_named(name: &str) -> Option<&'static str> {
    let name = name.to_uppercase().replace('-', "_");
    let mut settings = TABLE.iter().map(|row| row.name);
    settings.find(|setting| setting.strip_prefix("COHORT_") == Some(&name))
}
