//! Which checker the compiler has built into a file, by the names in its table of dynamic strings.

/// What instrumented code calls first.
const FIRST_CALLS: [(&[u8], &str); 5] = [
    (b"__asan_init", "AddressSanitizer"),
    (b"__hwasan_init", "HWAddressSanitizer"),
    (b"__lsan_init", "LeakSanitizer"),
    (b"__msan_init", "MemorySanitizer"),
    (b"__tsan_init", "ThreadSanitizer"),
];

/// What every checker's library asks for if the program has it. A program that GCC has linked to a static one shows no
/// first call.
const LIBRARY: &[u8] = b"__sanitizer_symbolize_code";

/// What libraries that look for leaks ask for besides.
const LEAKS: &[u8] = b"__lsan_is_turned_off";

/// One of the many functions that those put themselves before which see all memory; the one for undefined behaviour
/// does not, and needs nothing of us.
const INTERCEPTED: &[u8] = b"__isoc99_vscanf";

/// The checker that sees all of a program's memory, by its name.
pub fn named_in(strings: &[u8]) -> Option<&'static str> {
    let (mut library, mut leaks, mut intercepted) = (false, false, false);
    // A name may be the end of another one.
    for text in strings.split(|&byte| byte == 0) {
        if let Some((_, name)) = FIRST_CALLS.iter().find(|(call, _)| text.ends_with(call)) {
            return Some(name);
        }
        library |= text.ends_with(LIBRARY);
        leaks |= text.ends_with(LEAKS);
        intercepted |= text.ends_with(INTERCEPTED);
    }
    match (library, leaks, intercepted) {
        (true, true, true) => Some("AddressSanitizer"),
        (true, true, false) => Some("LeakSanitizer"),
        (true, false, true) => Some("ThreadSanitizer"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::named_in;

    #[test]
    fn dynamic_and_static_libraries_are_recognised() {
        assert_eq!(named_in(b"\0malloc\0__asan_init\0"), Some("AddressSanitizer"));
        assert_eq!(named_in(b"\0x__tsan_init\0free\0"), Some("ThreadSanitizer"));
        let linked = b"\0__isoc99_vscanf\0__sanitizer_symbolize_code\0";
        assert_eq!(named_in(linked), Some("ThreadSanitizer"));
        let linked = b"\0__lsan_is_turned_off\0__sanitizer_symbolize_code\0";
        assert_eq!(named_in(linked), Some("LeakSanitizer"));
    }

    #[test]
    fn others_are_left_alone() {
        for strings in [
            &b""[..],
            b"\0__isoc99_vscanf\0malloc\0",
            b"\0__ubsan_handle_add_overflow\0__sanitizer_symbolize_code\0",
            b"\0__asan_initialised\0",
        ] {
            assert_eq!(named_in(strings), None, "{strings:?}");
        }
    }
}
