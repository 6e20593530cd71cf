//! Whose memory an address is. Ranks share the root's address space, and their memory
//! stays mapped after they died, so the root can look at what they left.

use cohort_base::boot::{MALLOC_LIBRARY, Touched};
use goblin::container::{Container, Ctx, Endian};
use goblin::elf::header::header64::SIZEOF_EHDR;
use goblin::elf::program_header::PT_LOAD;
use goblin::elf::program_header::program_header64::SIZEOF_PHDR;
use goblin::elf::{Elf, ProgramHeader};
use pip_load::image::Image;
use pip_load::task::crash::Crash;
use pip_load::task::stack::StackArea;
use std::ffi::OsStr;
use std::fs;
use std::io::IoSliceMut;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

use nix::sys::signal::Signal;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

/// What the root knows of a rank's memory from having made it.
#[derive(Clone, Copy, Debug)]
pub struct RankMemory {
    /// Its dynamic linker.
    pub linker: Image,
    /// Where glibc lists its loaded objects (`_r_debug`), if the linker is glibc's.
    pub debug: Option<usize>,
}

impl RankMemory {
    /// What is kept of a rank whose memory has been given back.
    pub const GONE: Self =
        Self { linker: Image { base: 0, start: 0, end: 0, entry: 0, headers: 0, headers_count: 0 }, debug: None };

    /// Where its dynamic linker, its program and its libraries lie, each once. The kernel's own object, which all ranks
    /// share, is none of them.
    #[must_use]
    pub fn images(&self) -> Vec<Range<usize>> {
        // SAFETY: no condition.
        let shared = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } as usize;
        let linker = self.linker.start..self.linker.end;
        let others = objects(self).into_iter().map(|object| object.range);
        let mut all: Vec<_> = std::iter::once(linker).chain(others).collect();
        all.retain(|range| !range.is_empty() && !range.contains(&shared));
        // The linker is in its own list too.
        all.sort_unstable_by_key(|range| range.start);
        all.dedup_by(|later, earlier| later.start < earlier.end);
        all
    }
}

/// All ranks' memory.
#[derive(Debug)]
pub struct MemoryMap<'a> {
    /// Per rank.
    pub ranks: &'a [RankMemory],
    /// Each one's rank in `MPI_COMM_WORLD`.
    pub numbers: &'a [u32],
    /// Their stacks.
    pub stacks: &'a StackArea,
}

/// Whose a mapping is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The stack of this rank of the node.
    Stack(usize),
    /// The program of this rank, or a library of it.
    Image(usize),
}

/// What begins at a null pointer ends here.
const NULL_END: usize = 4096;

/// What ends at a guard page, or without a note of ours, since no handler finds room.
pub const THREAD_OVERFLOW: &str =
    "the stack of a thread overflowed; ulimit -s, pthread_attr_setstacksize or OMP_STACKSIZE sets its size";

/// Largest frame that is taken for one.
const FRAME_MAX: usize = 1 << 30;

/// Frames of most functions are shorter.
const FRAME_USUAL: usize = 16 << 10;

/// Bytes below the stack pointer that a function may use, and a call writes to.
const RED_ZONE: usize = 256;

/// Most program headers of one object that are read, should it be damaged.
const HEADERS_MAX: u16 = 64;

/// Most objects of one rank that are followed, should a list be damaged.
const OBJECTS_MAX: usize = 4096;

/// Whether a function with this stack pointer may be putting something of its frame at an address.
fn is_near(address: usize, stack_pointer: usize) -> bool {
    address.abs_diff(stack_pointer) < FRAME_USUAL
}

impl MemoryMap<'_> {
    /// The signal that killed a rank with this process id, in words.
    #[must_use]
    pub fn describe_signal(&self, rank: usize, pid: i32, signal: i32, crash: Option<&Crash>, touched: u32) -> String {
        let name = match Signal::try_from(signal) {
            Ok(name) => format!("signal {signal} ({name})"),
            Err(_) => format!("signal {signal}"),
        };
        let Some(crash) = crash else { return name };
        if signal == libc::SIGABRT && crash.address == pid as u64 {
            return format!("{name}, by a call of abort");
        }
        if crash.code <= 0 {
            return format!("{name}, sent by process {}", crash.address);
        }
        if crash.code == libc::SI_KERNEL {
            return format!("{name}, at an address that no pointer can have");
        }
        let address = crash.address as usize;
        let place = self.describe(address);
        let by = match self.is_runtime(crash.instruction() as usize) {
            true if touched == Touched::Send as u32 => "; MPI accessed it: it is in the buffer of a send of this rank",
            true if touched == Touched::Receive as u32 => {
                "; MPI accessed it: it is in the buffer of a receive of this rank"
            }
            true => "; MPI accessed it, for a message of this rank or of one that it helped",
            false => "",
        };
        let overflows = self.is_overflow(rank, address, crash.stack_pointer() as usize);
        let of_thread = format!(" ({THREAD_OVERFLOW})");
        let fault = match (signal, address) {
            (libc::SIGSEGV, 0..NULL_END) => " (null pointer)",
            (libc::SIGSEGV, _) if overflows && !place.ends_with(')') => {
                " (stack overflow; COHORT_STACKSIZE sets the size)"
            }
            (libc::SIGSEGV, _)
                if place.ends_with("(PROT_NONE)") && is_near(address, crash.stack_pointer() as usize) =>
            {
                of_thread.as_str()
            }
            (libc::SIGBUS, _) => " (behind the end of a mapped file, or not aligned)",
            (libc::SIGILL, _) => " (no instruction of this CPU)",
            (libc::SIGFPE, _) => " (division by zero, or overflow)",
            _ => "",
        };
        format!("{name}, address {address:#x}, in memory of: {place}{by}{fault}")
    }

    /// Says whose memory `address` is.
    #[must_use]
    pub fn describe(&self, address: usize) -> String {
        if let Some(text) = self.stack(address) {
            return text;
        }
        let Some(mapping) = mapping_of(address) else {
            return match access_to(address) {
                None => "unmapped".to_owned(),
                Some(_) => "nobody: it is protected (PROT_NONE)".to_owned(),
            };
        };
        if let Some(text) = self.object(address) {
            return text;
        }
        match mapping.name.as_str() {
            "" => {
                let heap = self.heap(address, &mapping);
                match access_to(address) {
                    Some(Access::Read) => format!("{heap}, which is protected (PROT_READ)"),
                    _ => heap,
                }
            }
            "[heap]" | "[stack]" => "pip-exec".to_owned(),
            name => name.to_owned(),
        }
    }

    /// Whether an instruction is the runtime's or of a library of the root's, and so of no rank's own code.
    #[must_use]
    pub fn is_runtime(&self, instruction: usize) -> bool {
        let mapping = mapping_of(instruction);
        mapping.is_some_and(|mapping| mapping.name.starts_with('/')) && self.object(instruction).is_none()
    }

    /// The memory of which it is known which rank's it is.
    #[must_use]
    pub fn parts(&self) -> Vec<(Range<usize>, Part)> {
        let mut parts = Vec::new();
        for (rank, memory) in self.ranks.iter().enumerate() {
            parts.push((self.stacks.range(rank), Part::Stack(rank)));
            parts.push((memory.linker.start..memory.linker.end, Part::Image(rank)));
            let images = objects(memory).into_iter();
            parts.extend(images.map(|object| (object.range, Part::Image(rank))));
        }
        parts
    }

    /// Whether a fault at `address` comes from a stack that a rank's frames have left: the frame that does not fit may
    /// be much larger than the guard.
    #[must_use]
    pub fn is_overflow(&self, rank: usize, address: usize, stack_pointer: usize) -> bool {
        let stack = self.stacks.range(rank);
        let below = stack.start.saturating_sub(FRAME_MAX)..stack.start;
        self.stacks.guard(rank).contains(&address)
            || (below.contains(&stack_pointer) && (stack_pointer - RED_ZONE..stack.start).contains(&address))
    }

    fn stack(&self, address: usize) -> Option<String> {
        (0..self.ranks.len()).find_map(|rank| {
            if self.stacks.range(rank).contains(&address) {
                Some(format!("rank {}'s stack", self.numbers[rank]))
            } else if self.stacks.guard(rank).contains(&address) {
                let number = self.numbers[rank];
                Some(format!("rank {number}'s stack guard (stack overflow; COHORT_STACKSIZE sets the size)"))
            } else {
                None
            }
        })
    }

    fn object(&self, address: usize) -> Option<String> {
        self.numbers.iter().zip(self.ranks).find_map(|(rank, memory)| {
            if (memory.linker.start..memory.linker.end).contains(&address) {
                return Some(format!("rank {rank}'s dynamic linker"));
            }
            let objects = objects(memory);
            let index = objects.iter().position(|object| object.range.contains(&address))?;
            Some(match index {
                0 => format!("rank {rank}'s program"),
                _ => format!("rank {rank}'s library {}", objects[index].name),
            })
        })
    }

    /// Attributes anonymous memory to the rank whose libc, or other allocator of ours, holds the nearest pointer into
    /// the same mapping: an allocator's bins point into its own heap.
    fn heap(&self, address: usize, mapping: &Mapping) -> String {
        let mut nearest: Option<(usize, u32)> = None;
        for (&rank, memory) in self.numbers.iter().zip(self.ranks) {
            for object in objects(memory)
                .iter()
                .filter(|object| ["libc.so", MALLOC_LIBRARY].iter().any(|name| object.name.starts_with(name)))
            {
                for pointer in words(object.data.clone()) {
                    let distance = address.abs_diff(pointer);
                    if mapping.range.contains(&pointer) && nearest.is_none_or(|(d, _)| distance < d) {
                        nearest = Some((distance, rank));
                    }
                }
            }
        }
        match nearest {
            Some((_, rank)) => format!("rank {rank}'s heap"),
            None => "a heap or thread stack (anonymous memory)".to_owned(),
        }
    }
}

/// A run of adjacent mappings with the same name.
struct Mapping {
    range: Range<usize>,
    name: String,
}

/// The run of mappings around an accessible address. Anonymous memory is split by
/// `mprotect` and yet belongs together.
fn mapping_of(address: usize) -> Option<Mapping> {
    let maps = fs::read("/proc/self/maps").ok()?;
    let mut run: Option<Mapping> = None;
    for mapping in maps.split(|&byte| byte == b'\n').filter_map(parse_mapping) {
        match &mut run {
            Some(run) if run.range.end == mapping.range.start && run.name == mapping.name => {
                run.range.end = mapping.range.end;
            }
            Some(run) if run.range.contains(&address) => break,
            _ => run = Some(mapping),
        }
    }
    run.filter(|run| run.range.contains(&address))
}

/// What a mapping lets everybody do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    No,
    Read,
    Write,
}

/// What may be done at an address, if something is mapped there.
fn access_to(address: usize) -> Option<Access> {
    let maps = fs::read("/proc/self/maps").ok()?;
    let mut lines = maps.split(|&byte| byte == b'\n').map(String::from_utf8_lossy);
    lines.find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        let access = match rest.get(..2)? {
            "--" => Access::No,
            "r-" => Access::Read,
            _ => Access::Write,
        };
        (number(start)?..number(end)?).contains(&address).then_some(access)
    })
}

/// One accessible line of `/proc/self/maps`.
fn parse_mapping(line: &[u8]) -> Option<Mapping> {
    let line = String::from_utf8_lossy(line);
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let range = usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?;
    let accessible = !fields.next()?.starts_with("---");
    let name = fields.nth(3).unwrap_or_default().trim().to_owned();
    accessible.then_some(Mapping { range, name })
}

/// A shared object of a rank.
struct Object {
    range: Range<usize>,
    /// Its last segment: data.
    data: Range<usize>,
    /// File name without folders.
    name: String,
}

/// Reads glibc's list of a rank's loaded objects, the program first. The rank may have
/// died while changing it, so nothing is dereferenced: the kernel copies, or refuses.
fn objects(memory: &RankMemory) -> Vec<Object> {
    let mut objects = Vec::new();
    let Some(debug) = memory.debug else {
        return objects;
    };
    // struct r_debug { int version; struct link_map *map; ... }
    let mut next = read_words::<2>(debug).map_or(0, |words| words[1]);
    while next != 0 && objects.len() < OBJECTS_MAX {
        // struct link_map { l_addr; char *l_name; l_ld; l_next; ... }
        let Some([base, name, _, following]) = read_words::<4>(next) else {
            break;
        };
        next = following;
        let Some((range, data)) = extent(base) else {
            continue;
        };
        let name = read_text(name);
        let name = name.rsplit('/').next().unwrap_or_default().to_owned();
        objects.push(Object { range, data, name });
    }
    objects
}

/// The addresses of the object whose ELF header is at `base`, and those of its last
/// segment.
fn extent(base: usize) -> Option<(Range<usize>, Range<usize>)> {
    let mut bytes = [0; SIZEOF_EHDR];
    if !read_bytes(base, &mut bytes) {
        return None;
    }
    let header = Elf::parse_header(&bytes).ok()?;
    let count = usize::from(header.e_phnum.min(HEADERS_MAX));
    let mut bytes = vec![0; count * SIZEOF_PHDR];
    if !read_bytes(base.checked_add(header.e_phoff as usize)?, &mut bytes) {
        return None;
    }
    let context = Ctx::new(Container::Big, Endian::Little);
    let mut last = None;
    for entry in ProgramHeader::parse(&bytes, 0, count, context).ok()? {
        if entry.p_type == PT_LOAD {
            let start = base.checked_add(entry.p_vaddr as usize)?;
            last = Some(start..start.checked_add(entry.p_memsz as usize)?);
        }
    }
    let last = last?;
    Some((base..last.end, last))
}

fn words(range: Range<usize>) -> Vec<usize> {
    let mut bytes = vec![0; range.len().min(1 << 20) / 8 * 8];
    if !read_bytes(range.start.next_multiple_of(8), &mut bytes) {
        return Vec::new();
    }
    bytes.chunks_exact(8).filter_map(|word| word.try_into().ok().map(usize::from_ne_bytes)).collect()
}

/// Copies words from an address that may be anything.
pub fn read_words<const N: usize>(address: usize) -> Option<[usize; N]> {
    let mut bytes = vec![0; N * 8];
    read_bytes(address, &mut bytes)
        .then(|| std::array::from_fn(|index| bytes[index * 8..][..8].try_into().map_or(0, usize::from_ne_bytes)))
}

fn read_text(address: usize) -> String {
    let mut text = Vec::new();
    while text.len() < 4096 {
        let mut byte = [0];
        if !read_bytes(address + text.len(), &mut byte) || byte[0] == 0 {
            break;
        }
        text.push(byte[0]);
    }
    OsStr::from_bytes(&text).to_string_lossy().into_owned()
}

/// Copies from an address that may be anything; `false` unless all of it is readable.
fn read_bytes(address: usize, bytes: &mut [u8]) -> bool {
    let len = bytes.len();
    let remote = [RemoteIoVec { base: address, len }];
    process_vm_readv(Pid::this(), &mut [IoSliceMut::new(bytes)], &remote) == Ok(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps() {
        let line = b"7f00-7f10 r-xp 00000000 08:01 123     /usr/lib/lib x.so";
        let mapping = parse_mapping(line).expect("accessible");
        assert_eq!(mapping.range, 0x7f00..0x7f10);
        assert_eq!(mapping.name, "/usr/lib/lib x.so");
        assert_eq!(parse_mapping(b"1000-2000 rw-p 00000000 00:00 0").map(|m| m.name), Some(String::new()));
        assert!(parse_mapping(b"1000-2000 ---p 00000000 00:00 0").is_none());
        assert!(parse_mapping(b"").is_none());
    }

    #[test]
    fn any_address_may_be_read() {
        assert_eq!(read_words::<1>(0), None);
        assert_eq!(read_words::<1>(usize::MAX - 3), None);
        let word = 42_usize;
        assert_eq!(read_words::<1>(&raw const word as usize), Some([42]));
        assert_eq!(read_text(c"text".as_ptr() as usize), "text");
    }

    #[test]
    fn stacks_and_holes_are_told_apart() {
        let stacks = StackArea::reserve(1, 1 << 16).expect("room");
        let image = Image { base: 0, start: 0, end: 0, entry: 0, headers: 0, headers_count: 0 };
        let ranks = [RankMemory { linker: image, debug: None }];
        let map = MemoryMap { ranks: &ranks, numbers: &[0], stacks: &stacks };
        assert_eq!(map.describe(stacks.range(0).start), "rank 0's stack");
        assert!(map.describe(stacks.guard(0).start).contains("stack overflow"));
        assert_eq!(map.describe(16), "unmapped");
        let own = &raw const map as usize;
        assert!(map.describe(own).contains("anonymous") || map.describe(own) == "pip-exec");
    }
}
