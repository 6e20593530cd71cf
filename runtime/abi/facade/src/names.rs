//! The names under which a facade exports what takes the place of the C library's functions.

/// Exports them; once in each library that programs are linked to. A line has all names of one function.
#[macro_export]
macro_rules! own_names {
    () => {
        mod own_names {
            use ::core::ffi::{c_char, c_int, c_long, c_uint, c_void};
            use $crate::limit::Limit;

            $crate::own_name! { mmap mmap64
            (address: *mut c_void, length: usize, protection: c_int, flags: c_int, descriptor: c_int, offset: c_long)
            -> *mut c_void = memory::mmap }
            $crate::own_name! { mremap
            (old: *mut c_void, length: usize, wanted: usize, flags: c_int, place: *mut c_void) -> *mut c_void
            = remap::mremap }
            $crate::own_name! { munmap (address: *mut c_void, length: usize) -> c_int = memory::munmap }
            $crate::own_name! { mprotect (address: *mut c_void, length: usize, protection: c_int) -> c_int
            = memory::mprotect }
            $crate::own_name! { shmat (segment: c_int, address: *const c_void, flags: c_int) -> *mut c_void
            = segment::shmat }
            $crate::own_name! { shmdt (address: *const c_void) -> c_int = segment::shmdt }
            $crate::own_name! { sbrk (increment: isize) -> *mut c_void = memory::sbrk }
            $crate::own_name! { brk (end: *mut c_void) -> c_int = memory::brk }
            $crate::own_name! { readlink (path: *const c_char, buffer: *mut c_char, size: usize) -> isize
            = itself::readlink }
            $crate::own_name! { readlinkat
            (folder: c_int, path: *const c_char, buffer: *mut c_char, size: usize) -> isize = itself::readlinkat }
            $crate::own_name! { __readlink_chk
            (path: *const c_char, buffer: *mut c_char, size: usize, room: usize) -> isize
            = itself::readlink_checked }
            $crate::own_name! { __readlinkat_chk
            (folder: c_int, path: *const c_char, buffer: *mut c_char, size: usize, room: usize) -> isize
            = itself::readlinkat_checked }
            $crate::own_name! { setrlimit setrlimit64 (resource: c_int, limit: *const Limit) -> c_int
            = stack::setrlimit }
            $crate::own_name! { prlimit prlimit64
            (process: c_int, resource: c_int, new: *const Limit, old: *mut Limit) -> c_int = stack::prlimit }
            $crate::own_name! { prctl
            (option: c_int, first: usize, second: usize, third: usize, fourth: usize) -> c_int = space::prctl }
            $crate::own_name! { open open64 (path: *const c_char, flags: c_int, mode: c_uint) -> c_int = space::open }
            $crate::own_name! { openat openat64
            (folder: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int = space::openat }
            $crate::own_name! { __open_2 __open64_2 (path: *const c_char, flags: c_int) -> c_int
            = space::open_checked }
            $crate::own_name! { __openat_2 __openat64_2 (folder: c_int, path: *const c_char, flags: c_int) -> c_int
            = space::openat_checked }
            $crate::own_name! { creat creat64 (path: *const c_char, mode: c_uint) -> c_int = space::creat }
            $crate::own_name! { fopen fopen64 (path: *const c_char, mode: *const c_char) -> *mut c_void
            = space::fopen }
            $crate::own_name! { freopen freopen64
            (path: *const c_char, mode: *const c_char, stream: *mut c_void) -> *mut c_void = space::freopen }
            $crate::own_name! { mlockall (flags: c_int) -> c_int = space::mlockall }
            $crate::own_name! { munlockall () -> c_int = space::munlockall }
            $crate::own_name! { setuid (user: c_uint) -> c_int = user::setuid }
            $crate::own_name! { seteuid (user: c_uint) -> c_int = user::seteuid }
            $crate::own_name! { setreuid (real: c_uint, effective: c_uint) -> c_int = user::setreuid }
            $crate::own_name! { setresuid (real: c_uint, effective: c_uint, saved: c_uint) -> c_int = user::setresuid }
            $crate::own_name! { setgid (group: c_uint) -> c_int = user::setgid }
            $crate::own_name! { setegid (group: c_uint) -> c_int = user::setegid }
            $crate::own_name! { setregid (real: c_uint, effective: c_uint) -> c_int = user::setregid }
            $crate::own_name! { setresgid (real: c_uint, effective: c_uint, saved: c_uint) -> c_int = user::setresgid }
        }
    };
}

/// Exports one function of this crate under one or two names.
#[doc(hidden)]
#[macro_export]
macro_rules! own_name {
    ($first:ident $second:ident $parameters:tt -> $result:ty = $module:ident::$function:ident) => {
        $crate::own_name! { $first $parameters -> $result = $module::$function }
        $crate::own_name! { $second $parameters -> $result = $module::$function }
    };
    ($name:ident ($($parameter:ident: $kind:ty),*) -> $result:ty = $module:ident::$function:ident) => {
        /// # Safety
        /// That of the C library's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($parameter: $kind),*) -> $result {
            // SAFETY: the caller's promise.
            unsafe { $crate::$module::$function($($parameter),*) }
        }
    };
}
