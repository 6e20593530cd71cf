//! Point to point and probes.

use super::*;
use cohort_abi::{Constants, StatusLayout};
use core::ptr::{null_mut, without_provenance_mut};

#[test]
fn every_mode_delivers_in_order() {
    run(2, |program| {
        let attached = [0_u8; 64];
        if program.rank == 0 {
            let address = attached.as_ptr().cast_mut().cast();
            assert_eq!(mpi!(program, Buffer_attach, address, 64), 0);
            for (tag, send) in [TABLE.Send, TABLE.Ssend, TABLE.Bsend, TABLE.Rsend].iter().enumerate() {
                let value = tag as c_int * 10;
                // SAFETY: one int is sent.
                let code =
                    unsafe { send(program.caller, (&raw const value).cast(), 1, int(), 1, tag as c_int, world()) };
                assert_eq!(code, 0);
            }
            let (mut found, mut size) = (null_mut::<c_void>(), 0);
            let target = (&raw mut found).cast();
            assert_eq!(mpi!(program, Buffer_detach, target, &mut size), 0);
            assert_eq!((found, size), (address, 64));
        } else {
            for tag in 0..4 {
                let (mut value, mut status) = (-1, status());
                let buffer = (&raw mut value).cast();
                assert_eq!(mpi!(program, Recv, buffer, 1, int(), 0, tag, world(), &mut status), 0);
                let read = status.read();
                assert_eq!((value, read.source, read.tag), (tag * 10, 0, tag));
                assert_eq!(program.count(&status), 1);
            }
        }
    });
}

#[test]
fn bad_arguments_are_refused() {
    run(1, |program| {
        let value = 1;
        let buffer = (&raw const value).cast::<c_void>();
        let send = |count, datatype, to, tag, comm| mpi!(program, Send, buffer, count, datatype, to, tag, comm);
        let null_type = Datatype::from_neutral((), neutral::handle::DATATYPE_NULL);
        let null_comm = Comm::from_neutral((), neutral::handle::COMM_NULL);
        assert_eq!(send(-1, int(), 0, 0, world()), neutral::ERR_COUNT);
        assert_eq!(send(1, null_type, 0, 0, world()), neutral::ERR_TYPE);
        assert_eq!(send(1, int(), 1, 0, world()), neutral::ERR_RANK);
        assert_eq!(send(1, int(), neutral::ANY_SOURCE, 0, world()), neutral::ERR_RANK);
        assert_eq!(send(1, int(), 0, -5, world()), neutral::ERR_TAG);
        assert_eq!(send(1, int(), 0, 0, null_comm), neutral::ERR_COMM);
        assert_eq!(send(1, int(), neutral::PROC_NULL, 0, world()), neutral::SUCCESS);
        let in_place = without_provenance_mut(<Mpi5 as Constants>::IN_PLACE);
        for buffer in [null_mut(), in_place] {
            let code = mpi!(program, Send, buffer, 1, int(), 0, 0, world());
            assert_eq!(code, neutral::ERR_BUFFER);
        }
        // Without an attached buffer there is no buffered mode.
        assert_eq!(mpi!(program, Bsend, buffer, 1, int(), 0, 0, world()), neutral::ERR_BUFFER);
        let mut uncommitted = null_type;
        assert_eq!(mpi!(program, Type_contiguous, 2, int(), &mut uncommitted), 0);
        assert_eq!(mpi!(program, Send, buffer, 0, uncommitted, 0, 0, world()), neutral::ERR_TYPE);
        assert_eq!(mpi!(program, Type_free, &mut uncommitted), 0);
        assert!(uncommitted == null_type);
    });
}

#[test]
fn nobody_sends_the_empty_message() {
    run(1, |program| {
        let (mut value, mut status) = (7, status());
        let buffer = (&raw mut value).cast();
        let null = neutral::PROC_NULL;
        let any = neutral::ANY_TAG;
        assert_eq!(mpi!(program, Recv, buffer, 1, int(), null, any, world(), &mut status), 0);
        let read = status.read();
        assert_eq!((read.source, read.tag, read.count_bytes), (null, any, 0));
        assert_eq!(value, 7);
    });
}

#[test]
fn a_truncated_message_is_an_error_and_its_beginning_arrives() {
    run(2, |program| {
        let mut values = [1, 2, 3];
        let buffer = values.as_mut_ptr().cast::<c_void>();
        if program.rank == 0 {
            assert_eq!(mpi!(program, Send, buffer, 3, int(), 1, 0, world()), 0);
        } else {
            values = [0; 3];
            let code = mpi!(program, Recv, buffer, 2, int(), 0, 0, world(), null_mut());
            assert_eq!(code, neutral::ERR_TRUNCATE);
            assert_eq!(values, [1, 2, 0]);
        }
    });
}

#[test]
fn sendrecv_turns_a_ring() {
    run(3, |program| {
        let right = (program.rank + 1) % program.size;
        let left = (program.rank + program.size - 1) % program.size;
        let (mut mine, mut theirs, mut status) = (program.rank, -1, status());
        let (out, into) = ((&raw const mine).cast(), (&raw mut theirs).cast());
        let code = mpi!(program, Sendrecv, out, 1, int(), right, 5, into, 1, int(), left, 5, world(), &mut status);
        assert_eq!((code, theirs, status.read().source), (0, left, left));
        let both = (&raw mut mine).cast();
        let code = mpi!(program, Sendrecv_replace, both, 1, int(), right, 6, left, 6, world(), null_mut());
        assert_eq!((code, mine), (0, left));
    });
}

#[test]
fn a_matched_message_is_received_once() {
    run(2, |program| {
        let mut value = 42;
        let buffer = (&raw mut value).cast::<c_void>();
        if program.rank == 0 {
            assert_eq!(mpi!(program, Send, buffer, 1, int(), 1, 3, world()), 0);
            return;
        }
        value = 0;
        let null = <Mpi5 as Abi>::Message::from_neutral((), neutral::handle::MESSAGE_NULL);
        let (mut message, mut status) = (null, status());
        let (any, tag) = (neutral::ANY_SOURCE, neutral::ANY_TAG);
        assert_eq!(mpi!(program, Mprobe, any, tag, world(), &mut message, &mut status), 0);
        assert_eq!((status.read().tag, program.count(&status)), (3, 1));
        let mut flag = -1;
        assert_eq!(mpi!(program, Iprobe, any, tag, world(), &mut flag, null_mut()), 0);
        assert_eq!(flag, 0);
        let mut stale = message;
        assert_eq!(mpi!(program, Mrecv, buffer, 1, int(), &mut message, &mut status), 0);
        assert_eq!((value, message == null), (42, true));
        let code = mpi!(program, Mrecv, buffer, 1, int(), &mut stale, &mut status);
        assert_eq!(code, neutral::ERR_REQUEST);
    });
}
