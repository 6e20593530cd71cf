//! Keeps libraries of the network from handling signals.
//!
//! Some that libfabric loads set handlers for SIGINT, SIGTERM, SIGABRT and faults in their initialisers, which print
//! where the process was and call `exit`. Ranks are clones of the root and inherit its handlers, whose code is of the
//! root's C library: in a rank, `exit` reads thread-local data of another one and jumps to a wild address.

use std::mem::MaybeUninit;

/// What happens at each signal; the system's numbers, as far as the C library lets programs change them.
type Dispositions = Vec<(i32, libc::sigaction)>;

/// One more than the last signal.
const SIGNALS_END: i32 = 65;

/// Calls something that may set handlers, and takes them back.
pub fn keep_dispositions<R>(call: impl FnOnce() -> R) -> R {
    let kept = dispositions();
    let result = call();
    for (signal, action) in &kept {
        // SAFETY: what the system said of this signal before; the former one is not asked for.
        unsafe { libc::sigaction(*signal, action, std::ptr::null_mut()) };
    }
    result
}

fn dispositions() -> Dispositions {
    (1..SIGNALS_END)
        .filter_map(|signal| {
            let mut action = MaybeUninit::uninit();
            // SAFETY: a place for the answer; nothing is changed.
            let result = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
            // SAFETY: the system has filled it.
            (result == 0).then(|| (signal, unsafe { action.assume_init() }))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_that_a_library_sets_are_taken_back() {
        extern "C" fn handler(_signal: i32) {}
        let of = |signal| {
            let all = dispositions();
            all.iter().find(|(number, _)| *number == signal).unwrap().1.sa_sigaction
        };
        let before = of(libc::SIGUSR2);
        let within = keep_dispositions(|| {
            // SAFETY: a handler that does nothing.
            unsafe { libc::signal(libc::SIGUSR2, handler as *const () as libc::sighandler_t) };
            of(libc::SIGUSR2)
        });
        assert_ne!(within, before);
        assert_eq!(of(libc::SIGUSR2), before);
    }
}
