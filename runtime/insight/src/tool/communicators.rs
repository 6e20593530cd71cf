//! Performance variables of one communicator: what the calling rank does on it. They count while a tool has a handle
//! that it has started, each handle for itself.

use super::variable::Variable;
use crate::calls::words;
use crate::observed::live::{self, COUNTED};
use crate::subject::Subject;
use crate::subject::followed::{Follower, Quantity};
use cohort_abi::parameters::Base;
use cohort_abi::{Abi, neutral};
use cohort_base::clock::ticks_per_us;
use cohort_object::Outcome;

macro_rules! variables {
    ($($name:literal $class:ident $quantity:ident $help:literal;)*) => {
        /// All of them.
        pub(super) static VARIABLES: &[Variable] = &[$(Variable {
            name: $name,
            help: $help,
            class: neutral::$class,
            of_comm: Some(Quantity::$quantity),
            read: |_| 0,
        },)*];
    };
}

variables! {
    "cohort_comm_calls" T_PVAR_CLASS_COUNTER Calls
        "of one communicator: calls of the program on it";
    "cohort_comm_messages" T_PVAR_CLASS_COUNTER Messages
        "of one communicator: messages sent, without what collectives need";
    "cohort_comm_bytes" T_PVAR_CLASS_AGGREGATE Bytes
        "of one communicator: bytes of these messages, and those given to collectives with one count";
    "cohort_comm_time" T_PVAR_CLASS_TIMER Time
        "of one communicator: seconds in calls on it, and in waits for its requests";
    "cohort_comm_waiting" T_PVAR_CLASS_TIMER Waiting
        "of one communicator: seconds of these in receives, probes, MPI_Ssend, blocking collectives and waits";
}

impl Quantity {
    /// Whether its values are seconds.
    pub(super) fn is_time(self) -> bool {
        matches!(self, Self::Time | Self::Waiting)
    }

    /// The bytes of a value as the program reads it.
    fn shown(self, value: u64) -> [u8; 8] {
        match self.is_time() {
            true => (value as f64 / 1e6 / ticks_per_us().max(1) as f64).to_ne_bytes(),
            false => value.to_ne_bytes(),
        }
    }

    /// The value that the program writes as these bytes.
    fn meant(self, bytes: [u8; 8]) -> u64 {
        match self.is_time() {
            true => (f64::from_ne_bytes(bytes) * 1e6 * ticks_per_us().max(1) as f64) as u64,
            false => u64::from_ne_bytes(bytes),
        }
    }
}

/// The communicator at the address that a tool binds a variable to.
pub(super) fn object<A: Abi>(subject: &Subject, object: Base) -> Outcome<u32> {
    const { assert!(size_of::<A::Comm>() <= size_of::<u64>()) };
    if object.is_null() {
        return Err(neutral::T_ERR_INVALID.into());
    }
    let mut word = [0; size_of::<u64>()];
    object.read(&mut word[..size_of::<A::Comm>()]);
    let handle = words::<A>().comm(u64::from_ne_bytes(word));
    match subject.objects.comm(handle) {
        Ok(_) => Ok(handle),
        Err(_) => Err(neutral::T_ERR_INVALID.into()),
    }
}

/// A handle of such a variable is there, stopped.
pub(super) fn follow(subject: &Subject, handle: usize, follower: Follower) {
    subject.tool.followed.add(handle, follower);
    live::want(subject.objects.rank(), COUNTED, true);
}

/// Removes those of which the test says so; with the last one, no call is observed for them any more.
pub(super) fn unfollow(subject: &Subject, test: impl Fn(usize, &Follower) -> bool) {
    let followed = &subject.tool.followed;
    if followed.is_empty() {
        return;
    }
    followed.remove(test);
    if followed.is_empty() {
        live::want(subject.objects.rank(), COUNTED, false);
    }
}

/// Nobody uses the interface any more.
pub(super) fn end_all(subject: &Subject) {
    unfollow(subject, |_, _| true);
}

/// Reads one, and makes it 0 if that is wanted.
pub(super) fn read(follower: &mut Follower, buffer: Base, resets: bool) {
    buffer.write(&follower.quantity.shown(follower.value));
    if resets {
        follower.value = 0;
    }
}

/// Writes one.
pub(super) fn write(follower: &mut Follower, buffer: Base) {
    let mut bytes = [0; size_of::<u64>()];
    buffer.read(&mut bytes);
    follower.value = follower.quantity.meant(bytes);
}
