//! Processes that start while the job runs (MPI-5.0, 11.8).

use super::intercomm::leader;
use super::{publish, room};
use crate::arguments::{Call, Outcome, only_intra};
use crate::info::given;
use alloc::string::String;
use alloc::vec::Vec;
use cohort_abi::parameters::{Array, Out, OutArray, StringLists, Strings, Text};
use cohort_abi::{Abi, Constants, Handle, neutral};
use cohort_arch::NAMES;
use cohort_base::settings::InitialErrhandler;
use cohort_base::spawn::{Command, Soft};
use cohort_base::text::FixedText;
use cohort_engine::lifecycle;
use cohort_object::{Error, Info, Share, blame, ports};
use core::ffi::c_int;
use core::iter::repeat_n;
use core::ptr::null;
use core::sync::atomic::AtomicU32;
use neutral::handle::COMM_NULL;

/// One program of a call, and what it leads to.
struct Wanted<'c> {
    command: Text<'c>,
    arguments: Strings<'c>,
    ranks: c_int,
    keys: Keys,
}

/// The values of the reserved keys of an info argument (MPI-5.0, 11.8.4), with a NUL each where the launcher acts upon
/// them.
struct Keys {
    directory: Option<Vec<u8>>,
    path: Option<Vec<u8>>,
    environment: Option<Vec<u8>>,
    host: Option<Vec<u8>>,
    soft: Option<Vec<u8>>,
    errhandler: Option<String>,
    file: Option<String>,
    architecture: Option<String>,
}

/// `MPI_Comm_spawn`.
pub fn spawn<A: Abi>(
    call: &Call<'_, A>,
    command: Text<'_>,
    arguments: Strings<'_>,
    ranks: c_int,
    info: A::Info,
    root: c_int,
    comm: A::Comm,
    target: Out<'_, A::Comm>,
    codes: OutArray<'_, c_int>,
) -> Outcome<()> {
    let wanted = || {
        let keys = Keys::of(&given(call, info)?);
        Ok(alloc::vec![Wanted { command, arguments, ranks, keys }])
    };
    start(call, (root, comm), wanted, target, codes)
}

/// `MPI_Comm_spawn_multiple`.
pub fn spawn_multiple<A: Abi>(
    call: &Call<'_, A>,
    count: c_int,
    commands: Strings<'_>,
    arguments: StringLists<'_>,
    ranks: Array<'_, c_int>,
    infos: Array<'_, A::Info>,
    root: c_int,
    comm: A::Comm,
    target: Out<'_, A::Comm>,
    codes: OutArray<'_, c_int>,
) -> Outcome<()> {
    let wanted = || {
        let length = usize::try_from(count).ok().filter(|&length| length > 0);
        let length = length.ok_or_else(|| blame(neutral::ERR_COUNT, format_args!("count is {count}")))?;
        let (ranks, infos) = (ranks.entries(length)?, infos.entries(length)?);
        let mut wanted = Vec::with_capacity(length);
        for (index, command) in commands.entries(length)?.enumerate() {
            let keys = Keys::of(&given(call, infos[index])?);
            wanted.push(Wanted { command, arguments: arguments.list(index), ranks: ranks[index], keys });
        }
        Ok(wanted)
    };
    start(call, (root, comm), wanted, target, codes)
}

/// Both: the arguments that say what to start matter at the root only.
fn start<'c, A: Abi>(
    call: &Call<'_, A>,
    (root, comm): (c_int, A::Comm),
    wanted: impl FnOnce() -> Outcome<Vec<Wanted<'c>>>,
    target: Out<'_, A::Comm>,
    codes: OutArray<'_, c_int>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let target = call.output(target, "intercomm")?;
    only_intra(comm)?;
    let root = leader(root, "root", comm.size())?;
    target.preset(A::Comm::from_neutral(call.context(), COMM_NULL));
    // The others learn of the root's failure as of everything else.
    let (wanted, commands) = match (root == comm.me()).then(wanted) {
        None => (Vec::new(), None),
        Some(Err(error)) => (Vec::new(), Some(Err(error))),
        Some(Ok(wanted)) => {
            let commands = wanted.iter().map(|wanted| wanted.command(call)).collect();
            (wanted, Some(commands))
        }
    };
    // SAFETY: the texts are those of the call's arguments and of `wanted`, which stay until it returns.
    let made = unsafe { comm.spawn(root, commands, room(call)) };
    if let Err(error) = &made
        && wanted.iter().any(Wanted::is_of_pool)
    {
        end_pool(call, error);
    }
    if codes.addr() != <A as Constants>::ERRCODES_IGNORE {
        let (shares, code) = match &made {
            Ok(children) => (children.shares.clone(), neutral::ERR_SPAWN),
            // How many there are, the root alone knows.
            Err(error) => (wanted.iter().map(Wanted::none).collect(), error.code()),
        };
        tell_codes::<A>(&shares, code, codes)?;
    }
    drop(wanted);
    publish(call, Some(made?.comm), target)
}

/// Each command's processes have places in its row, also those that were not started, for this reason.
fn tell_codes<A: Abi>(shares: &[Share], reason: c_int, codes: OutArray<'_, c_int>) -> Outcome<()> {
    let codes = codes.places(shares.iter().map(|share| share.wanted as usize).sum())?;
    let of_command = |share: &Share| {
        let missing = share.wanted.saturating_sub(share.started) as usize;
        repeat_n(neutral::SUCCESS, share.started as usize).chain(repeat_n(reason, missing))
    };
    codes.write_all(shares.iter().flat_map(of_command).map(A::error_out));
    Ok(())
}

/// mpi4py's pool of processes would not hear of an error: it spawns on a thread of its own, and waits for ever if that
/// ends with an exception. So the job is ended, with the way out.
#[cold]
fn end_pool<A: Abi>(call: &Call<'_, A>, error: &Error) -> ! {
    let rank = call.rank();
    let line = FixedText::<768>::of(format_args!(
        "cohort: {}: an MPIPoolExecutor of mpi4py cannot start its workers: {}; pip-exec -n 1 python PROGRAM lets it, \
         and with pip-exec -n N python -m mpi4py.futures PROGRAM N - 1 ranks are its workers",
        rank.name(),
        error.detail(),
    ));
    lifecycle::abort_with(rank, 1, line.as_str(), ports::end)
}

impl Wanted<'_> {
    /// Whether it is what mpi4py's pool of processes has its workers run.
    fn is_of_pool(&self) -> bool {
        self.arguments.until_null().any(|argument| argument.to_bytes() == b"mpi4py.futures.server")
    }

    /// None of its processes were started.
    fn none(&self) -> Share {
        Share { wanted: u32::try_from(self.ranks).unwrap_or(0), started: 0 }
    }

    /// As the launcher is told it.
    fn command<A: Abi>(&self, call: &Call<'_, A>) -> Outcome<Command> {
        let program = call.text(self.command, "command")?;
        if program.is_empty() {
            return Err(blame(neutral::ERR_ARG, format_args!("command is empty")));
        }
        let ranks = u32::try_from(self.ranks).ok().filter(|&ranks| ranks > 0);
        let ranks = ranks.ok_or_else(|| blame(neutral::ERR_ARG, format_args!("maxprocs is {}", self.ranks)))?;
        self.keys.check_honoured()?;
        self.keys.check_soft(ranks)?;
        let text = |text: &Option<Vec<u8>>| text.as_ref().map_or(null(), |text| text.as_ptr().cast());
        Ok(Command {
            program: program.as_ptr(),
            arguments: self.arguments.as_ptr(),
            ranks,
            soft: text(&self.keys.soft),
            started: AtomicU32::new(0),
            directory: text(&self.keys.directory),
            path: text(&self.keys.path),
            environment: text(&self.keys.environment),
            host: text(&self.keys.host),
            initial_errhandler: self.keys.initial_errhandler()?,
        })
    }
}

impl Keys {
    fn of(info: &Info) -> Self {
        let text = |key: &str| {
            let value = info.get(key).map(String::into_bytes);
            value.map(|mut value| {
                value.push(0);
                value
            })
        };
        Self {
            directory: text("wdir"),
            path: text("path"),
            environment: text("env"),
            // As MPICH calls a list of them, and Open MPI those that are to be added.
            host: ["host", "hosts", "add-host"].into_iter().find_map(text),
            soft: text("soft"),
            errhandler: info.get("mpi_initial_errhandler"),
            file: info.get("file"),
            architecture: info.get("arch"),
        }
    }

    /// # Errors
    /// The program is to run on another kind of machine, or as a file says, for whose format MPI has no rule.
    fn check_honoured(&self) -> Outcome<()> {
        if let Some(file) = &self.file {
            let what = format_args!(
                "the info key file is \"{file}\": no file is read for more of them; set wdir, path, env, host, soft \
                 and mpi_initial_errhandler themselves"
            );
            return Err(blame(neutral::ERR_SPAWN, what));
        }
        let is_own = |name: &String| NAMES.iter().any(|own| own.eq_ignore_ascii_case(name));
        match &self.architecture {
            Some(other) if !is_own(other) => {
                let own = NAMES[0];
                let what = format_args!("the info key arch is \"{other}\": processes are spawned here, on {own}");
                Err(blame(neutral::ERR_SPAWN, what))
            }
            _ => Ok(()),
        }
    }

    /// As [`Command`] has it.
    ///
    /// # Errors
    /// `mpi_initial_errhandler` names none that a world can begin with.
    fn initial_errhandler(&self) -> Outcome<u32> {
        let Some(name) = &self.errhandler else {
            return Ok(0);
        };
        let found = InitialErrhandler::of_name(name).map(|handler| handler as u32);
        found.ok_or_else(|| {
            let names = InitialErrhandler::NAMES;
            let what = format_args!("the info key mpi_initial_errhandler is \"{name}\": it takes {names}");
            blame(neutral::ERR_INFO_VALUE, what)
        })
    }

    /// # Errors
    /// `soft` is no list of numbers, or none of them may be spawned.
    fn check_soft(&self, ranks: u32) -> Outcome<()> {
        let Some(value) = self.soft.as_ref().map(|value| &value[..value.len() - 1]) else {
            return Ok(());
        };
        let text = core::str::from_utf8(value).unwrap_or("(not UTF-8)");
        let wrong = |why| Err(blame(neutral::ERR_INFO_VALUE, format_args!("the info key soft is \"{text}\": {why}")));
        match Soft::read(value) {
            None => wrong(format_args!("it is no list of NUMBER, FIRST:LAST and FIRST:LAST:STEP")),
            Some(soft) if soft.most(ranks).is_none() => {
                wrong(format_args!("it has no number from 0 to maxprocs, which is {ranks}"))
            }
            Some(_) => Ok(()),
        }
    }
}
