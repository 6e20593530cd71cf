//! Reads an ELF file into a [`LoadPlan`]: a pure function of its bytes.
//!
//! Nothing here touches the system, and no input makes it panic: every offset and
//! length of the file is hostile until it has been compared with the file's size.
#![deny(unsafe_code)]

#[cfg(test)]
mod fuzz;
mod sanitizer;
#[cfg(test)]
mod tests;

use core::fmt;
use core::ops::Range;
use goblin::elf::dynamic::{DT_NEEDED, DT_NULL, DT_RPATH, DT_RUNPATH, DT_STRSZ, DT_STRTAB};
use goblin::elf::header::{self, EI_CLASS, EI_DATA, Header};
use goblin::elf::program_header::{PF_R, PF_W, PF_X, PT_DYNAMIC, PT_INTERP, PT_LOAD, PT_PHDR, PT_TLS, ProgramHeader};
use goblin::elf64::header::SIZEOF_EHDR;

/// Bytes of a page; segments are mapped in its multiples.
fn page() -> u64 {
    cohort_arch::page() as u64
}

/// The least page that a kernel may have.
const LEAST_PAGE: u64 = 4096;

/// End of the user half of the address space; no segment may reach beyond it.
const ADDRESS_LIMIT: u64 = 1 << 47;

/// Most program headers that a file may have (the kernel's own limit is 64 KiB of them).
const HEADERS_MAX: usize = 1024;

/// Most dynamic entries that are looked at.
const DYNAMIC_MAX: usize = 16 << 10;

/// One `PT_LOAD` segment. Addresses are relative to the load base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First byte's address.
    pub address: u64,
    /// Bytes in memory.
    pub memory_len: u64,
    /// First byte's offset in the file; congruent to `address` modulo the page.
    pub file_offset: u64,
    /// Bytes in the file; the rest up to `memory_len` is zero.
    pub file_len: u64,
    /// May be read.
    pub read: bool,
    /// May be written.
    pub write: bool,
    /// May be executed.
    pub execute: bool,
}

/// What is needed to map and start a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadPlan {
    /// Segments in ascending order of address, without overlap; two may have a page of the file in common.
    pub segments: Vec<Segment>,
    /// Page-rounded range of addresses that the segments cover.
    pub span: Range<u64>,
    /// Address of the first instruction.
    pub entry: u64,
    /// Address of the program headers.
    pub headers: u64,
    /// How many program headers there are.
    pub headers_count: u16,
    /// Path in `PT_INTERP`: the dynamic linker.
    pub interpreter: Option<String>,
    /// `DT_NEEDED` names in file order.
    pub needed: Vec<String>,
    /// `DT_RPATH`, which is searched before `--library-path`.
    pub rpath: Option<String>,
    /// `DT_RUNPATH`, which is searched after it.
    pub runpath: Option<String>,
    /// The compiler's checker that sees all of its memory, if it has one.
    pub sanitizer: Option<&'static str>,
    /// Bytes of thread-local data.
    pub thread_local: u64,
    /// `ET_EXEC`: linked to fixed addresses, of which an address space has only one set.
    pub fixed_address: bool,
}

impl LoadPlan {
    /// Map entries that the file takes once its dynamic linker has prepared it: its segments, zero-filled data behind
    /// them, and what is protected after relocation.
    #[must_use]
    pub fn map_entries(&self) -> usize {
        let zeroes = |segment: &&Segment| {
            let in_file = (segment.address + segment.file_len).next_multiple_of(page());
            segment.write && segment.address + segment.memory_len > in_file
        };
        self.segments.len() + self.segments.iter().filter(zeroes).count() + 1
    }

    /// What an accepted plan promises to the code that maps it: segments in order, no byte of memory in two of them,
    /// within the file and the span.
    fn fits(&self, file_len: u64) -> bool {
        let mut end = self.span.start;
        let in_order = self.segments.iter().all(|segment| {
            let apart = segment.address >= end;
            end = segment.address + segment.memory_len;
            apart && segment.file_len <= segment.memory_len && segment.file_offset + segment.file_len <= file_len
        });
        let may_follow = |pair: &[Segment]| pair[1].may_follow(&pair[0]);
        in_order
            && self.segments.windows(2).all(may_follow)
            && !self.segments.is_empty()
            && end.next_multiple_of(page()) == self.span.end
    }
}

/// Why a file cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElfError {
    /// The first four bytes are not an ELF file's.
    NotElf,
    /// The file ends before byte `end` of its own layout.
    Truncated {
        /// Bytes that the layout speaks of.
        end: u64,
        /// Bytes that the file has.
        len: u64,
    },
    /// A 32-bit file.
    Bits32,
    /// A big-endian file.
    BigEndian,
    /// Made for another machine (`e_machine`).
    Machine(u16),
    /// Neither an executable nor a shared object (`e_type`).
    NotLoadable(u16),
    /// Aligned for smaller pages than the kernel's, of so many bytes.
    SmallPages(u64),
    /// A field contradicts another or the format.
    Malformed(&'static str),
}

impl fmt::Display for ElfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotElf => f.write_str("it is neither an ELF file nor a script with #!"),
            Self::Truncated { end, len } => {
                write!(f, "it is truncated: its layout needs {end} bytes, it has {len}")
            }
            Self::Bits32 => f.write_str("it is a 32-bit program"),
            Self::BigEndian => f.write_str("it is a big-endian program"),
            Self::Machine(machine) => {
                write!(f, "it is made for {}, not {}", header::machine_to_str(*machine), cohort_arch::NAMES[1])
            }
            Self::NotLoadable(kind) => {
                write!(f, "it is no executable but an ELF file of type {}", header::et_to_str(*kind))
            }
            Self::SmallPages(page) => write!(f, "it is linked for pages smaller than this kernel's, of {page} bytes"),
            Self::Malformed(what) => write!(f, "its ELF structure is broken: {what}"),
        }
    }
}

impl std::error::Error for ElfError {}

/// Reads the plan of a file for this architecture (executable or shared object).
///
/// # Errors
/// See [`ElfError`].
pub fn parse(file: &[u8]) -> Result<LoadPlan, ElfError> {
    let header = parse_header(file)?;
    let headers = program_headers(file, &header)?;
    let mut plan = LoadPlan {
        entry: header.e_entry,
        headers_count: header.e_phnum,
        fixed_address: header.e_type == header::ET_EXEC,
        ..LoadPlan::default()
    };
    for program_header in headers.iter().filter(|entry| entry.p_type == PT_LOAD) {
        push_segment(&mut plan, program_header, file.len() as u64)?;
    }
    let (Some(first), Some(last)) = (plan.segments.first(), plan.segments.last()) else {
        return Err(ElfError::Malformed("it has no PT_LOAD segment"));
    };
    let end = (last.address + last.memory_len).next_multiple_of(page());
    plan.span = first.address / page() * page()..end;
    plan.headers = headers_address(&headers, &header, &plan.segments)?;
    for program_header in &headers {
        match program_header.p_type {
            PT_INTERP => plan.interpreter = Some(interpreter(file, program_header)?),
            PT_TLS => plan.thread_local = program_header.p_memsz.min(ADDRESS_LIMIT),
            PT_DYNAMIC => read_dynamic(file, program_header, &mut plan)?,
            _ => {}
        }
    }
    if !plan.segments.iter().any(|s| s.execute && s.covers(plan.entry, 1)) && plan.interpreter.is_some() {
        return Err(ElfError::Malformed("the entry point lies in no executable segment"));
    }
    debug_assert!(plan.fits(file.len() as u64));
    Ok(plan)
}

impl Segment {
    fn covers(&self, address: u64, len: u64) -> bool {
        address >= self.address && address.checked_add(len).is_some_and(|end| end <= self.address + self.memory_len)
    }

    /// Whether the segment may come behind the previous one: in pages of its own, or, as `patchelf` leaves a file, in
    /// the previous one's last page, if both have that page from the same place of the file. Mapping it again changes
    /// nothing.
    fn may_follow(&self, previous: &Self) -> bool {
        let end = previous.address + previous.memory_len;
        if self.address / page() * page() >= end.next_multiple_of(page()) {
            return true;
        }
        let same_place =
            self.address.wrapping_sub(self.file_offset) == previous.address.wrapping_sub(previous.file_offset);
        let both_of_file = previous.memory_len == previous.file_len && self.file_len > 0;
        self.address >= end && same_place && both_of_file
    }
}

fn parse_header(file: &[u8]) -> Result<Header, ElfError> {
    if file.len() < 4 || &file[..4] != header::ELFMAG {
        return Err(ElfError::NotElf);
    }
    let len = file.len() as u64;
    let truncated = ElfError::Truncated { end: SIZEOF_EHDR as u64, len };
    match file.get(EI_CLASS) {
        Some(&header::ELFCLASS32) => return Err(ElfError::Bits32),
        Some(&header::ELFCLASS64) => {}
        None => return Err(truncated),
        Some(_) => return Err(ElfError::Malformed("unknown EI_CLASS")),
    }
    match file.get(EI_DATA) {
        Some(&header::ELFDATA2LSB) => {}
        Some(&header::ELFDATA2MSB) => return Err(ElfError::BigEndian),
        None => return Err(truncated),
        Some(_) => return Err(ElfError::Malformed("unknown EI_DATA")),
    }
    if file.len() < SIZEOF_EHDR {
        return Err(truncated);
    }
    let header =
        goblin::elf::Elf::parse_header(file).map_err(|_| ElfError::Malformed("the file header cannot be read"))?;
    if header.e_machine != cohort_arch::ELF_MACHINE {
        return Err(ElfError::Machine(header.e_machine));
    }
    match header.e_type {
        header::ET_DYN | header::ET_EXEC => Ok(header),
        other => Err(ElfError::NotLoadable(other)),
    }
}

fn program_headers(file: &[u8], header: &Header) -> Result<Vec<ProgramHeader>, ElfError> {
    let count = usize::from(header.e_phnum);
    if count == 0 || count > HEADERS_MAX {
        return Err(ElfError::Malformed("the number of program headers"));
    }
    if usize::from(header.e_phentsize) != goblin::elf64::program_header::SIZEOF_PHDR {
        return Err(ElfError::Malformed("the size of a program header"));
    }
    let bytes = count * usize::from(header.e_phentsize);
    in_file(file, header.e_phoff, bytes as u64)?;
    let context = goblin::container::Ctx::new(goblin::container::Container::Big, goblin::container::Endian::Little);
    ProgramHeader::parse(file, header.e_phoff as usize, count, context)
        .map_err(|_| ElfError::Malformed("the program headers cannot be read"))
}

fn push_segment(plan: &mut LoadPlan, header: &ProgramHeader, file_len: u64) -> Result<(), ElfError> {
    let (address, memory_len) = (header.p_vaddr, header.p_memsz);
    if memory_len == 0 {
        return Ok(());
    }
    let end = address.checked_add(memory_len).filter(|&end| end <= ADDRESS_LIMIT);
    if end.is_none() {
        return Err(ElfError::Malformed("a segment beyond the address space"));
    }
    if header.p_filesz > memory_len {
        return Err(ElfError::Malformed("a segment longer in the file than in memory"));
    }
    let file_end =
        header.p_offset.checked_add(header.p_filesz).ok_or(ElfError::Malformed("a segment's file offset"))?;
    if file_end > file_len {
        return Err(ElfError::Truncated { end: file_end, len: file_len });
    }
    if address % page() != header.p_offset % page() {
        if address % LEAST_PAGE == header.p_offset % LEAST_PAGE {
            return Err(ElfError::SmallPages(page()));
        }
        return Err(ElfError::Malformed("a segment's offset and address are not congruent"));
    }
    let segment = Segment {
        address,
        memory_len,
        file_offset: header.p_offset,
        file_len: header.p_filesz,
        read: header.p_flags & PF_R != 0,
        write: header.p_flags & PF_W != 0,
        execute: header.p_flags & PF_X != 0,
    };
    let mut previous = plan.segments.last().into_iter();
    if !previous.all(|previous| segment.may_follow(previous)) {
        return Err(ElfError::Malformed("segments overlap or are out of order"));
    }
    plan.segments.push(segment);
    Ok(())
}

/// Where the program headers lie in memory: `PT_PHDR` says it, or the segment that
/// maps the part of the file in which they are.
fn headers_address(headers: &[ProgramHeader], header: &Header, segments: &[Segment]) -> Result<u64, ElfError> {
    let len = u64::from(header.e_phnum) * u64::from(header.e_phentsize);
    let address = headers.iter().find(|entry| entry.p_type == PT_PHDR).map(|entry| entry.p_vaddr);
    let mapped = || {
        segments.iter().find_map(|segment| {
            let inside = header.e_phoff.checked_sub(segment.file_offset)?;
            (inside.checked_add(len)? <= segment.file_len).then_some(segment.address + inside)
        })
    };
    let address = address.or_else(mapped);
    address
        .filter(|&address| segments.iter().any(|segment| segment.covers(address, len)))
        .ok_or(ElfError::Malformed("the program headers are not mapped"))
}

fn interpreter(file: &[u8], header: &ProgramHeader) -> Result<String, ElfError> {
    let bytes = in_file(file, header.p_offset, header.p_filesz)?;
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    match std::str::from_utf8(text) {
        Ok(path) if path.starts_with('/') => Ok(path.to_owned()),
        _ => Err(ElfError::Malformed("PT_INTERP is no absolute path")),
    }
}

fn read_dynamic(file: &[u8], header: &ProgramHeader, plan: &mut LoadPlan) -> Result<(), ElfError> {
    let bytes = in_file(file, header.p_offset, header.p_filesz)?;
    let word = |chunk: &[u8]| chunk.try_into().map_or(0, u64::from_le_bytes);
    let entries: Vec<(u64, u64)> = bytes
        .chunks_exact(16)
        .take(DYNAMIC_MAX)
        .map(|entry| (word(&entry[..8]), word(&entry[8..])))
        .take_while(|&(tag, _)| tag != DT_NULL)
        .collect();
    let value = |wanted| entries.iter().find(|(tag, _)| *tag == wanted).map(|&(_, value)| value);
    let (Some(table), Some(len)) = (value(DT_STRTAB), value(DT_STRSZ)) else {
        return Ok(());
    };
    let offset = plan
        .segments
        .iter()
        .find(|segment| segment.covers(table, len))
        .map(|segment| segment.file_offset + (table - segment.address))
        .ok_or(ElfError::Malformed("the dynamic string table is not mapped"))?;
    let strings = in_file(file, offset, len)?;
    plan.sanitizer = sanitizer::named_in(strings);
    let string = |at: u64| {
        let rest = usize::try_from(at).ok().and_then(|at| strings.get(at..));
        let text = rest.and_then(|rest| rest.split(|&byte| byte == 0).next());
        text.map(|text| String::from_utf8_lossy(text).into_owned())
            .ok_or(ElfError::Malformed("a name beyond the dynamic string table"))
    };
    for &(tag, value) in &entries {
        match tag {
            DT_NEEDED => plan.needed.push(string(value)?),
            DT_RPATH => plan.rpath = Some(string(value)?),
            DT_RUNPATH => plan.runpath = Some(string(value)?),
            _ => {}
        }
    }
    Ok(())
}

/// The bytes `offset..offset + len` of the file.
fn in_file(file: &[u8], offset: u64, len: u64) -> Result<&[u8], ElfError> {
    let end = offset.checked_add(len).ok_or(ElfError::Malformed("an offset overflows"))?;
    usize::try_from(end)
        .ok()
        .and_then(|end| file.get(offset as usize..end))
        .ok_or(ElfError::Truncated { end, len: file.len() as u64 })
}

/// Whether an object asks others for a symbol with a name of which `wanted` holds.
#[must_use]
pub fn imports(file: &[u8], wanted: impl Fn(&str) -> bool) -> bool {
    let Ok(elf) = goblin::elf::Elf::parse(file) else {
        return false;
    };
    elf.dynsyms.iter().any(|symbol| symbol.st_shndx == 0 && elf.dynstrtab.get_at(symbol.st_name).is_some_and(&wanted))
}

/// The address of a symbol that a shared object exports, relative to its base.
#[must_use]
pub fn exported_symbol(file: &[u8], name: &str) -> Option<u64> {
    let elf = goblin::elf::Elf::parse(file).ok()?;
    let symbol =
        elf.dynsyms.iter().find(|symbol| symbol.st_shndx != 0 && elf.dynstrtab.get_at(symbol.st_name) == Some(name))?;
    Some(symbol.st_value)
}
