//! What the executable's `socket`, `close`, `writev` ask; see [`cohort_fabric::interpose`].
//!
//! The hooks find the call that they belong to in thread-local data: that of the seat, if the
//! caller sits on one. Functions that touch it are not inlined, as the compiler may keep its
//! address while the FS base changes.

use crate::Descriptors;
use crate::numbers::lifted;
use crate::table::DescriptorTable;
use cohort_base::signals::Signals;
use cohort_fabric::interpose::{Action, DescriptorKind, Hooks, REGISTER, Register, VERSION};
use libc::{c_int, c_void};
use rustix::io::Errno;
use std::cell::Cell;
use std::ffi::CString;
use std::time::Duration;

/// Stack of a thread that lends its number.
const STACK: usize = 64 << 10;

/// A call of the network, as long as it lasts.
#[derive(Debug)]
struct Call {
    descriptors: *const Descriptors,
    table: *mut DescriptorTable,
    process: usize,
    defers: bool,
}

thread_local! {
    static CALL: Cell<*mut Call> = const { Cell::new(std::ptr::null_mut()) };
}

static HOOKS: Hooks = Hooks { version: VERSION, has_room, without_limit, opened, closing, withhold, process };

/// Registers the hooks with the executable, if it takes any: without, descriptors
/// are not shared, and need not be if the process is the only rank of its node.
///
/// # Errors
/// The executable has no such function, or is of another version.
pub fn register() -> Result<(), String> {
    let name = CString::new(REGISTER).unwrap_or_default();
    // SAFETY: a C string.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if symbol.is_null() {
        return Err(format!("the executable exports no {REGISTER}"));
    }
    // SAFETY: the executable exports this name with this type; the hooks are a constant.
    let result = unsafe {
        let register = std::mem::transmute::<*mut libc::c_void, Register>(symbol);
        register(&raw const HOOKS)
    };
    if result == 0 { Ok(()) } else { Err(format!("{REGISTER} of the executable is of another version")) }
}

/// Touches the thread-local data, so that it exists before a seat is borrowed.
pub fn touch_thread_local() {
    set_call(std::ptr::null_mut());
}

#[inline(never)]
fn set_call(call: *mut Call) {
    CALL.set(call);
}

/// Runs `call` by process `process` with descriptors that go to `table`. To be called on a seat, or on a
/// thread of the root.
pub fn run_call<R>(
    descriptors: &Descriptors,
    table: &mut DescriptorTable,
    process: usize,
    defers: bool,
    call: impl FnOnce() -> R,
) -> R {
    let mut record = Call { descriptors, table, process, defers };
    set_call(&raw mut record);
    let result = call();
    set_call(std::ptr::null_mut());
    result
}

/// What the calling thread's call has to do with a descriptor.
#[inline(never)]
fn with_call<R>(act: impl FnOnce(&Descriptors, &mut DescriptorTable, usize, bool) -> R) -> Option<R> {
    // SAFETY: NULL, or the record of a call of this thread, in which nobody else uses the table, since the call holds
    // the endpoint's lock and lends it to nobody but libfabric, which has no pointer to it.
    unsafe {
        let call = CALL.get().as_ref()?;
        Some(act(&*call.descriptors, &mut *call.table, call.process, call.defers))
    }
}

extern "C" fn has_room() -> c_int {
    let room = with_call(|descriptors, _, _, _| descriptors.has_room());
    room.unwrap_or(true).into()
}

extern "C" fn without_limit(again: extern "C" fn(*mut c_void), data: *mut c_void) -> c_int {
    let is_call = with_call(|_, _, _, _| ()).is_some();
    if is_call {
        let mut is_lifted = false;
        let _ = lifted(|| match std::mem::replace(&mut is_lifted, true) {
            false => Err(Errno::MFILE),
            true => {
                again(data);
                Ok(())
            }
        });
    }
    is_call.into()
}

extern "C" fn opened(descriptor: c_int, kind: DescriptorKind) -> c_int {
    if kind == DescriptorKind::File && !is_device(descriptor) {
        return descriptor;
    }
    with_call(|descriptors, table, process, _| {
        let Some(number) = table.add(descriptors, process, descriptor, kind) else {
            // SAFETY: the calling thread's own.
            unsafe { *libc::__errno_location() = libc::EMFILE };
            return -1;
        };
        if kind == DescriptorKind::Socket {
            set_timeouts(number, descriptors.timeout);
        }
        number
    })
    .unwrap_or(descriptor)
}

extern "C" fn closing(descriptor: c_int) -> c_int {
    let closed = with_call(|descriptors, table, process, _| {
        descriptors.numbers.holds(descriptor) && table.close(descriptors, process, descriptor)
    });
    closed.unwrap_or(false).into()
}

extern "C" fn withhold(descriptor: c_int, action: Action) -> c_int {
    let code = with_call(|descriptors, table, _, defers| {
        if !descriptors.defer || !descriptors.numbers.holds(descriptor) {
            return 0;
        }
        let code = if defers { table.withhold(descriptor, action) } else { 0 };
        if code == 0 && action == Action::Data {
            table.count_send(descriptor);
        }
        code
    });
    code.unwrap_or(0)
}

extern "C" fn process() -> c_int {
    let number = |descriptors: &Descriptors, table: &mut DescriptorTable| {
        table.process().unwrap_or_else(|| descriptors.root_process())
    };
    with_call(|descriptors, table, _, _| number(descriptors, table)).unwrap_or(0)
}

/// Lets this call and all later ones for its endpoint give another number than the root's as their process id. For
/// libraries that tell endpoints from each other by their process ids.
///
/// # Errors
/// No thread can be made.
pub fn appear_as_another_process() -> std::io::Result<()> {
    let number = own_number()?;
    with_call(|_, table, _, _| table.set_process(number));
    Ok(())
}

/// A number that no other process of the machine has, and that the system takes for the root's: that of
/// a thread of it, which sleeps until the root ends.
fn own_number() -> std::io::Result<i32> {
    let (send, receive) = std::sync::mpsc::channel();
    let mask = Signals::ALL.block();
    let thread = std::thread::Builder::new().name("cohort-identity".into()).stack_size(STACK).spawn(move || {
        // SAFETY: no condition.
        let number = unsafe { libc::gettid() };
        // The receiver waits for it.
        let _ = send.send(number);
        loop {
            std::thread::park();
        }
    });
    mask.restore();
    thread?;
    receive.recv().map_err(std::io::Error::other)
}

/// Whether a file is a character device, as drivers of networks are; other files are read and closed
/// within a call.
fn is_device(descriptor: c_int) -> bool {
    // SAFETY: zeros are a valid record, and a place for the result.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        libc::fstat(descriptor, &raw mut status) == 0 && status.st_mode & libc::S_IFMT == libc::S_IFCHR
    }
}

/// Lets the system end an idle connection whose other end's system is silent for this long. Sockets that are not of TCP
/// refuse that.
///
/// There is no limit for data that is not acknowledged (`TCP_USER_TIMEOUT`): it would count the time in which a living
/// receiver has no room, because its rank computes. Whether that node lives is found out by the service.
pub fn set_timeouts(socket: c_int, timeout: Duration) {
    let set = |level: c_int, name: c_int, value: c_int| {
        // SAFETY: an int of the size that is passed.
        unsafe {
            libc::setsockopt(socket, level, name, (&raw const value).cast(), size_of::<c_int>() as u32);
        }
    };
    // The kernel takes at most 32767 seconds.
    let seconds = timeout.as_secs().clamp(1, 32767) as c_int;
    let (idle, interval) = ((seconds / 2).max(1), (seconds / 6).max(1));
    set(libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1);
    set(libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, idle);
    set(libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, interval);
    set(libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 3);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_endpoints_give_are_of_this_process_and_differ() {
        let numbers = [own_number().unwrap(), own_number().unwrap()];
        assert_ne!(numbers[0], numbers[1]);
        let is_ours = |number: i32| std::path::Path::new(&format!("/proc/self/task/{number}")).exists();
        assert!(numbers.into_iter().all(is_ours));
        assert!(!numbers.contains(&(std::process::id() as i32)));
    }
}
