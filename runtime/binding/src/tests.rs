//! The functions of the table, called as a facade calls them, by threads that play ranks.

mod collectives;
mod datatypes;
mod messages;
mod objects;
mod observed;
mod requests;

use crate::process::Process;
use alloc::vec::Vec;
use cohort_abi::{Abi, Handle, Mpi5, Table, neutral};
use cohort_base::settings::Settings;
use cohort_engine::Node;
use cohort_object::errhandler::Errhandler;
use core::ffi::{c_int, c_void};

type Comm = <Mpi5 as Abi>::Comm;
type Datatype = <Mpi5 as Abi>::Datatype;
type Request = <Mpi5 as Abi>::Request;
type Status = <Mpi5 as Abi>::Status;

static TABLE: Table<Mpi5> = crate::table::<Mpi5>();

/// One rank's program.
#[derive(Clone, Copy)]
struct Program {
    caller: *const c_void,
    rank: c_int,
    size: c_int,
}

/// Runs `program` on `ranks` ranks of a node of their own. Errors are returned.
fn run(ranks: u32, program: impl Fn(Program) + Sync) {
    run_with(Settings::DEFAULT, ranks, program);
}

/// The same with settings.
fn run_with(settings: Settings, ranks: u32, program: impl Fn(Program) + Sync) {
    let node = Node::for_test_with(ranks, settings);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..ranks)
            .map(|rank| {
                let program = &program;
                scope.spawn(move || {
                    let caller = crate::attach(node.rank(rank), core::ptr::null());
                    // SAFETY: what `attach` gave.
                    let process = unsafe { Process::of(caller) };
                    process.objects.initialize();
                    for comm in [neutral::handle::COMM_WORLD, neutral::handle::COMM_SELF] {
                        let comm = process.objects.comm(comm).expect("initialised");
                        *comm.errhandler.lock() = Errhandler::Return;
                    }
                    let (rank, size) = (rank as c_int, ranks as c_int);
                    program(Program { caller, rank, size });
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("a rank failed");
        }
    });
}

fn world() -> Comm {
    Comm::from_neutral((), neutral::handle::COMM_WORLD)
}

fn int() -> Datatype {
    Datatype::from_neutral((), neutral::handle::INT)
}

fn byte() -> Datatype {
    Datatype::from_neutral((), neutral::handle::BYTE)
}

fn null_request() -> Request {
    Request::from_neutral((), neutral::handle::REQUEST_NULL)
}

fn status() -> Status {
    // SAFETY: a status is made of integers.
    unsafe { core::mem::zeroed() }
}

/// Calls a function of the table: `mpi!(program, Send, buffer, …)`.
macro_rules! mpi {
    ($program:expr, $name:ident $(, $argument:expr)*) => {
        // SAFETY: the arguments are what MPI asks for; `caller` is the rank of this thread.
        unsafe { (TABLE.$name)($program.caller $(, $argument)*) }
    };
}
use mpi;

impl Program {
    /// `MPI_Get_count` in ints.
    fn count(&self, status: &Status) -> c_int {
        let mut count = -1;
        assert_eq!(mpi!(self, Get_count, status, int(), &mut count), neutral::SUCCESS);
        count
    }
}
