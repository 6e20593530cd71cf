//! Stacks of ranks, and what the kernel would have put on them.

use crate::image::{Image, reserve};
use cohort_arch::page;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

/// Inaccessible bytes on either side of a stack: stops an overflow, and keeps the
/// kernel from merging the stack with a neighbour, whose bounds glibc would then
/// report as the stack's. It is larger than most frames, so that one which does not fit touches
/// the guard and not the stack of another rank. The first is room besides, into which the stack of a program grows that
/// raises its limit at run time (`setrlimit`; the MPI library sees to it). Where address space is limited (`ulimit -v`)
/// it is small.
const GUARDS: [usize; 3] = [4 << 30, 64 << 20, 1 << 20];

/// The stacks of all ranks: one reservation for those that start together, so that finding room costs one system
/// call and each stack two map entries.
#[derive(Debug)]
pub struct StackArea {
    stack_size: usize,
    parts: Vec<Part>,
}

/// Stacks that were reserved together.
#[derive(Debug)]
struct Part {
    start: usize,
    guard: usize,
    /// The number of the first one.
    first: usize,
    count: usize,
    /// Those of them that were given back.
    closed: Vec<usize>,
}

impl StackArea {
    /// Reserves `count` stacks of `stack_size` bytes (rounded up to pages). Memory is
    /// taken only when touched.
    ///
    /// # Errors
    /// The address space has no room.
    pub fn reserve(count: usize, stack_size: usize) -> io::Result<Self> {
        let stack_size = stack_size.next_multiple_of(page());
        let mut this = Self { stack_size, parts: Vec::new() };
        this.extend(0, count)?;
        Ok(this)
    }

    /// Reserves `count` more, from number `first` on, which are not there or have all been given back.
    ///
    /// # Errors
    /// The address space has no room.
    pub fn extend(&mut self, first: usize, count: usize) -> io::Result<()> {
        let mut found = Err(io::Error::from_raw_os_error(libc::ENOMEM));
        for guard in GUARDS {
            let each = (self.stack_size + guard).checked_mul(count);
            let Some(len) = each.and_then(|len| len.checked_add(guard)) else {
                continue;
            };
            let flags = libc::MAP_NORESERVE | libc::MAP_STACK;
            found = reserve(len, libc::PROT_NONE, flags).map(|start| (start, guard));
            if found.is_ok() {
                break;
            }
        }
        let (start, guard) = found?;
        self.parts.push(Part { start: start as usize, guard, first, count, closed: Vec::new() });
        Ok(())
    }

    /// Bytes of one stack.
    #[must_use]
    pub fn stack_size(&self) -> usize {
        self.stack_size
    }

    /// Where a stack is that was not given back, among those that were reserved with it.
    fn part(&self, index: usize) -> Option<&Part> {
        let has = |part: &&Part| (part.first..part.first + part.count).contains(&index);
        self.parts.iter().rfind(has).filter(|part| !part.closed.contains(&index))
    }

    /// The addresses of stack `index`; none if it was given back.
    #[must_use]
    pub fn range(&self, index: usize) -> Range<usize> {
        let Some(Part { start, guard, first, .. }) = self.part(index) else {
            return 0..0;
        };
        let start = start + guard + (index - first) * (self.stack_size + guard);
        start..start + self.stack_size
    }

    /// The addresses of the guard below stack `index`.
    #[must_use]
    pub fn guard(&self, index: usize) -> Range<usize> {
        let stack = self.range(index);
        stack.start.saturating_sub(self.part(index).map_or(0, |part| part.guard))..stack.start
    }

    /// Gives stack `index` back, and the guard below it.
    ///
    /// # Safety
    /// Nobody uses it any more.
    pub unsafe fn close(&mut self, index: usize) {
        let (stack, guard) = (self.range(index), self.guard(index));
        let has = |part: &Part| (part.first..part.first + part.count).contains(&index);
        let Some(at) = self.parts.iter().rposition(has).filter(|_| !stack.is_empty()) else {
            return;
        };
        let part = &mut self.parts[at];
        part.closed.push(index);
        // SAFETY: a part of the reservation, by the caller's promise unused.
        unsafe { libc::munmap(guard.start as *mut libc::c_void, stack.end - guard.start) };
        if part.closed.len() == part.count {
            let above = part.start + part.count * (self.stack_size + part.guard);
            // SAFETY: the guard above the last of them, which is nobody's.
            unsafe { libc::munmap(above as *mut libc::c_void, part.guard) };
            self.parts.remove(at);
        }
    }

    /// Makes stack `index` usable.
    ///
    /// # Errors
    /// The system call fails, for instance for want of map entries.
    pub fn open(&self, index: usize) -> io::Result<Range<usize>> {
        let range = self.range(index);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // It never grows by itself, as the guard is in its way. But the dynamic linker makes a stack executable, for
        // programs that ask for that, by a call which works for such memory only.
        let kind = libc::MAP_FIXED | libc::MAP_GROWSDOWN | libc::MAP_STACK | libc::MAP_NORESERVE;
        let kind = kind | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let start = range.start as *mut libc::c_void;
        // SAFETY: the range belongs to this reservation and nobody uses it yet.
        let result = unsafe { libc::mmap(start, range.len(), protection, kind, -1, 0) };
        if result == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // Older kernels give huge pages to MAP_STACK memory, 2 MiB for each rank's few
        // KiB. A kernel without huge pages refuses the advice, which is as good.
        // SAFETY: the advice changes no content; the range was mapped just now.
        let _ = unsafe { libc::madvise(start, range.len(), libc::MADV_NOHUGEPAGE) };
        Ok(range)
    }
}

/// The strings that a rank starts with: its dynamic linker's argument list (which
/// names the program) and its environment.
#[derive(Debug)]
pub struct Strings {
    arguments: Vec<CString>,
    environment: Vec<CString>,
    execfn: CString,
}

impl Strings {
    /// `execfn` is the path of the dynamic linker.
    ///
    /// # Errors
    /// A string holds a NUL byte.
    pub fn new<'a>(
        arguments: impl IntoIterator<Item = &'a OsStr>,
        environment: impl IntoIterator<Item = &'a OsStr>,
        execfn: &OsStr,
    ) -> Result<Self, std::ffi::NulError> {
        let strings = |list: &mut dyn Iterator<Item = &'a OsStr>| {
            list.map(|text| CString::new(text.as_bytes())).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            arguments: strings(&mut arguments.into_iter())?,
            environment: strings(&mut environment.into_iter())?,
            execfn: CString::new(execfn.as_bytes())?,
        })
    }

    /// The file to execute: the dynamic linker.
    #[must_use]
    pub fn file(&self) -> &CStr {
        &self.execfn
    }

    /// Its arguments.
    #[must_use]
    pub fn arguments(&self) -> &[CString] {
        &self.arguments
    }

    /// Its environment.
    #[must_use]
    pub fn environment(&self) -> &[CString] {
        &self.environment
    }

    /// Bytes that the initial stack takes, not counting alignment.
    #[must_use]
    pub fn stack_bytes(&self) -> usize {
        let all = self.arguments.iter().chain(&self.environment);
        let text: usize = all.map(|text| text.as_bytes_with_nul().len() + 8).sum();
        text + self.execfn.as_bytes_with_nul().len() + 2048
    }
}

/// Entries of the auxiliary vector that are the same for every rank: the root's own,
/// without those that [`build`] makes afresh.
#[derive(Clone, Debug)]
pub struct InheritedAuxiliary(Vec<(u64, u64)>);

/// Entries of the root's vector that describe the root's own program.
const OWN_ENTRIES: [u64; 8] = [
    libc::AT_PHDR,
    libc::AT_PHENT,
    libc::AT_PHNUM,
    libc::AT_BASE,
    libc::AT_ENTRY,
    libc::AT_RANDOM,
    libc::AT_EXECFN,
    libc::AT_SECURE,
];

impl InheritedAuxiliary {
    /// Reads the root's vector.
    ///
    /// # Errors
    /// `/proc` is not mounted.
    pub fn of_this_process() -> io::Result<Self> {
        let bytes = std::fs::read("/proc/self/auxv")?;
        let word = |chunk: &[u8]| chunk.try_into().map_or(0, u64::from_ne_bytes);
        let entries = bytes
            .chunks_exact(16)
            .map(|entry| (word(&entry[..8]), word(&entry[8..])))
            .take_while(|&(kind, _)| kind != libc::AT_NULL)
            .filter(|(kind, _)| !OWN_ENTRIES.contains(kind))
            .collect();
        Ok(Self(entries))
    }
}

/// What one rank gets beyond [`Strings`].
#[derive(Clone, Copy, Debug)]
pub struct Extra<'a> {
    /// Entries of its environment.
    pub variables: &'a [CString],
    /// An entry of its auxiliary vector.
    pub auxiliary: (u64, u64),
}

/// Writes what `execve` would have written to the end of a stack, with what is this rank's own, and returns the
/// initial stack pointer.
///
/// # Errors
/// The strings take more than half of the stack (`E2BIG`), or there are no random bytes.
///
/// # Safety
/// `stack` is writable and used by nobody.
pub unsafe fn build(
    stack: Range<usize>,
    strings: &Strings,
    linker: &Image,
    inherited: &InheritedAuxiliary,
    extra: Extra<'_>,
) -> io::Result<usize> {
    if strings.stack_bytes() > stack.len() / 2 {
        return Err(io::Error::from_raw_os_error(libc::E2BIG));
    }
    let mut random = [0_u8; 16];
    // SAFETY: the buffer is valid for its length.
    let got = unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), 0) };
    if got != random.len() as isize {
        return Err(io::Error::last_os_error());
    }
    let mut top = stack.end - 16;
    let mut push = |bytes: &[u8]| {
        top -= bytes.len();
        // SAFETY: the size check above keeps `top` inside the caller's stack.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), top as *mut u8, bytes.len()) };
        top as u64
    };
    let execfn = push(strings.execfn.as_bytes_with_nul());
    let mut push_all =
        |list: &[CString]| -> Vec<u64> { list.iter().map(|text| push(text.as_bytes_with_nul())).collect() };
    let mut environment = push_all(&strings.environment);
    let arguments = push_all(&strings.arguments);
    let random = push(&random);
    environment.extend(extra.variables.iter().map(|text| push(text.to_bytes_with_nul())));

    let mut words = vec![arguments.len() as u64];
    words.extend(&arguments);
    words.push(0);
    words.extend(&environment);
    words.push(0);
    for (kind, value) in &inherited.0 {
        words.extend([kind, value]);
    }
    for (kind, value) in [
        (libc::AT_PHDR, linker.headers as u64),
        (libc::AT_PHENT, goblin::elf64::program_header::SIZEOF_PHDR as u64),
        (libc::AT_PHNUM, linker.headers_count as u64),
        (libc::AT_BASE, 0),
        (libc::AT_ENTRY, linker.entry as u64),
        (libc::AT_SECURE, 0),
        (libc::AT_RANDOM, random),
        (libc::AT_EXECFN, execfn),
        extra.auxiliary,
        (libc::AT_NULL, 0),
    ] {
        words.extend([kind, value]);
    }
    let pointer = (top - words.len() * 8) & !15;
    // SAFETY: as above; the words end at or below `top`.
    unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), pointer as *mut u64, words.len()) };
    Ok(pointer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_apart_and_usable() {
        let area = StackArea::reserve(3, 100_000).expect("room");
        assert_eq!(area.stack_size() % page(), 0);
        for index in 0..3 {
            let range = area.open(index).expect("opens");
            assert!(range.len() >= 100_000);
            assert_eq!(area.guard(index).end, range.start);
            // SAFETY: the last word of a stack that was opened just now.
            unsafe { ((range.end - 8) as *mut u64).write_volatile(index as u64) };
        }
        assert!(area.range(0).end + area.guard(1).len() <= area.range(1).start);
    }

    #[test]
    fn numbers_are_used_again() {
        let mut area = StackArea::reserve(1, 1 << 16).expect("room");
        for _ in 0..3 {
            area.extend(1, 2).expect("room");
            assert!(!area.open(1).expect("opens").is_empty());
            // SAFETY: nobody uses them.
            unsafe {
                area.close(1);
                assert!(area.range(1).is_empty() && area.guard(1).is_empty() && !area.range(2).is_empty());
                area.close(2);
                area.close(2);
            }
            assert_eq!((area.parts.len(), area.range(2)), (1, 0..0));
        }
        assert!(!area.range(0).is_empty());
    }

    #[test]
    fn the_initial_stack_is_what_execve_makes() {
        let area = StackArea::reserve(1, 1 << 20).expect("room");
        let stack = area.open(0).expect("opens");
        let strings =
            Strings::new([OsStr::new("ld.so"), OsStr::new("p")], [OsStr::new("A=b")], OsStr::new("l")).expect("no NUL");
        let image = Image { base: 0, start: 0, end: 0, entry: 7, headers: 8, headers_count: 9 };
        let inherited = InheritedAuxiliary::of_this_process().expect("proc");
        let extra = Extra { variables: &[c"C=d".into()], auxiliary: (0x1234_5678_9abc, 42) };
        // SAFETY: the stack was opened just now.
        let pointer = unsafe { build(stack, &strings, &image, &inherited, extra) };
        let pointer = pointer.expect("fits") as *const u64;
        assert_eq!(pointer as usize % 16, 0);
        // SAFETY: `build` wrote a complete vector from here on.
        let word = |index: usize| unsafe { *pointer.add(index) };
        assert_eq!(word(0), 2);
        // SAFETY: argument pointers lead to strings that end with NUL.
        let first = unsafe { std::ffi::CStr::from_ptr(word(1) as *const _) };
        assert_eq!(first.to_bytes(), b"ld.so");
        assert_eq!((word(3), word(6)), (0, 0));
        // SAFETY: entries of the environment lead to strings that end with NUL.
        let last = unsafe { std::ffi::CStr::from_ptr(word(5) as *const _) };
        assert_eq!(last, c"C=d");
        let entries: Vec<(u64, u64)> = (7..)
            .step_by(2)
            .map(|index| (word(index), word(index + 1)))
            .take_while(|&(kind, _)| kind != libc::AT_NULL)
            .collect();
        let value = |kind| entries.iter().find(|entry| entry.0 == kind).map(|entry| entry.1);
        assert_eq!(value(libc::AT_ENTRY), Some(7));
        assert_eq!(value(0x1234_5678_9abc), Some(42));
        assert_eq!(value(libc::AT_SECURE), Some(0));
        assert!(value(libc::AT_SYSINFO_EHDR).is_some());
    }

    #[test]
    fn strings_longer_than_half_the_stack_are_refused() {
        let area = StackArea::reserve(1, 1 << 16).expect("room");
        let stack = area.open(0).expect("opens");
        let long = "x".repeat(1 << 16);
        let strings = Strings::new([OsStr::new(&long)], [], OsStr::new("l")).expect("no NUL");
        let image = Image { base: 0, start: 0, end: 0, entry: 0, headers: 0, headers_count: 0 };
        let inherited = InheritedAuxiliary::of_this_process().expect("proc");
        let extra = Extra { variables: &[], auxiliary: (1, 1) };
        // SAFETY: the stack was opened just now.
        let result = unsafe { build(stack, &strings, &image, &inherited, extra) };
        assert_eq!(result.unwrap_err().raw_os_error(), Some(libc::E2BIG));
    }
}
