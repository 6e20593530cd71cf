//! The system calls that the library makes.

use linux_raw_sys::general as numbers;
use linux_raw_sys::general::{__NR_exit_group, __NR_getpid, __NR_write};

const STANDARD_ERROR: usize = 2;

/// Makes a system call.
///
/// # Safety
/// As the call demands.
unsafe fn call(number: u32, [first, second, third, fourth, fifth]: [usize; 5]) -> isize {
    // SAFETY: the caller's promise.
    unsafe { cohort_arch::system_call(number, [first, second, third, fourth, fifth, 0]) }
}

/// This process.
pub fn process() -> i32 {
    // SAFETY: changes nothing.
    unsafe { call(__NR_getpid, [0; 5]) as i32 }
}

/// Writes last words; what cannot be written is lost.
pub fn write_error(text: &[u8]) {
    // SAFETY: readable memory of that length.
    let _ = unsafe { call(__NR_write, [STANDARD_ERROR, text.as_ptr().addr(), text.len(), 0, 0]) };
}

/// Ends the process.
pub fn exit(status: i32) -> ! {
    loop {
        // SAFETY: does not return.
        unsafe { call(__NR_exit_group, [status as usize, 0, 0, 0, 0]) };
    }
}

/// Ends the process by a signal, without a core file.
pub fn die(signal: u8) -> ! {
    /// `PR_SET_DUMPABLE`
    const SET_DUMPABLE: usize = 4;
    /// `SIG_SETMASK`, and the bytes of a mask.
    const SET: [usize; 2] = [2, 8];
    let none = 0_u64;
    let none = (&raw const none).expose_provenance();
    // SAFETY: concern this process only, none of whose code has run; the mask is readable.
    unsafe {
        call(numbers::__NR_prctl, [SET_DUMPABLE, 0, 0, 0, 0]);
        call(numbers::__NR_rt_sigprocmask, [SET[0], none, 0, SET[1], 0]);
        call(numbers::__NR_kill, [process() as usize, signal.into(), 0, 0, 0]);
    }
    // It ignores the signal.
    exit(128 + i32::from(signal))
}

/// Whether one of the three timers runs that a program leaves to the one that is executed in its place.
pub fn has_timer() -> bool {
    (0..3).any(|which| {
        let mut timer = [0_i64; 4];
        let place = (&raw mut timer).expose_provenance();
        // SAFETY: room for a `struct itimerval`.
        let result = unsafe { call(numbers::__NR_getitimer, [which, place, 0, 0, 0]) };
        result < 0 || timer[2] != 0 || timer[3] != 0
    })
}

/// The process's `personality(2)`.
pub fn personality() -> u32 {
    // SAFETY: this value asks only.
    unsafe { call(numbers::__NR_personality, [0xffff_ffff, 0, 0, 0, 0]) as u32 }
}

/// The process's timer slack in nanoseconds (`PR_GET_TIMERSLACK`).
pub fn timer_slack() -> u32 {
    /// `PR_GET_TIMERSLACK`
    const GET: usize = 30;
    // SAFETY: asks only.
    let slack = unsafe { call(numbers::__NR_prctl, [GET, 0, 0, 0, 0]) };
    u32::try_from(slack).unwrap_or(u32::MAX)
}

/// Mode and nodes of the process's memory policy (`set_mempolicy(2)`); `None` if its nodes are not among the first 32.
pub fn memory_policy() -> Option<(u32, u32)> {
    /// Most nodes that a kernel knows.
    const NODES: usize = 1024;
    let (mut mode, mut nodes) = (0_i32, [0_u64; NODES / 64]);
    let places = [(&raw mut mode).expose_provenance(), (&raw mut nodes).expose_provenance()];
    // SAFETY: room for a number and so many bits.
    let result = unsafe { call(numbers::__NR_get_mempolicy, [places[0], places[1], NODES, 0, 0]) };
    if result < 0 {
        // Where asking is forbidden, so is setting.
        return Some((0, 0));
    }
    let first = u32::try_from(nodes[0]).ok()?;
    let rest = nodes.iter().skip(1).all(|word| *word == 0);
    rest.then_some((mode as u32, first))
}

/// A connection with the socket at `address`, the bytes of a `struct sockaddr_un`.
pub fn connect(address: &[u8]) -> Option<Connection> {
    /// `AF_UNIX`
    const UNIX: usize = 1;
    /// `SOCK_STREAM | SOCK_CLOEXEC`
    const KIND: usize = 0x8_0001;
    // SAFETY: makes a descriptor.
    let socket = unsafe { call(numbers::__NR_socket, [UNIX, KIND, 0, 0, 0]) };
    let connection = Connection { socket: usize::try_from(socket).ok()? };
    let place = address.as_ptr().addr();
    let arguments = [connection.socket, place, address.len(), 0, 0];
    // SAFETY: readable memory of that length.
    let result = unsafe { call(numbers::__NR_connect, arguments) };
    (result == 0).then_some(connection)
}

/// A connection; closed in the end.
pub struct Connection {
    socket: usize,
}

/// `struct iovec`
#[repr(C)]
struct Piece {
    address: *const u8,
    length: usize,
}

/// A control message that carries three descriptors: `struct cmsghdr` and its data.
#[repr(C)]
struct Descriptors {
    length: usize,
    level: i32,
    kind: i32,
    numbers: [i32; 3],
    padding: i32,
}

/// `struct msghdr`
#[repr(C)]
struct Parcel {
    name: usize,
    name_length: usize,
    pieces: *const Piece,
    pieces_count: usize,
    control: *const Descriptors,
    control_length: usize,
    flags: usize,
}

impl Connection {
    /// Its descriptor.
    pub fn descriptor(&self) -> u32 {
        self.socket as u32
    }

    /// Sends a text and the standard descriptors; whether that went well.
    pub fn send_with_standard(&self, text: &[u8]) -> bool {
        /// `SOL_SOCKET` and `SCM_RIGHTS`, both.
        const RIGHTS: i32 = 1;
        /// `MSG_NOSIGNAL`
        const QUIETLY: usize = 0x4000;
        let piece = Piece { address: text.as_ptr(), length: text.len() };
        let control = Descriptors {
            length: size_of::<Descriptors>() - size_of::<i32>(),
            level: RIGHTS,
            kind: RIGHTS,
            numbers: [0, 1, 2],
            padding: 0,
        };
        let parcel = Parcel {
            name: 0,
            name_length: 0,
            pieces: &raw const piece,
            pieces_count: 1,
            control: &raw const control,
            control_length: size_of::<Descriptors>(),
            flags: 0,
        };
        let parcel = (&raw const parcel).expose_provenance();
        let arguments = [self.socket, parcel, QUIETLY, 0, 0];
        // SAFETY: a complete message, whose parts live.
        let sent = unsafe { call(numbers::__NR_sendmsg, arguments) };
        usize::try_from(sent) == Ok(text.len())
    }

    /// Waits until the other side says a byte; `None` if it has closed the connection.
    pub fn hear(&self) -> Option<u8> {
        /// `EINTR`
        const INTERRUPTED: isize = -4;
        let mut byte = 0_u8;
        let place = (&raw mut byte).expose_provenance();
        loop {
            // SAFETY: room for a byte.
            match unsafe { call(numbers::__NR_read, [self.socket, place, 1, 0, 0]) } {
                1 => return Some(byte),
                INTERRUPTED => {}
                _ => return None,
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: a descriptor that nobody else knows.
        let _ = unsafe { call(numbers::__NR_close, [self.socket, 0, 0, 0, 0]) };
    }
}
