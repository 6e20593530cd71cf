//! `--hosts`: one `pip-exec` on each of several hosts, by the process manager that is installed.
//! This module only makes its command line; the manager does the rest.

use super::host_list::{Host, Launcher, NEXT, too_few};
use super::options::{Input, Options, Variables};
use super::signals::{Came, Signals};
use cohort_base::settings::{ON_FAILURE, OnFailure};
use cohort_manager::wireup::{Numbering, homes};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pip_ground::Refusal;
use pip_ground::caption::quoted;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::{fmt, io};

impl Launcher {
    /// Every one, in the order in which they are looked for outside of a Slurm allocation.
    const ALL: [Self; 3] = [Self::Hydra, Self::Prterun, Self::Srun];

    /// The program to look for.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Self::Hydra => "mpiexec.hydra",
            Self::Srun => "srun",
            Self::Prterun => "prterun",
        }
    }

    /// Its options for one process on each of `hosts`, in this order.
    fn options(self, hosts: &[&Host]) -> Vec<OsString> {
        let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
        let (list, count) = (names.join(","), hosts.len().to_string());
        let words: Vec<String> = match self {
            Self::Hydra => vec!["-hosts".into(), list, "-ppn".into(), "1".into(), "-n".into(), count],
            // Arbitrary distribution keeps the hosts' order.
            Self::Srun => vec![
                "--mpi=pmi2".into(),
                format!("--nodes={count}"),
                format!("--ntasks={count}"),
                "--distribution=arbitrary".into(),
                format!("--nodelist={list}"),
            ],
            Self::Prterun => {
                let slots: Vec<String> = names.iter().map(|name| format!("{name}:1")).collect();
                let mut words = vec!["--host".into(), slots.join(","), "-n".into(), count];
                words.extend(["--bind-to".into(), "none".into()]);
                if nix::unistd::geteuid().is_root() {
                    words.push("--allow-run-as-root".into());
                }
                words
            }
        };
        words.into_iter().map(OsString::from).collect()
    }
}

impl Launcher {
    /// What has it leave the others alone when one of its processes ends.
    fn going_on(self) -> &'static [&'static str] {
        match self {
            Self::Hydra => &["-disable-auto-cleanup"],
            Self::Srun => &["--no-kill", "--kill-on-bad-exit=0"],
            Self::Prterun => &["--runtime-options", "recoverable"],
        }
    }
}

/// Whether ranks are to survive each other.
fn survives(options: &Options) -> bool {
    let value = options.variables.of_all(ON_FAILURE).and_then(OsStr::to_str);
    value.and_then(OnFailure::named) == Some(OnFailure::Continue)
}

/// Has a process manager start the job on its hosts, and gives its status; or prints the command line (`--dry-run`).
///
/// # Errors
/// The job does not fit on the hosts, or no process manager is installed.
pub fn run(options: &Options, hosts: &[Host]) -> Result<i32, Refusal> {
    let variables = &options.variables;
    let (launcher, path) = match options.hosts.launcher {
        Some(launcher) => find(&[launcher], variables)?,
        None if variables.found("SLURM_JOB_ID").is_some() => {
            find(&[Launcher::Srun, Launcher::Hydra, Launcher::Prterun], variables)?
        }
        None if has_slurm(variables) => find(&Launcher::ALL, variables)?,
        None => find(&[Launcher::Hydra, Launcher::Prterun], variables)?,
    };
    let own =
        std::env::current_exe().map_err(|error| Refusal::new(format!("cannot find pip-exec's own folder: {error}")))?;
    let words = command_line(options, hosts, launcher, &own)?;
    if options.hosts.dry_run {
        let line: Vec<_> = words.iter().map(|word| quoted(word)).collect();
        println!("{} {}", quoted(path.as_os_str()), line.join(" "));
        return Ok(0);
    }
    pip_ground::voice::advise(format_args!("starting the job with {}", path.display()));
    let error = |error: &dyn fmt::Display| Refusal::new(format!("{}: {error}", path.display()));
    let signals = Signals::block()?;
    let original = *signals.original();
    let mut command = Command::new(&path);
    let prepare = move || {
        // Intel's Hydra writes to processes of its own that have ended when a job fails, and would be killed for it.
        // SAFETY: changes what a signal does, in a process that executes a program next.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
        original.thread_set_mask().map_err(Into::into)
    };
    // SAFETY: only calls that are safe there; the manager gets the mask that this process had.
    unsafe { command.pre_exec(prepare) };
    let mut manager = command.args(words).spawn().map_err(|it| error(&it))?;
    let (status, signal) = wait(&mut manager, &signals).map_err(|it| error(&it))?;
    if status != 0 && !signal {
        pip_ground::voice::advise(format_args!(
            "{} ended with status {status}. If the job did not start: --launcher hydra, srun or prterun chooses \
             another process manager, and --dry-run shows its command line",
            path.display()
        ));
    }
    Ok(status)
}

/// Waits for the end of a process manager, which gets the signals of this process; its status, and whether one that
/// ends it was among them.
fn wait(manager: &mut Child, signals: &Signals) -> io::Result<(i32, bool)> {
    let mut is_ended = false;
    loop {
        let mut source = [PollFd::new(signals.descriptor(), PollFlags::POLLIN)];
        // An interrupted wait is followed by another look.
        let _ = poll(&mut source, PollTimeout::NONE);
        while let Some(came) = signals.next() {
            let (signal, to_group) = match came {
                Came::Child => continue,
                Came::Forward { signal, to_group } => (signal, to_group),
                Came::Show => (Signal::SIGQUIT, false),
                Came::End(ending) => {
                    is_ended = true;
                    (Signal::try_from(ending.signal).unwrap_or(Signal::SIGTERM), ending.to_group)
                }
            };
            // The manager is in this process's group: it has what a terminal sends, and takes a second one for another.
            if !to_group {
                // The process is this one's child, which has not been waited for.
                let _ = kill(Pid::from_raw(manager.id() as i32), signal);
            }
            if signal == Signal::SIGTSTP {
                signals.stop();
            }
        }
        if let Some(status) = manager.try_wait()? {
            let killed = status.signal().map(|signal| 128 + signal);
            return Ok((status.code().or(killed).unwrap_or(1), is_ended));
        }
    }
}

/// Where Slurm's commands look for its configuration, if no variable says so.
const SLURM_FILES: [&str; 3] = ["/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/run/slurm/conf/slurm.conf"];

/// Whether Slurm can start anything from here: its commands are installed on many machines that are in no cluster.
fn has_slurm(variables: &Variables) -> bool {
    let is_set = |name: &str| variables.found(name).is_some();
    ["SLURM_CONF", "SLURM_CONF_SERVER"].into_iter().any(is_set)
        || SLURM_FILES.iter().any(|file| Path::new(file).exists())
}

fn find(launchers: &[Launcher], variables: &Variables) -> Result<(Launcher, PathBuf), Refusal> {
    let folders = variables.found("PATH").unwrap_or_default();
    let installed = |&launcher: &Launcher| {
        let paths = std::env::split_paths(folders).map(|folder| folder.join(launcher.program()));
        let access = nix::unistd::AccessFlags::X_OK;
        let mut found = paths.filter(|path| nix::unistd::access(path, access).is_ok());
        Some((launcher, found.next()?))
    };
    launchers.iter().find_map(installed).ok_or_else(|| {
        let names: Vec<_> = launchers.iter().map(|launcher| launcher.program()).collect();
        Refusal::new(format!(
            "--hosts needs a process manager, and PATH has no {} (Debian: apt install mpich, or \
             slurm-client in a cluster that runs Slurm; srun is taken where its slurm.conf is)",
            names.join(", ")
        ))
    })
}

/// The words after the manager's name.
fn command_line(options: &Options, hosts: &[Host], launcher: Launcher, own: &Path) -> Result<Vec<OsString>, Refusal> {
    let mut wanted = Vec::new();
    for section in &options.sections {
        match section.ranks.as_slice() {
            [] if options.sections.len() == 1 => {
                wanted.push(hosts.iter().map(|host| host.slots).sum());
            }
            [] => wanted.push(1),
            [ranks] => wanted.push(*ranks),
            _ => {
                let what = "-n takes the ranks of the whole job here; the hosts say how many each has";
                return Err(Refusal::new(what));
            }
        }
    }
    let shares = distribute(hosts, &wanted, options.placement.numbering)?;
    // Hosts that get no rank take no part.
    let used: Vec<usize> = (0..hosts.len()).filter(|&host| shares.iter().any(|counts| counts[host] > 0)).collect();
    let chosen: Vec<&Host> = used.iter().map(|&host| &hosts[host]).collect();
    let on = |&host: &usize| shares.iter().map(|counts| counts[host] as u32).sum();
    let on_each: Vec<u32> = used.iter().map(on).collect();
    check_input(options, launcher, &on_each)?;
    let mut words: Vec<OsString> = Vec::new();
    if survives(options) {
        words.extend(launcher.going_on().iter().map(OsString::from));
    }
    words.extend(launcher.options(&chosen));
    words.push(own.into());
    // The other managers carry the environment.
    if launcher == Launcher::Prterun {
        let own = options.variables.around.iter().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"COHORT_"));
        words.extend(own.flat_map(|(name, value)| ["-genv".into(), name.clone(), value.clone()]));
    }
    words.extend(options.hosts.typed.iter().cloned());
    for (index, (section, counts)) in options.sections.iter().zip(&shares).enumerate() {
        if index > 0 {
            words.push(NEXT.into());
        }
        let counts: Vec<String> = used.iter().map(|&host| counts[host].to_string()).collect();
        words.extend(["-n".into(), counts.join(",").into()]);
        words.extend(section.environment_words());
        let here = std::env::current_dir().unwrap_or_default();
        let directory = section.directory.as_ref().map(|folder| here.join(folder));
        words.extend(["-wdir".into(), directory.unwrap_or(here).into()]);
        words.extend(["--".into(), section.program.clone()]);
        words.extend(section.arguments.iter().cloned());
    }
    Ok(words)
}

/// Refuses a `--stdin` for ranks that the manager carries no input to: MPICH's Hydra has no option for it, prterun's
/// does not work with more than one process. Slurm's srun gives each of its processes all of it.
fn check_input(options: &Options, launcher: Launcher, ranks: &[u32]) -> Result<(), Refusal> {
    let homes = homes(ranks, options.placement.numbering);
    options.streams.check_reader(homes.len())?;
    let (who, is_far) = match options.streams.input {
        Input::Rank(rank) => (rank.to_string(), homes[rank as usize].node > 0),
        Input::All => ("all".to_owned(), ranks.len() > 1),
        Input::None => return Ok(()),
    };
    match is_far && launcher != Launcher::Srun {
        true => Err(Refusal::new(format!(
            "--stdin {who}: {} carries standard input to the first host only, and it would be empty on others; have \
             a rank of the first host read it and send it on, or let ranks open a file (srun carries it to all hosts)",
            launcher.program()
        ))),
        false => Ok(()),
    }
}

/// How many ranks of each program each host gets: one host after the other, or one rank on each in
/// turn.
fn distribute(hosts: &[Host], wanted: &[usize], numbering: Numbering) -> Result<Vec<Vec<usize>>, Refusal> {
    let (total, room): (usize, usize) = (wanted.iter().sum(), hosts.iter().map(|host| host.slots).sum());
    if total > room {
        return Err(too_few(total, hosts));
    }
    let mut free: Vec<usize> = hosts.iter().map(|host| host.slots).collect();
    let mut host = 0;
    let mut shares = vec![vec![0; hosts.len()]; wanted.len()];
    for (program, &ranks) in wanted.iter().enumerate() {
        for _ in 0..ranks {
            while free[host] == 0 {
                host = (host + 1) % hosts.len();
            }
            free[host] -= 1;
            shares[program][host] += 1;
            if numbering == Numbering::Cyclic {
                host = (host + 1) % hosts.len();
            }
        }
    }
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use super::super::host_list;
    use super::super::options::{Request, parse as parse_options};
    use super::*;
    use std::ffi::OsStr;

    fn hosts(text: &str) -> Vec<Host> {
        let named = host_list::parse(OsStr::new(text)).expect("valid");
        host_list::settle(&named, None, None, false)
    }

    fn line(launcher: Launcher, text: &str) -> Result<String, Refusal> {
        let words = text.split_whitespace().map(OsString::from).collect();
        let Ok(Request::Run(options)) = parse_options(words, pip_ground::Environment::new()) else {
            panic!("{text}");
        };
        let hosts = options.hosts.chosen.clone().expect("given");
        let words = command_line(&options, &hosts, launcher, Path::new("/opt/pip-exec"))?;
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        let here = std::env::current_dir().expect("exists");
        Ok(words.join(" ").replace(&*here.to_string_lossy(), "HERE"))
    }

    #[test]
    fn hydra_gets_one_process_per_host_and_each_its_ranks() {
        let words = line(Launcher::Hydra, "--hosts a:4,b:4 -n 6 -l ./app x").expect("fits");
        assert_eq!(words, "-hosts a,b -ppn 1 -n 2 /opt/pip-exec -l -n 4,2 -wdir HERE -- ./app x");
    }

    #[test]
    fn hosts_without_a_rank_are_left_out() {
        let words = line(Launcher::Srun, "--hosts a:4,b:4 -n 3 ./app").expect("fits");
        assert_eq!(
            words,
            "--mpi=pmi2 --nodes=1 --ntasks=1 --distribution=arbitrary --nodelist=a /opt/pip-exec \
             -n 3 -wdir HERE -- ./app"
        );
    }

    #[test]
    fn all_slots_are_taken_when_nothing_is_said() {
        let words = line(Launcher::Prterun, "--hosts a:2,b:3 -wdir /tmp -env A b ./app");
        let words = words.expect("fits");
        assert!(words.starts_with("--host a:1,b:1 -n 2 --bind-to none"), "{words}");
        assert!(words.ends_with("/opt/pip-exec -n 2,3 -env A b -wdir /tmp -- ./app"), "{words}");
    }

    #[test]
    fn variables_reach_other_nodes_with_their_values() {
        let around =
            [("COHORT_DEBUG", "pin"), ("A", "b c"), ("B", "d")].map(|(name, value)| (name.into(), value.into()));
        let line = |launcher| {
            let words = "--hosts a,b -x A -x C=e ./app".split_whitespace().map(OsString::from).collect();
            let Ok(Request::Run(options)) = parse_options(words, around.clone().into()) else {
                panic!("refused");
            };
            let hosts = options.hosts.chosen.clone().expect("given");
            let words = command_line(&options, &hosts, launcher, Path::new("/opt/pip-exec")).expect("fits");
            words.join(OsStr::new(" ")).into_string().expect("text")
        };
        let words = line(Launcher::Prterun);
        assert!(words.contains("/opt/pip-exec -genv COHORT_DEBUG pin -x A=b c -x C=e -n 1,1"), "{words}");
        let words = line(Launcher::Hydra);
        assert!(words.contains("/opt/pip-exec -x A=b c -x C=e -n 1,1"), "{words}");
    }

    #[test]
    fn several_programs_follow_each_other_over_the_hosts() {
        let words = line(
            Launcher::Hydra,
            "--hosts a:4,b:4 --timeout 5 --map-by numa --bind-to l3cache -genv X 1 -n 3 ./m \
             : -n 5 ./w",
        );
        assert!(words.expect("fits").ends_with(
            "--timeout 5 --map-by numa --bind-to l3cache -genv X 1 -n 3,0 -wdir HERE -- ./m \
             --pip-exec-next -n 1,4 -wdir HERE -- ./w"
        ));
        let dealt = distribute(&hosts("a:4,b:1,c:4"), &[3, 3], Numbering::Cyclic).expect("fits");
        assert_eq!(dealt, [[1, 1, 1], [2, 0, 1]]);
    }

    #[test]
    fn input_goes_where_the_manager_carries_it() {
        for (launcher, text) in [
            (Launcher::Hydra, "--stdin all"),
            (Launcher::Prterun, "--stdin all"),
            (Launcher::Prterun, "-s 4"),
            (Launcher::Hydra, "-s 1 --map-by node"),
        ] {
            let message = line(launcher, &format!("--hosts a:4,b:4 -n 6 {text} ./app")).unwrap_err().to_string();
            assert!(message.contains("to the first host only"), "{text}: {message}");
        }
        for (launcher, text) in [
            (Launcher::Srun, "--hosts a:4,b:4 -n 6 --stdin all"),
            (Launcher::Srun, "--hosts a:4,b:4 -n 6 -s 5"),
            (Launcher::Hydra, "--hosts a:4,b:4 -n 6 -s 3"),
            (Launcher::Hydra, "--hosts a:4,b:4 -n 6 -s 2 --map-by node"),
            (Launcher::Hydra, "--hosts a:4,b:4 -n 6 -s none"),
            (Launcher::Hydra, "--hosts a:4,b:4 -n 4 --stdin all"),
        ] {
            line(launcher, &format!("{text} ./app")).expect(text);
        }
        let message = line(Launcher::Hydra, "--hosts a:4,b:4 -n 6 -s 6 ./app").unwrap_err();
        assert!(message.to_string().contains("the last one is 5"), "{message}");
    }

    #[test]
    fn a_job_that_does_not_fit_says_what_would() {
        let message = line(Launcher::Hydra, "--hosts a:2,b -n 4 ./app").unwrap_err();
        assert!(message.to_string().contains("--hosts a:3"), "{message}");
        let message = line(Launcher::Hydra, "--hosts a:2,b -n 1,2 ./app").unwrap_err();
        assert!(message.to_string().contains("whole job"), "{message}");
    }
}
