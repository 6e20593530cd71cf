//! Requests.

use super::*;
use cohort_abi::StatusLayout;
use core::ptr::null_mut;

#[test]
fn waitall_reports_each_failure_in_its_status() {
    run(2, |program| {
        let mut values = [0; 4];
        let first = values.as_mut_ptr();
        let at = |index: usize| first.wrapping_add(index).cast::<c_void>();
        let mut requests = [null_request(); 3];
        let mut statuses = [status(); 3];
        if program.rank == 0 {
            for (tag, count) in [(0, 1), (1, 2)] {
                assert_eq!(mpi!(program, Send, at(0), count, int(), 1, tag, world()), 0);
            }
            return;
        }
        for (tag, request) in requests.iter_mut().take(2).enumerate() {
            let code = mpi!(program, Irecv, at(tag), 1, int(), 0, tag as c_int, world(), request);
            assert_eq!(code, 0);
        }
        let list = requests.as_mut_ptr();
        let code = mpi!(program, Waitall, 3, list, statuses.as_mut_ptr());
        assert_eq!(code, neutral::ERR_IN_STATUS);
        let errors = statuses.map(|status| status.read().error);
        assert_eq!(errors, [0, neutral::ERR_TRUNCATE, 0]);
        assert!(requests.iter().all(|&request| request == null_request()));
    });
}

#[test]
fn calls_on_nothing_answer_at_once() {
    run(1, |program| {
        let mut request = null_request();
        let (mut flag, mut index, mut count, mut status) = (-1, -1, -1, status());
        assert_eq!(mpi!(program, Wait, &mut request, &mut status), 0);
        assert_eq!(status.read().source, neutral::ANY_SOURCE);
        assert_eq!(mpi!(program, Test, &mut request, &mut flag, &mut status), 0);
        assert_eq!(flag, 1);
        let code = mpi!(program, Testany, 1, &mut request, &mut index, &mut flag, &mut status);
        assert_eq!((code, flag, index), (0, 1, neutral::UNDEFINED));
        assert_eq!(mpi!(program, Waitany, 0, null_mut(), &mut index, &mut status), 0);
        assert_eq!(index, neutral::UNDEFINED);
        let code = mpi!(program, Waitsome, 1, &mut request, &mut count, &mut index, null_mut());
        assert_eq!((code, count), (0, neutral::UNDEFINED));
        let mut bad = Request::from_neutral((), 0x8000_0000 | 0xb << 26 | 77);
        assert_eq!(mpi!(program, Wait, &mut bad, &mut status), neutral::ERR_REQUEST);
        assert_eq!(mpi!(program, Request_free, &mut request), neutral::ERR_REQUEST);
    });
}

#[test]
fn some_and_any_find_what_is_complete() {
    run(2, |program| {
        let mut values = [-1; 3];
        let at = values.as_mut_ptr();
        if program.rank == 0 {
            for tag in [2, 0, 1] {
                let value = tag * 100;
                let buffer = (&raw const value).cast();
                assert_eq!(mpi!(program, Ssend, buffer, 1, int(), 1, tag, world()), 0);
            }
            return;
        }
        let mut requests = [null_request(); 3];
        for (tag, request) in requests.iter_mut().enumerate() {
            let buffer = at.wrapping_add(tag).cast();
            let code = mpi!(program, Irecv, buffer, 1, int(), 0, tag as c_int, world(), request);
            assert_eq!(code, 0);
        }
        let (mut index, mut status) = (-1, status());
        let list = requests.as_mut_ptr();
        assert_eq!(mpi!(program, Waitany, 3, list, &mut index, &mut status), 0);
        assert_eq!(status.read().tag, index);
        let mut found = 1;
        while found < 3 {
            let (mut count, mut indices, mut statuses) = (0, [-1; 3], [status; 3]);
            let list = requests.as_mut_ptr();
            let code = mpi!(program, Waitsome, 3, list, &mut count, indices.as_mut_ptr(), statuses.as_mut_ptr());
            assert!(code == 0 && count > 0);
            for entry in 0..count as usize {
                assert_eq!(statuses[entry].read().tag, indices[entry]);
            }
            found += count;
        }
        assert_eq!(values, [0, 100, 200]);
    });
}

#[test]
fn persistent_requests_are_used_again() {
    run(2, |program| {
        let mut value = 0;
        let buffer = (&raw mut value).cast::<c_void>();
        let mut request = null_request();
        let peer = 1 - program.rank;
        let code = match program.rank {
            0 => mpi!(program, Send_init, buffer, 1, int(), peer, 9, world(), &mut request),
            _ => mpi!(program, Recv_init, buffer, 1, int(), peer, 9, world(), &mut request),
        };
        assert_eq!(code, 0);
        let kept = request;
        for round in 0..5 {
            if program.rank == 0 {
                // SAFETY: the request is inactive.
                unsafe { buffer.cast::<c_int>().write(round) };
            }
            assert_eq!(mpi!(program, Start, &mut request), 0);
            assert_eq!(mpi!(program, Wait, &mut request, null_mut()), 0);
            assert!(request == kept);
            // SAFETY: the request is inactive.
            assert_eq!(unsafe { buffer.cast::<c_int>().read() }, round);
        }
        // Waiting for an inactive request is nothing.
        assert_eq!(mpi!(program, Wait, &mut request, null_mut()), 0);
        assert_eq!(mpi!(program, Request_free, &mut request), 0);
        assert!(request == null_request());
    });
}

#[test]
fn memory_is_bounded_where_all_receives_are_freed_under_way() {
    run(1, |program| {
        let (mut value, sent) = (0, 7);
        // SAFETY: the caller is this thread's rank.
        let process = unsafe { Process::of(program.caller) };
        let heap = || process.objects.rank().heap().stats().live_bytes;
        let mut before = 0;
        for round in 0..600 {
            if round == 100 {
                before = heap();
            }
            let mut request = null_request();
            let buffer = (&raw mut value).cast();
            assert_eq!(mpi!(program, Irecv, buffer, 1, int(), 0, 0, world(), &mut request), 0);
            assert_eq!(mpi!(program, Request_free, &mut request), 0);
            assert_eq!(mpi!(program, Send, (&raw const sent).cast(), 1, int(), 0, 0, world()), 0);
        }
        assert!(heap() < before + 4096, "{before} bytes grew to {}", heap());
    });
}

#[test]
fn a_receive_that_nobody_answers_can_be_cancelled() {
    run(1, |program| {
        let mut value = 5;
        let buffer = (&raw mut value).cast::<c_void>();
        let (mut request, mut status, mut flag) = (null_request(), status(), 0);
        assert_eq!(mpi!(program, Irecv, buffer, 1, int(), 0, 0, world(), &mut request), 0);
        assert_eq!(mpi!(program, Cancel, &mut request), 0);
        assert_eq!(mpi!(program, Wait, &mut request, &mut status), 0);
        assert_eq!(mpi!(program, Test_cancelled, &status, &mut flag), 0);
        assert_eq!((flag, value), (1, 5));
    });
}

unsafe extern "C" fn query(extra_state: *mut c_void, status: *mut Status) -> c_int {
    // SAFETY: the test passes a counter, the runtime a status.
    unsafe {
        *extra_state.cast::<c_int>() += 1;
        let mut value = (*status).read();
        value.tag = 77;
        (*status).write(&value);
    }
    0
}

unsafe extern "C" fn freed(extra_state: *mut c_void) -> c_int {
    // SAFETY: the test passes a counter.
    unsafe { *extra_state.cast::<c_int>() += 100 };
    0
}

unsafe extern "C" fn cancelled(extra_state: *mut c_void, complete: c_int) -> c_int {
    // SAFETY: the test passes a counter.
    unsafe { *extra_state.cast::<c_int>() += 1000 + complete };
    0
}

#[test]
fn generalized_requests_call_the_program() {
    run(1, |program| {
        let mut calls: c_int = 0;
        let state = (&raw mut calls).cast::<c_void>();
        let (mut request, mut status, mut flag) = (null_request(), status(), -1);
        let code = mpi!(program, Grequest_start, Some(query), Some(freed), Some(cancelled), state, &mut request);
        assert_eq!(code, 0);
        assert_eq!(mpi!(program, Test, &mut request, &mut flag, &mut status), 0);
        assert_eq!(flag, 0);
        assert_eq!(mpi!(program, Cancel, &mut request), 0);
        assert_eq!(mpi!(program, Grequest_complete, request), 0);
        assert_eq!(mpi!(program, Wait, &mut request, &mut status), 0);
        assert_eq!(status.read().tag, 77);
        assert_eq!(calls, 1101);
        assert!(request == null_request());
    });
}
