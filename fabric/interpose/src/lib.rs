//! `socket`, `close`, `writev`, `getpid` and the like, as C libraries of an executable's namespace call them.
//!
//! An executable that links this crate, calls [`keep`] and exports the functions from its dynamic table (its build
//! script passes `--dynamic-list` with this crate's `exported.list`) takes them over from the C library, for itself
//! and for everything that it loads. Each makes the system call and asks the registered
//! [`Hooks`](cohort_fabric::interpose::Hooks); without hooks it is the C library's function.
//!
//! Not taken over: what the C library calls inside itself (name look-ups, standard streams).

use cohort_fabric::interpose::{Action, DescriptorKind, Hooks, VERSION};
use libc::{c_char, c_int, c_long, c_uint, c_ulong, c_void, iovec, msghdr, size_t, ssize_t};
use libc::{sockaddr, socklen_t};
use std::sync::atomic::{AtomicPtr, Ordering};

static HOOKS: AtomicPtr<Hooks> = AtomicPtr::new(std::ptr::null_mut());

/// Makes sure that the linker takes this crate's functions before the C library's. To be called
/// once in `main`; it does nothing.
pub fn keep() {
    let functions: [*const (); 21] = [
        cohort_interpose as *const (),
        socket as *const (),
        accept as *const (),
        accept4 as *const (),
        socketpair as *const (),
        pipe as *const (),
        pipe2 as *const (),
        epoll_create as *const (),
        epoll_create1 as *const (),
        eventfd as *const (),
        open as *const (),
        open64 as *const (),
        close as *const (),
        write as *const (),
        writev as *const (),
        send as *const (),
        sendto as *const (),
        sendmsg as *const (),
        recv as *const (),
        ioctl as *const (),
        getpid as *const (),
    ];
    std::hint::black_box(functions);
}

/// Registers hooks: a [`Register`](cohort_fabric::interpose::Register).
///
/// # Safety
/// NULL, or hooks that are never freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cohort_interpose(hooks: *const Hooks) -> c_int {
    // SAFETY: the caller's promise.
    if unsafe { hooks.as_ref() }.is_some_and(|hooks| hooks.version != VERSION) {
        return -1;
    }
    // Release pairs with the Acquire of `hooks`.
    HOOKS.store(hooks.cast_mut(), Ordering::Release);
    0
}

fn hooks() -> Option<&'static Hooks> {
    // SAFETY: NULL, or hooks that are never freed.
    unsafe { HOOKS.load(Ordering::Acquire).as_ref() }
}

/// The result of a call that makes descriptors. What the network needs is not bounded by how many files the program may
/// have.
fn making(mut call: impl FnMut() -> c_long) -> c_long {
    extern "C" fn again(pair: *mut c_void) {
        // SAFETY: what `making` passes, which waits meanwhile.
        let (call, result) = unsafe { &mut *pair.cast::<(&mut dyn FnMut() -> c_long, c_long)>() };
        *result = call();
    }
    let result = call();
    // SAFETY: the calling thread's own.
    if result >= 0 || unsafe { *libc::__errno_location() } != libc::EMFILE {
        return result;
    }
    let mut pair: (&mut dyn FnMut() -> c_long, c_long) = (&mut call, result);
    if let Some(hooks) = hooks() {
        (hooks.without_limit)(again, (&raw mut pair).cast());
    }
    pair.1
}

/// The number by which a new descriptor is known; failures pass.
fn opened(result: c_long, kind: DescriptorKind) -> c_int {
    let descriptor = result as c_int;
    match hooks() {
        Some(hooks) if descriptor >= 0 => (hooks.opened)(descriptor, kind),
        _ => descriptor,
    }
}

/// As [`opened`] for the two of a pair.
///
/// # Safety
/// `pair` is where the system stored two numbers, if `result` is 0.
unsafe fn opened_pair(result: c_long, pair: *mut c_int) -> c_int {
    if result == 0
        && let Some(hooks) = hooks()
    {
        // SAFETY: the caller's promise.
        let pair = unsafe { std::slice::from_raw_parts_mut(pair, 2) };
        let [first, second] = pair else {
            return result as c_int;
        };
        *first = (hooks.opened)(*first, DescriptorKind::Signal);
        *second = (hooks.opened)(*second, DescriptorKind::Signal);
        if *first < 0 || *second < 0 {
            for &mut descriptor in pair {
                // SAFETY: made just now; the error stays that of the hook.
                unsafe { close_quietly(descriptor) };
            }
            return -1;
        }
    }
    result as c_int
}

/// Closes a descriptor, if it is one, and leaves `errno` as it is.
///
/// # Safety
/// Nobody uses it.
unsafe fn close_quietly(descriptor: c_int) {
    // SAFETY: the calling thread's own.
    let before = unsafe { *libc::__errno_location() };
    if descriptor >= 0 {
        close(descriptor);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = before };
}

/// Whether a call must be put off; stores `errno` then.
fn withheld(descriptor: c_int, action: Action) -> bool {
    let Some(hooks) = hooks() else {
        return false;
    };
    let code = (hooks.withhold)(descriptor, action);
    if code != 0 {
        // SAFETY: the calling thread's own.
        unsafe { *libc::__errno_location() = code };
    }
    code != 0
}

/// `socket(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    // SAFETY: no condition.
    let result = making(|| unsafe { libc::syscall(libc::SYS_socket, domain, kind, protocol) });
    opened(result, DescriptorKind::Socket)
}

/// `accept(2)`.
///
/// # Safety
/// As the manual page demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept(descriptor: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { accept4(descriptor, address, length, 0) }
}

/// `accept4(2)`.
///
/// # Safety
/// As the manual page demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept4(
    descriptor: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    if hooks().is_some_and(|hooks| (hooks.has_room)() == 0) {
        // The connection stays where it is, for another try.
        // SAFETY: the calling thread's own.
        unsafe { *libc::__errno_location() = libc::EMFILE };
        return -1;
    }
    // SAFETY: the caller's promise.
    let result = making(|| unsafe { libc::syscall(libc::SYS_accept4, descriptor, address, length, flags) });
    opened(result, DescriptorKind::Socket)
}

/// `socketpair(2)`.
///
/// # Safety
/// As the manual page demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socketpair(domain: c_int, kind: c_int, protocol: c_int, pair: *mut c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let result = making(|| libc::syscall(libc::SYS_socketpair, domain, kind, protocol, pair));
        opened_pair(result, pair)
    }
}

/// `pipe(2)`.
///
/// # Safety
/// As the manual page demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pipe(pair: *mut c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { pipe2(pair, 0) }
}

/// `pipe2(2)`.
///
/// # Safety
/// As the manual page demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pipe2(pair: *mut c_int, flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { opened_pair(making(|| libc::syscall(libc::SYS_pipe2, pair, flags)), pair) }
}

/// `epoll_create(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn epoll_create(_size: c_int) -> c_int {
    epoll_create1(0)
}

/// `epoll_create1(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn epoll_create1(flags: c_int) -> c_int {
    // SAFETY: no condition.
    let result = making(|| unsafe { libc::syscall(libc::SYS_epoll_create1, flags) });
    opened(result, DescriptorKind::Epoll)
}

/// `eventfd(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn eventfd(count: c_uint, flags: c_int) -> c_int {
    // SAFETY: no condition.
    let result = making(|| unsafe { libc::syscall(libc::SYS_eventfd2, count, flags) });
    opened(result, DescriptorKind::Signal)
}

/// `open(2)`. The third argument is read whether it was passed or not, as the C library does.
///
/// # Safety
/// As the manual page demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller's promise.
    let result = making(|| unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, mode) });
    opened(result, DescriptorKind::File)
}

/// `open64(2)`.
///
/// # Safety
/// As the manual page demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { open(path, flags, mode) }
}

/// `close(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn close(descriptor: c_int) -> c_int {
    if hooks().is_some_and(|hooks| (hooks.closing)(descriptor) == 1) {
        return 0;
    }
    // SAFETY: no condition.
    unsafe { libc::syscall(libc::SYS_close, descriptor) as c_int }
}

/// `write(2)`.
///
/// # Safety
/// As the manual page demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(descriptor: c_int, bytes: *const c_void, length: size_t) -> ssize_t {
    if withheld(descriptor, Action::Data) {
        return -1;
    }
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_write, descriptor, bytes, length) as ssize_t }
}

/// `writev(2)`.
///
/// # Safety
/// As the manual page demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(descriptor: c_int, pieces: *const iovec, count: c_int) -> ssize_t {
    if withheld(descriptor, Action::Data) {
        return -1;
    }
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_writev, descriptor, pieces, count) as ssize_t }
}

/// `send(2)`.
///
/// # Safety
/// As the manual page demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn send(descriptor: c_int, bytes: *const c_void, length: size_t, flags: c_int) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { sendto(descriptor, bytes, length, flags, std::ptr::null(), 0) }
}

/// `sendto(2)`.
///
/// # Safety
/// As the manual page demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendto(
    descriptor: c_int,
    bytes: *const c_void,
    length: size_t,
    flags: c_int,
    address: *const sockaddr,
    address_length: socklen_t,
) -> ssize_t {
    if withheld(descriptor, Action::Data) {
        return -1;
    }
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_sendto, descriptor, bytes, length, flags, address, address_length) as ssize_t }
}

/// `sendmsg(2)`.
///
/// # Safety
/// As the manual page demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmsg(descriptor: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    if withheld(descriptor, Action::Data) {
        return -1;
    }
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_sendmsg, descriptor, message, flags) as ssize_t }
}

/// `recv(2)`. At a stream's end, which is no error, it also clears `errno`: libfabric 1.17 takes
/// what it finds there for the reason, and waits for ever for more if an earlier call has left
/// `EAGAIN`.
///
/// # Safety
/// As the manual page demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recv(descriptor: c_int, bytes: *mut c_void, length: size_t, flags: c_int) -> ssize_t {
    let nobody = std::ptr::null_mut::<c_void>();
    // SAFETY: the caller's promise; `errno` is the calling thread's own.
    unsafe {
        let call = libc::SYS_recvfrom;
        let result = libc::syscall(call, descriptor, bytes, length, flags, nobody, nobody);
        if result == 0 {
            *libc::__errno_location() = 0;
        }
        result as ssize_t
    }
}

/// `ioctl(2)`.
///
/// # Safety
/// As the manual page demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(descriptor: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    if withheld(descriptor, Action::Control) {
        return -1;
    }
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_ioctl, descriptor, request, argument) as c_int }
}

/// `getpid(2)`. Calls of the network by several processes that share its memory are one process's
/// to its peers: libfabric takes another number at the same address for a new process, and drops
/// its connection with the former one.
#[unsafe(no_mangle)]
pub extern "C" fn getpid() -> c_int {
    match hooks().map(|hooks| (hooks.process)()) {
        None | Some(0) => {
            // SAFETY: no condition.
            unsafe { libc::syscall(libc::SYS_getpid) as c_int }
        }
        Some(process) => process,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Error;

    #[test]
    fn the_end_of_a_stream_leaves_no_reason_behind() {
        let mut pair = [-1; 2];
        let mut byte = 0_u8;
        let target = (&raw mut byte).cast();
        let flags = libc::MSG_DONTWAIT;
        // SAFETY: places of the lengths that are passed.
        unsafe {
            let kind = libc::SOCK_STREAM;
            assert_eq!(socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()), 0);
            assert_eq!(recv(pair[0], target, 1, flags), -1);
            assert_eq!(Error::last_os_error().raw_os_error(), Some(libc::EAGAIN));
            assert_eq!(send(pair[1], (&raw const byte).cast(), 1, 0), 1);
            assert_eq!(recv(pair[0], target, 1, flags), 1);
            assert_eq!(close(pair[1]), 0);
            assert_eq!(recv(pair[0], target, 1, flags), 0);
        }
        assert_eq!(Error::last_os_error().raw_os_error(), Some(0));
        assert_eq!(close(pair[0]), 0);
    }

    #[test]
    fn a_caller_without_hooks_is_itself() {
        assert_eq!(getpid(), std::process::id() as c_int);
    }
}
