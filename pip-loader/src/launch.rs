//! `pip-exec`: from a command line to the end of a job.
//!
//! Everything that can be refused is refused by [`prepare`], before the first task
//! exists; [`job::Job`] then starts the ranks and waits for their end.

mod absent;
mod adopt;
mod allocation;
mod allocator;
mod binding;
mod environment;
mod founder;
mod guardian;
mod guests;
mod host_list;
mod hosts;
mod info;
mod input;
mod itself;
mod job;
mod libraries;
mod limits;
mod membership;
mod options;
mod order;
mod outcome;
mod output;
mod outside;
mod picture;
mod places;
mod prefix;
mod prepare;
mod program;
mod python;
mod report;
mod rmpi;
mod sanitizer;
mod signals;
mod spawn;
mod streams;
mod text;
mod topology;

pub use itself::become_program;
pub use options::{Options, Request, Section};

use cohort_base::boot::{AT_FOUNDER, Founder};
use cohort_manager::watch::{Limit, START_TIMEOUT};
use pip_ground::{Environment, REFUSED, Refusal, refuse, say, show, voice};
use pip_insight::{control, draw};
use pip_monitor::Finish;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Runs `pip-exec` with these arguments (without the program's own name) and returns
/// its exit status.
#[must_use]
pub fn run(arguments: Vec<OsString>) -> i32 {
    let request = match options::parse(arguments, environment()) {
        Ok(request) => request,
        Err(refusal) => return refuse_part(&refusal),
    };
    let options = match request {
        Request::Print(text) => return show(Ok(text)),
        Request::Run(options) => options,
        Request::Draw { timelines, picture } => {
            return show(draw::draw(&timelines, picture.as_deref()));
        }
        Request::Show(options) => return show(picture::of_this_machine(&options)),
        Request::Info(options) => return show(info::all(&options)),
        Request::Ask(ask) => return control::run(ask),
    };
    if options.said.quiet {
        voice::be_quiet();
    }
    tell(&options);
    match &options.hosts.chosen {
        Some(hosts) => hosts::run(&options, hosts).unwrap_or_else(|refusal| refuse_part(&refusal)),
        None => run_node(&options).unwrap_or_else(|refusal| refuse(&refusal)),
    }
}

/// Says why there is no job, ends the one of which this is a part before it is connected with its process manager, and
/// returns the exit status for that.
fn refuse_part(refusal: &Refusal) -> i32 {
    let status = refuse(refusal);
    absent::end_job_of(&environment(), status);
    status
}

/// Ends this process with a line, and its job, if its stack is too short for it, before it is used.
pub fn check_own_stack() {
    if limits::lacks_own_stack() {
        absent::end_job_beside(environment(), REFUSED);
        std::process::exit(REFUSED);
    }
}

/// The environment of this process; of entries with the same name the first counts, as everywhere.
fn environment() -> Environment {
    let mut environment = Environment::new();
    for (name, value) in std::env::vars_os() {
        environment.entry(name).or_insert(value);
    }
    environment
}

/// Says what options do not do, in a line each at most.
fn tell(options: &Options) {
    if !options.said.ignored.is_empty() {
        let ignored = options.said.ignored.join(", ");
        voice::advise(format_args!("{ignored}: about the inside of another launcher, without effect here"));
    }
    let mut sections = options.sections.iter();
    let is_alone = matches!(&*options.sections, [only] if matches!(*only.ranks, [] | [1]));
    if let options::Input::Rank(rank) = options.streams.input
        && !(is_alone && options.hosts.chosen.is_none())
        && sections.any(|it| python::reads_standard_input(&it.program, &it.arguments))
    {
        voice::advise(format_args!(
            "Python reads its program from standard input, which rank {rank} alone gets: --stdin all gives it to all"
        ));
    }
    for note in options.said.notes.iter().chain(&allocation::advice(options)) {
        voice::advise(format_args!("{note}"));
    }
    // A picture that cannot be drawn is of a job that is refused for the same reason.
    if options.said.report.map
        && options.hosts.chosen.is_none()
        && let Ok(picture) = picture::of_this_machine(options)
    {
        say(format_args!("the ranks' places:\n{}", picture.trim_end()));
    }
}

/// Runs this node's part of a job. Signals are blocked before anything else, so that threads
/// which a manager's or the network's library starts leave them to the root.
fn run_node(options: &Options) -> Result<i32, Refusal> {
    let signals = signals::Signals::block()?;
    // SAFETY: nothing has started a thread.
    let mut guardian = unsafe { guardian::Guardian::start() };
    let mut membership = membership::Membership::connect(&options.variables, start_limit(options))?;
    let told = if membership.place().index == 0 { info::parts(options) } else { Ok(String::new()) };
    let prepared = told.and_then(|parts| {
        if !parts.is_empty() {
            say(format_args!("COHORT_DEBUG:\n{}", parts.trim_end()));
        }
        prepare::prepare(options, membership.place(), &guardian.job)
    });
    if let Ok(job) = &prepared {
        job.files().for_each(|file| guardian.name_file(file));
    }
    let finish = match prepared.and_then(|job| job::Job::start(job, signals, &mut membership)) {
        Ok(job) => job.wait(),
        Err(refusal) => Finish { status: refuse(&refusal), is_cut: true, cause: None },
    };
    membership.leave(finish);
    Ok(finish.status)
}

/// Serves the process that has started this launcher, until its job has ended: the exit status. `None` if no process
/// has.
pub fn serve_founder() -> Option<i32> {
    // SAFETY: no condition; 0 says that there is no such entry.
    let address = unsafe { libc::getauxval(AT_FOUNDER) };
    // SAFETY: a founder has put the address of its record there, which stays.
    let founder = unsafe { std::ptr::without_provenance::<Founder>(address as usize).as_ref() }?;
    Some(serve(founder).unwrap_or_else(|refusal| refuse(&refusal)))
}

fn serve(founder: &'static Founder) -> Result<i32, Refusal> {
    let signals = signals::Signals::block()?;
    let program = std::fs::read_link(format!("/proc/{}/exe", founder.process)).unwrap_or_else(|_| PathBuf::from("-"));
    let arguments = vec!["-n".into(), "1".into(), program.into_os_string()];
    let Request::Run(options) = options::parse(arguments, environment())? else {
        return Err(Refusal::new("the environment asks for something else than to run a program"));
    };
    let guardian = guardian::Guardian::none();
    let mut membership = membership::Membership::connect(&options.variables, start_limit(&options))?;
    let prepared = prepare::prepare_for(founder, &options, membership.place(), &guardian.job)?;
    let finish = match job::Job::start(prepared, signals, &mut membership) {
        Ok(job) => job.wait(),
        Err(refusal) => Finish { status: refuse(&refusal), is_cut: true, cause: None },
    };
    membership.leave(finish);
    Ok(finish.status)
}

/// How long the nodes of a job may take to come together.
fn start_limit(options: &Options) -> Limit {
    let limit = Limit::of_start(options.variables.of_all(START_TIMEOUT).and_then(OsStr::to_str));
    match options.start.timeout {
        Some(time) if time < limit.time => Limit { time, setting: "--timeout" },
        _ => limit,
    }
}
