//! Calls through the observed table, and what a consumer hears of them.

use super::{Comm, Program, TABLE, byte, mpi, run, status, world};
use crate::process::Process;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::{vec, vec::Vec};
use cohort_abi::{Abi, Mpi5, Table, neutral};
use cohort_insight::calls::ParameterKind;
use cohort_insight::observed;
use cohort_insight::subject::observers::{Consumer, Observed, Observers};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};
use std::string::{String, ToString};
use std::sync::Mutex;

/// What was heard, a text for each event.
type Heard = Arc<Mutex<Vec<String>>>;

/// Writes down what it hears.
struct Scribe(Heard);

impl Consumer for Scribe {
    fn begin(&self, call: &Observed<'_>) {
        let mut text = std::format!("{} {}", call.depth, call.call.name);
        for (index, parameter) in call.call.parameters.iter().enumerate() {
            match parameter.kind {
                ParameterKind::Rank | ParameterKind::Tag | ParameterKind::Count => {
                    text += &std::format!(" {}={}", parameter.name, call.number(index));
                }
                ParameterKind::Comm => text += &std::format!(" of {}", call.comm().expect("one").size()),
                _ => {}
            }
        }
        self.0.lock().unwrap().push(text);
    }

    fn end(&self, call: &Observed<'_>, code: i32, ended: u64) {
        assert!(call.begun <= ended);
        let mut text = std::format!("{} end {code}", call.depth);
        if let Some(at) = call.call.parameters.iter().position(|p| p.kind == ParameterKind::Status) {
            // SAFETY: the call has ended well.
            let status = unsafe { call.status(at, 0) }.expect("wanted");
            text += &std::format!(" from {} bytes {}", status.source, status.count_bytes);
        }
        self.0.lock().unwrap().push(text);
    }
}

/// Gives the rank a scribe, and the table that is observed.
fn observe(program: Program) -> (Heard, &'static Table<Mpi5>) {
    let heard = Heard::default();
    // SAFETY: what `attach` gave.
    let process = unsafe { Process::of(program.caller) };
    let scribe = Box::new(Scribe(heard.clone()));
    process.observers.call_once(|| Observers::new(vec![scribe]));
    let place: &'static AtomicPtr<c_void> = Box::leak(Box::new(AtomicPtr::new(core::ptr::null_mut())));
    // SAFETY: as above; the place stays.
    let given = unsafe { observed::attached::<Mpi5>(program.caller, &TABLE, place) };
    assert_eq!(given, (&raw const TABLE).cast(), "nobody has asked");
    // SAFETY: as above.
    unsafe { observed::switch(program.caller, true) };
    let table = place.load(Ordering::Relaxed);
    // SAFETY: `switch` has stored a table of this ABI, which stays.
    (heard, unsafe { &*table.cast_const().cast() })
}

fn texts(heard: &Heard) -> Vec<String> {
    heard.lock().unwrap().clone()
}

#[test]
fn messages_are_told_with_their_arguments() {
    run(2, |program| {
        let (heard, table) = observe(program);
        let (mut buffer, mut status) = ([7_u8; 300], status());
        let at = buffer.as_mut_ptr().cast::<c_void>();
        // SAFETY: the arguments are what MPI asks for.
        let code = unsafe {
            match program.rank {
                0 => (table.Send)(program.caller, at, 200, byte(), 1, 9, world()),
                _ => (table.Recv_c)(program.caller, at, 300, byte(), 0, 9, world(), &mut status),
            }
        };
        assert_eq!(code, neutral::SUCCESS);
        let expected = match program.rank {
            0 => ["0 MPI_Send count=200 dest=1 tag=9 of 2", "0 end 0"],
            _ => ["0 MPI_Recv_c count=300 source=0 tag=9 of 2", "0 end 0 from 0 bytes 200"],
        };
        assert_eq!(texts(&heard), expected.map(|text| text.to_string()));
    });
}

#[test]
fn arguments_on_the_stack_arrive_and_are_told() {
    run(2, |program| {
        let (heard, table) = observe(program);
        let other = 1 - program.rank;
        let (sent, mut received) = ([program.rank as u8; 4], [9_u8; 4]);
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        let mut status = status();
        // SAFETY: the arguments are what MPI asks for.
        let code = unsafe {
            (table.Sendrecv)(program.caller, from, 4, byte(), other, 5, to, 4, byte(), other, 5, world(), &mut status)
        };
        assert_eq!((code, received), (neutral::SUCCESS, [other as u8; 4]));
        let begun =
            std::format!("0 MPI_Sendrecv sendcount=4 dest={other} sendtag=5 recvcount=4 source={other} recvtag=5 of 2");
        let ended = std::format!("0 end 0 from {other} bytes 4");
        assert_eq!(texts(&heard), [begun, ended]);
    });
}

/// An attribute's delete function, which calls MPI by the table that is its extra state.
unsafe extern "C" fn ask_the_size(comm: Comm, _keyval: c_int, caller: *mut c_void, extra: *mut c_void) -> c_int {
    let mut size = 0;
    // SAFETY: what the test below has given.
    unsafe { ((*extra.cast_const().cast::<Table<Mpi5>>()).Comm_size)(caller, comm, &mut size) }
}

#[test]
fn calls_of_callbacks_are_told_as_such() {
    run(1, |program| {
        let (heard, table) = observe(program);
        let mut keyval = 0;
        let extra = (&raw const *table).cast_mut().cast();
        let copy = None;
        let code = mpi!(program, Comm_create_keyval, copy, Some(ask_the_size), &mut keyval, extra);
        assert_eq!(code, neutral::SUCCESS);
        let value = program.caller.cast_mut();
        assert_eq!(mpi!(program, Comm_set_attr, world(), keyval, value), neutral::SUCCESS);
        // SAFETY: the arguments are what MPI asks for.
        let code = unsafe { (table.Comm_delete_attr)(program.caller, world(), keyval) };
        assert_eq!(code, neutral::SUCCESS);
        let expected = ["0 MPI_Comm_delete_attr of 1", "1 MPI_Comm_size of 1", "1 end 0", "0 end 0"];
        assert_eq!(texts(&heard), expected.map(|text| text.to_string()));
    });
}

#[test]
fn a_table_is_switched_back_and_plain_functions_stay_plain() {
    run(1, |program| {
        let (heard, table) = observe(program);
        // What answers from its arguments has the entry of the plain table.
        assert!(core::ptr::fn_addr_eq(table.Wtime, TABLE.Wtime));
        assert!(core::ptr::fn_addr_eq(table.Comm_c2f, TABLE.Comm_c2f));
        assert!(!core::ptr::fn_addr_eq(table.Barrier, TABLE.Barrier));
        // SAFETY: what `attach` gave.
        let process = unsafe { Process::of(program.caller) };
        // SAFETY: the same; the rank is here.
        unsafe { observed::switch(program.caller, false) };
        let mut places = process.facades.iter().map(|place| place.load(Ordering::Relaxed));
        let place = places.find(|place| !place.is_null()).expect("attached");
        // SAFETY: what `observe` has leaked.
        let now = unsafe { &*place }.load(Ordering::Relaxed);
        assert_eq!(now.cast_const(), (&raw const TABLE).cast());
        assert!(texts(&heard).is_empty());
        assert_eq!(Mpi5::NAME, "MPI-5");
    });
}
