//! Communicators without waiting, sessions, and whom errors reach.

use super::{Comm, Program, Request, TABLE, int, mpi, null_request, run, run_with, status, world};
use crate::process::Process;
use cohort_abi::{Abi, Handle, Mpi5, neutral};
use cohort_base::settings;
use core::ffi::{CStr, c_char, c_int};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, Ordering};

type Session = <Mpi5 as Abi>::Session;
type Group = <Mpi5 as Abi>::Group;
type Info = <Mpi5 as Abi>::Info;
type Errhandler = <Mpi5 as Abi>::Errhandler;

fn null_comm() -> Comm {
    Comm::from_neutral((), neutral::handle::COMM_NULL)
}

fn no_info() -> Info {
    Info::from_neutral((), neutral::handle::INFO_NULL)
}

fn errors_return() -> Errhandler {
    Errhandler::from_neutral((), neutral::handle::ERRORS_RETURN)
}

fn open_session(program: Program) -> Session {
    let mut session = Session::from_neutral((), neutral::handle::SESSION_NULL);
    let code = mpi!(program, Session_init, no_info(), errors_return(), &mut session);
    assert_eq!(code, neutral::SUCCESS);
    session
}

fn process_set(program: Program, session: Session, name: &CStr) -> Result<Group, c_int> {
    let mut group = Group::from_neutral((), neutral::handle::GROUP_NULL);
    match mpi!(program, Group_from_session_pset, session, name.as_ptr(), &mut group) {
        neutral::SUCCESS => Ok(group),
        code => Err(code),
    }
}

/// The sum of all ranks over `comm`.
fn sum_of_ranks(program: Program, comm: Comm) -> c_int {
    let (mine, mut sum) = (program.rank, -1);
    let op = <Mpi5 as Abi>::Op::from_neutral((), neutral::handle::SUM);
    let (from, to) = ((&raw const mine).cast(), (&raw mut sum).cast());
    assert_eq!(mpi!(program, Allreduce, from, to, 1, int(), op, comm), neutral::SUCCESS);
    sum
}

#[test]
fn a_nonblocking_duplicate_waits_for_nobody() {
    run(2, |program| {
        let (mut copy, mut request): (Comm, Request) = (null_comm(), null_request());
        // Rank 1 duplicates only after it has heard from rank 0, which has duplicated.
        let mut token = 7;
        let buffer = (&raw mut token).cast();
        if program.rank == 1 {
            mpi!(program, Recv, buffer, 1, int(), 0, 0, world(), &mut status());
        }
        let code = mpi!(program, Comm_idup, world(), &mut copy, &mut request);
        assert_eq!(code, neutral::SUCCESS);
        if program.rank == 0 {
            mpi!(program, Send, buffer.cast_const(), 1, int(), 1, 0, world());
        }
        assert_eq!(mpi!(program, Wait, &mut request, &mut status()), neutral::SUCCESS);
        assert_eq!(sum_of_ranks(program, copy), 1);
        assert_eq!(mpi!(program, Comm_free, &mut copy), neutral::SUCCESS);
    });
}

#[test]
fn a_session_leads_to_a_communicator() {
    run(3, |program| {
        let mut session = open_session(program);
        let group = process_set(program, session, c"mpi://WORLD").expect("a process set");
        let mut comm = null_comm();
        let tag = c"here".as_ptr();
        let code = mpi!(program, Comm_create_from_group, group, tag, no_info(), errors_return(), &mut comm);
        assert_eq!(code, neutral::SUCCESS);
        assert_eq!(sum_of_ranks(program, comm), 3);
        assert_eq!(mpi!(program, Comm_disconnect, &mut comm), neutral::SUCCESS);
        assert_eq!(process_set(program, session, c"no set").err(), Some(neutral::ERR_ARG));
        assert_eq!(mpi!(program, Session_finalize, &mut session), neutral::SUCCESS);
        let code = mpi!(program, Session_finalize, &mut session);
        assert_eq!(code, neutral::ERR_SESSION);
    });
}

#[test]
fn names_of_process_sets_fit_the_room_given() {
    run(1, |program| {
        let mut session = open_session(program);
        let mut name: [c_char; 8] = [1; 8];
        let mut length = 0;
        let hints = no_info();
        mpi!(program, Session_get_nth_pset, session, hints, 1, &mut length, null_mut());
        assert_eq!(length, 11);
        length = 8;
        mpi!(program, Session_get_nth_pset, session, hints, 1, &mut length, name.as_mut_ptr());
        // SAFETY: the call ended the text with a NUL.
        let text = unsafe { CStr::from_ptr(name.as_ptr()) };
        assert_eq!((text, length), (c"mpi://S", 11));
        let code = mpi!(program, Session_get_nth_pset, session, hints, 2, &mut length, null_mut());
        assert_eq!(code, neutral::ERR_ARG);
        mpi!(program, Session_finalize, &mut session);
    });
}

#[test]
fn the_sessions_error_handler_hears_of_its_errors() {
    static HEARD: AtomicI32 = AtomicI32::new(0);
    unsafe extern "C" fn note(session: *mut Session, code: *mut c_int) {
        // SAFETY: the runtime passes valid addresses.
        let (session, code) = unsafe { (*session, *code) };
        assert_eq!(session.neutral() >> 31, 1);
        HEARD.store(code, Ordering::Relaxed);
    }
    run(1, |program| {
        type Variadic = unsafe extern "C" fn(*mut Session, *mut c_int, ...);
        // SAFETY: on this platform a function of two pointers can be called as a variadic one.
        let note = unsafe { core::mem::transmute::<unsafe extern "C" fn(*mut Session, *mut c_int), Variadic>(note) };
        let mut session = open_session(program);
        let mut handler = errors_return();
        mpi!(program, Session_create_errhandler, Some(note), &mut handler);
        let code = mpi!(program, Session_set_errhandler, session, handler);
        assert_eq!(code, neutral::SUCCESS);
        let code = mpi!(program, Comm_set_errhandler, world(), handler);
        assert_eq!(code, neutral::ERR_ERRHANDLER);
        assert_eq!(HEARD.load(Ordering::Relaxed), 0);
        assert!(process_set(program, session, c"none").is_err());
        assert_eq!(HEARD.load(Ordering::Relaxed), neutral::ERR_ARG);
        mpi!(program, Session_finalize, &mut session);
    });
}

#[test]
fn after_finalisation_the_predefined_communicators_are_refused() {
    run(1, |program| {
        // SAFETY: what `attach` gave.
        let process = unsafe { Process::of(program.caller) };
        *process.objects.initial_errhandler.lock() = cohort_object::Errhandler::Return;
        process.objects.end();
        let mut rank = -1;
        let code = mpi!(program, Comm_rank, world(), &mut rank);
        assert_eq!((code, rank), (neutral::ERR_OTHER, -1));
    });
}

#[test]
fn the_tool_interface_opens_and_closes() {
    run(1, |program| {
        let mut number = -1;
        let mut count = |expected, code| {
            assert_eq!(mpi!(program, T_cvar_get_num, &mut number), code);
            assert_eq!(number, expected);
        };
        count(-1, neutral::T_ERR_NOT_INITIALIZED);
        let mut level = -1;
        assert_eq!(mpi!(program, T_init_thread, neutral::THREAD_SINGLE, &mut level), 0);
        assert_eq!(level, neutral::THREAD_SINGLE);
        count(settings::TABLE.len() as c_int, neutral::SUCCESS);
        let name = c"COHORT_WAIT".as_ptr();
        let code = mpi!(program, T_cvar_get_index, name, &mut level);
        assert_eq!(code, neutral::SUCCESS);
        assert_eq!(settings::TABLE[level as usize].name, "COHORT_WAIT");
        assert_eq!(mpi!(program, T_finalize), neutral::SUCCESS);
        assert_eq!(mpi!(program, T_finalize), neutral::T_ERR_NOT_INITIALIZED);
    });
}

#[test]
fn a_trusted_program_may_send_what_it_did_not_commit() {
    for check in [true, false] {
        let settings = settings::Settings { check, ..settings::Settings::DEFAULT };
        run_with(settings, 1, |program| {
            let mut pair = int();
            assert_eq!(mpi!(program, Type_contiguous, 2, int(), &mut pair), 0);
            let (sent, own) = ([3, 4], Comm::from_neutral((), neutral::handle::COMM_SELF));
            let code = mpi!(program, Send, (&raw const sent).cast(), 1, pair, 0, 5, own);
            assert_eq!(code == neutral::ERR_TYPE, check);
            if !check {
                let (mut got, mut status) = ([0; 2], status());
                let buffer = (&raw mut got).cast();
                let code = mpi!(program, Recv, buffer, 2, int(), 0, 5, own, &mut status);
                assert_eq!((code, got), (neutral::SUCCESS, sent));
            }
        });
    }
}
