//! The names under which a facade exports what takes the place of the C library's functions.

/// Exports them; once in each library that programs are linked to.
#[macro_export]
macro_rules! own_names {
    () => {
        /// # Safety
        /// That of the C library's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn mmap(
            address: *mut ::core::ffi::c_void,
            length: usize,
            protection: ::core::ffi::c_int,
            flags: ::core::ffi::c_int,
            descriptor: ::core::ffi::c_int,
            offset: ::core::ffi::c_long,
        ) -> *mut ::core::ffi::c_void {
            // SAFETY: the caller's promise.
            unsafe { $crate::memory::mmap(address, length, protection, flags, descriptor, offset) }
        }

        /// # Safety
        /// That of the C library's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn mmap64(
            address: *mut ::core::ffi::c_void,
            length: usize,
            protection: ::core::ffi::c_int,
            flags: ::core::ffi::c_int,
            descriptor: ::core::ffi::c_int,
            offset: ::core::ffi::c_long,
        ) -> *mut ::core::ffi::c_void {
            // SAFETY: the caller's promise.
            unsafe { $crate::memory::mmap(address, length, protection, flags, descriptor, offset) }
        }

        /// # Safety
        /// That of the C library's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn munmap(address: *mut ::core::ffi::c_void, length: usize) -> ::core::ffi::c_int {
            // SAFETY: the caller's promise.
            unsafe { $crate::memory::munmap(address, length) }
        }

        /// # Safety
        /// That of the C library's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn sbrk(increment: isize) -> *mut ::core::ffi::c_void {
            // SAFETY: the caller's promise.
            unsafe { $crate::memory::sbrk(increment) }
        }

        /// # Safety
        /// That of the C library's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn brk(end: *mut ::core::ffi::c_void) -> ::core::ffi::c_int {
            // SAFETY: the caller's promise.
            unsafe { $crate::memory::brk(end) }
        }

        /// # Safety
        /// That of the C library's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn readlink(
            path: *const ::core::ffi::c_char,
            buffer: *mut ::core::ffi::c_char,
            size: usize,
        ) -> isize {
            // SAFETY: the caller's promise.
            unsafe { $crate::itself::readlink(path, buffer, size) }
        }

        /// # Safety
        /// That of the C library's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn readlinkat(
            folder: ::core::ffi::c_int,
            path: *const ::core::ffi::c_char,
            buffer: *mut ::core::ffi::c_char,
            size: usize,
        ) -> isize {
            // SAFETY: the caller's promise.
            unsafe { $crate::itself::readlinkat(folder, path, buffer, size) }
        }

        /// # Safety
        /// That of the C library's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn setrlimit(
            resource: ::core::ffi::c_int,
            limit: *const $crate::limit::Limit,
        ) -> ::core::ffi::c_int {
            // SAFETY: the caller's promise.
            unsafe { $crate::stack::setrlimit(resource, limit) }
        }

        /// # Safety
        /// That of the C library's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn setrlimit64(
            resource: ::core::ffi::c_int,
            limit: *const $crate::limit::Limit,
        ) -> ::core::ffi::c_int {
            // SAFETY: the caller's promise.
            unsafe { $crate::stack::setrlimit(resource, limit) }
        }

        /// # Safety
        /// That of the C library's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn __readlink_chk(
            path: *const ::core::ffi::c_char,
            buffer: *mut ::core::ffi::c_char,
            size: usize,
            room: usize,
        ) -> isize {
            // SAFETY: the caller's promise.
            unsafe { $crate::itself::readlink_checked(path, buffer, size, room) }
        }

        /// # Safety
        /// That of the C library's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn __readlinkat_chk(
            folder: ::core::ffi::c_int,
            path: *const ::core::ffi::c_char,
            buffer: *mut ::core::ffi::c_char,
            size: usize,
            room: usize,
        ) -> isize {
            // SAFETY: the caller's promise.
            unsafe { $crate::itself::readlinkat_checked(folder, path, buffer, size, room) }
        }

        /// # Safety
        /// That of the C library's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn prctl(
            option: ::core::ffi::c_int,
            first: usize,
            second: usize,
            third: usize,
            fourth: usize,
        ) -> ::core::ffi::c_int {
            // SAFETY: the caller's promise.
            unsafe { $crate::space::prctl(option, [first, second, third, fourth]) }
        }

        /// # Safety
        /// That of the C library's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn open(
            path: *const ::core::ffi::c_char,
            flags: ::core::ffi::c_int,
            mode: ::core::ffi::c_uint,
        ) -> ::core::ffi::c_int {
            // SAFETY: the caller's promise.
            unsafe { $crate::space::open(path, flags, mode) }
        }

        /// # Safety
        /// That of the C library's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn open64(
            path: *const ::core::ffi::c_char,
            flags: ::core::ffi::c_int,
            mode: ::core::ffi::c_uint,
        ) -> ::core::ffi::c_int {
            // SAFETY: the caller's promise.
            unsafe { $crate::space::open(path, flags, mode) }
        }

        /// # Safety
        /// That of the C library's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn openat(
            folder: ::core::ffi::c_int,
            path: *const ::core::ffi::c_char,
            flags: ::core::ffi::c_int,
            mode: ::core::ffi::c_uint,
        ) -> ::core::ffi::c_int {
            // SAFETY: the caller's promise.
            unsafe { $crate::space::openat(folder, path, flags, mode) }
        }

        /// # Safety
        /// That of the C library's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn openat64(
            folder: ::core::ffi::c_int,
            path: *const ::core::ffi::c_char,
            flags: ::core::ffi::c_int,
            mode: ::core::ffi::c_uint,
        ) -> ::core::ffi::c_int {
            // SAFETY: the caller's promise.
            unsafe { $crate::space::openat(folder, path, flags, mode) }
        }

        /// # Safety
        /// That of the C library's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn fopen(
            path: *const ::core::ffi::c_char,
            mode: *const ::core::ffi::c_char,
        ) -> *mut ::core::ffi::c_void {
            // SAFETY: the caller's promise.
            unsafe { $crate::space::fopen(path, mode) }
        }

        /// # Safety
        /// That of the C library's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn fopen64(
            path: *const ::core::ffi::c_char,
            mode: *const ::core::ffi::c_char,
        ) -> *mut ::core::ffi::c_void {
            // SAFETY: the caller's promise.
            unsafe { $crate::space::fopen(path, mode) }
        }
    };
}
