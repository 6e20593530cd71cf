//! Where a rank that died has been: the functions that its stack leads through.
//!
//! Its memory stays mapped after its end, in the root's address space, and its registers are in the record of its
//! fault. The tables by which C++ unwinds (`.eh_frame`) lead from frame to frame, symbols and line tables of the files
//! name them. The rank may have died in the middle of anything, so nothing is dereferenced: the kernel copies, or
//! refuses.

pub mod python;

use super::fault::read_words;
use addr2line::Loader;
use cohort_arch::frame::{
    CALLS_LEAVE_STACK, FRAME_POINTER, RETURN_ADDRESS, STACK_POINTER, frame_pointer_above_stack, return_at_once,
    take_link,
};
use gimli::{
    BaseAddresses, CfaRule, EhFrame, LittleEndian, Register, RegisterRule, UnwindContext, UnwindSection, Vendor,
};
use goblin::elf::Elf;
use goblin::elf::program_header::PT_LOAD;
use memmap2::Mmap;
use pip_load::task::crash::Registers;
use python::Interpreter;
use std::collections::HashMap;
use std::fmt::Write;
use std::fs::File;
use std::ops::Range;

/// Most frames that are shown.
const SHOWN_MAX: usize = 12;

/// Most frames that are followed.
const FRAMES_MAX: usize = 64;

/// The frames of a rank, one a line, the innermost first. Empty where nothing is known.
#[must_use]
pub fn lines(registers: &Registers) -> String {
    let mut code = Code::mapped();
    let (mut registers, mut text) = (*registers, String::new());
    let mut interpreter = None;
    for frame in 0..FRAMES_MAX {
        // A return address is behind the call, which may be the last instruction of its function.
        let probe = registers[RETURN_ADDRESS] - u64::from(frame > 0 && registers[RETURN_ADDRESS] > 0);
        if let Some((file, address)) = code.at(probe) {
            interpreter = interpreter.or_else(|| file.interpreter_at(probe, address));
            for line in file.describe(address) {
                let _ = write!(text, "\n  {} {line}", if frame == 0 { "in" } else { "by" });
            }
        }
        if text.lines().count() > SHOWN_MAX {
            text.push_str("\n  ...");
            break;
        }
        if !code.step(&mut registers, probe, frame == 0) {
            break;
        }
    }
    let frames = python::frames(interpreter.as_slice());
    for line in frames.iter().flatten().take(SHOWN_MAX) {
        let _ = write!(text, "\n  Python's main thread: {line}");
    }
    text
}

/// The libraries in which a rank that waits has its innermost frames.
const OURS: [&str; 8] = ["libcohort_", "libmpi", "libc.so", "libc-", "libpthread", "ld-linux", "libpmpi", "["];

/// Functions below `main`.
const START: [&str; 2] = ["_start ", "__libc_start"];

/// Most frames of the program that say where it is.
const PLACES_MAX: usize = 3;

/// Where in the program a task is.
#[derive(Debug, Default)]
pub struct CodePlace {
    /// The innermost functions that are the program's own. Empty where nothing is known.
    functions: Vec<String>,
    /// The Python that runs them.
    pub interpreter: Option<Interpreter>,
}

/// Where in the program a task with these registers is.
#[must_use]
pub fn place(code: &mut Code, registers: &Registers) -> CodePlace {
    let (mut registers, mut place) = (*registers, CodePlace::default());
    for frame in 0..FRAMES_MAX {
        let probe = registers[RETURN_ADDRESS] - u64::from(frame > 0 && registers[RETURN_ADDRESS] > 0);
        if let Some((file, address)) = code.at(probe)
            && !OURS.iter().any(|name| file.name.starts_with(name))
        {
            place.interpreter = file.interpreter_at(probe, address);
            if place.interpreter.is_some() {
                break;
            }
            if place.functions.len() < PLACES_MAX {
                let described = file.describe(address).into_iter();
                let own = described.filter(|name| !START.iter().any(|it| name.starts_with(it)));
                place.functions.extend(own);
            }
        }
        if !code.step(&mut registers, probe, frame == 0) {
            break;
        }
    }
    place
}

/// Where in a program's code a call is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallPlace {
    /// `main at a.c:12`, or as much as is known.
    pub text: String,
    /// The path of the file, as the compiler had it; empty where it is not known.
    pub path: String,
    /// The line, or 0.
    pub line: u32,
}

impl CallPlace {
    /// The function.
    #[must_use]
    pub fn function(&self) -> &str {
        self.text.rsplit_once(" at ").map_or(&self.text, |(function, _)| function)
    }

    /// The file's name.
    #[must_use]
    pub fn file(&self) -> &str {
        let file = self.text.rsplit_once(" at ").and_then(|(_, place)| place.rsplit_once(':'));
        file.map_or("", |(file, _)| file)
    }
}

/// The innermost function of a program's code with a call before this address, its file and line as far as they are
/// known.
#[must_use]
pub fn call_before(code: &mut Code, address: u64) -> Option<CallPlace> {
    let (file, own) = code.at(address.checked_sub(1)?)?;
    let text = file.describe(own).into_iter().next()?;
    let (path, line) = file.location(own).unwrap_or_default();
    Some(CallPlace { text, path, line })
}

impl CodePlace {
    /// In words, with what its Python is in, if that is known.
    #[must_use]
    pub fn describe(mut self, python: &[String]) -> String {
        if !python.is_empty() {
            // Of a module that Python has called only functions with lines say something.
            self.functions.retain(|name| name.contains(" at ") && !name.starts_with("__pyx"));
            self.functions.extend_from_slice(python);
        }
        self.functions.truncate(PLACES_MAX);
        self.functions.join(", called by ")
    }
}

/// Whether an address holds code, by the map of this address space.
struct Mapped {
    range: Range<u64>,
    offset: u64,
    path: String,
}

/// The files that the address space has code of.
pub struct Code {
    maps: Vec<Mapped>,
    files: HashMap<String, Option<Object>>,
}

/// A program or library.
struct Object {
    name: String,
    bytes: Mmap,
    /// Segments: where in the file, and where in its own addresses.
    segments: Vec<(Range<u64>, u64)>,
    /// `.eh_frame`: where in the file, and its own address.
    frames: Option<(Range<usize>, u64)>,
    text: u64,
    /// The addresses of functions with a name.
    functions: Vec<Range<u64>>,
    /// The functions of a Python.
    interpreter: Option<Interpreter>,
    lines: Option<Loader>,
}

impl Code {
    /// What is mapped now.
    #[must_use]
    pub fn mapped() -> Self {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        Self { maps: maps.lines().filter_map(mapped).collect(), files: HashMap::new() }
    }

    /// The file with the code at an address, and the address as the file has it.
    fn at(&mut self, address: u64) -> Option<(&Object, u64)> {
        // The kernel lists them in their order.
        let behind = self.maps.partition_point(|map| map.range.end <= address);
        let map = self.maps.get(behind);
        let map = map.filter(|map| map.range.contains(&address))?;
        let object = self.files.entry(map.path.clone());
        let object = object.or_insert_with(|| Object::open(&map.path)).as_ref()?;
        let offset = address - map.range.start + map.offset;
        Some((object, object.own_address(offset)?))
    }

    /// Goes to the caller; `false` at the end, or where the way is not known.
    fn step(&mut self, registers: &mut Registers, probe: u64, is_first: bool) -> bool {
        let found = self.at(probe);
        let Some((object, address)) = found else {
            // A call of what is no function has left its return address.
            return is_first && pop(registers);
        };
        object.unwind(address, registers, is_first).is_some() && registers[RETURN_ADDRESS] != 0
    }
}

/// A line of `/proc/self/maps` with code of a file.
fn mapped(line: &str) -> Option<Mapped> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let is_code = fields.next()?.as_bytes().get(2) == Some(&b'x');
    let offset = number(fields.next()?)?;
    let path = fields.nth(2)?.trim();
    (is_code && path.starts_with('/')).then_some(Mapped {
        range: number(start)?..number(end)?,
        offset,
        path: path.to_owned(),
    })
}

/// Returns from a function that has not begun.
fn pop(registers: &mut Registers) -> bool {
    let read = |place| Some(read_words::<1>(place as usize)?[0] as u64);
    return_at_once(registers, read).is_some() && registers[RETURN_ADDRESS] != 0
}

impl Object {
    fn open(path: &str) -> Option<Self> {
        let file = File::open(path).ok()?;
        // SAFETY: read only; a file that somebody shortens meanwhile is not one that a rank could have run.
        let bytes = unsafe { Mmap::map(&file) }.ok()?;
        let elf = Elf::parse(&bytes).ok()?;
        let loaded = elf.program_headers.iter().filter(|header| header.p_type == PT_LOAD);
        let segment =
            |header: &goblin::elf::ProgramHeader| (header.p_offset..header.p_offset + header.p_filesz, header.p_vaddr);
        let segments = loaded.map(segment).collect();
        let section = |name: &str| {
            let named = |header: &&goblin::elf::SectionHeader| elf.shdr_strtab.get_at(header.sh_name) == Some(name);
            elf.section_headers.iter().find(named)
        };
        let frames = section(".eh_frame").and_then(|header| {
            let range = header.file_range()?;
            bytes.get(range.clone())?;
            Some((range, header.sh_addr))
        });
        let text = section(".text").map_or(0, |header| header.sh_addr);
        let symbols = elf.syms.iter().chain(elf.dynsyms.iter());
        let functions = symbols.filter(|symbol| symbol.is_function() && symbol.st_size > 0);
        let functions = functions.map(|symbol| symbol.st_value..symbol.st_value + symbol.st_size);
        Some(Self {
            functions: functions.collect(),
            interpreter: Interpreter::in_file(&elf),
            name: path.rsplit('/').next().unwrap_or_default().to_owned(),
            segments,
            frames,
            text,
            lines: Loader::new(path).ok(),
            bytes,
        })
    }

    /// The functions of the Python that this file is, if its own address `address` is mapped at `mapped`.
    fn interpreter_at(&self, mapped: u64, address: u64) -> Option<Interpreter> {
        let distance = mapped.wrapping_sub(address);
        self.interpreter.map(|functions| functions.moved_by(distance))
    }

    /// The file's own address of what is at an offset.
    fn own_address(&self, offset: u64) -> Option<u64> {
        let mut segments = self.segments.iter();
        let (range, address) = segments.find(|(range, _)| range.contains(&offset))?;
        Some(offset - range.start + address)
    }

    /// The bytes at own addresses.
    fn code(&self, addresses: Range<u64>) -> Option<&[u8]> {
        let holds = |(range, start): &&(Range<u64>, u64)| {
            (*start..*start + (range.end - range.start)).contains(&addresses.start)
        };
        let (range, start) = self.segments.iter().find(holds)?;
        let first = usize::try_from(addresses.start - start + range.start).ok()?;
        self.bytes.get(first..first + usize::try_from(addresses.end - addresses.start).ok()?)
    }

    /// The functions at an address, an inlined one before that which it is part of.
    fn describe(&self, address: u64) -> Vec<String> {
        let unknown = || vec![format!("{}+{address:#x}", self.name)];
        let Some(lines) = &self.lines else {
            return unknown();
        };
        // The nearest name before an address may be that of another function.
        let is_named = self.functions.iter().any(|range| range.contains(&address));
        let symbol = lines.find_symbol(address).filter(|_| is_named);
        let symbol = symbol.map(|name| match name.starts_with('_') {
            true => addr2line::demangle_auto(name.into(), None).into_owned(),
            // To a demangler C's `f` is the type `float`.
            false => name.to_owned(),
        });
        let mut described = Vec::new();
        if let Ok(mut frames) = lines.find_frames(address) {
            while let Ok(Some(frame)) = frames.next() {
                let name = frame.function.as_ref().and_then(|name| name.demangle().ok());
                let name = name.map(|name| name.into_owned()).or_else(|| symbol.clone());
                let place = frame.location.and_then(|place| {
                    let file = place.file?.rsplit('/').next()?.to_owned();
                    Some(format!("{file}:{}", place.line?))
                });
                described.extend(name.map(|name| match place {
                    Some(place) => format!("{name} at {place}"),
                    None => format!("{name} of {}", self.name),
                }));
            }
        }
        if described.is_empty() {
            described.extend(symbol.map(|name| format!("{name} of {}", self.name)));
        }
        match described.is_empty() {
            true => unknown(),
            false => described,
        }
    }

    /// The file and the line of the innermost function at an address, if they are known.
    fn location(&self, address: u64) -> Option<(String, u32)> {
        let mut frames = self.lines.as_ref()?.find_frames(address).ok()?;
        let place = frames.next().ok()??.location?;
        Some((place.file?.to_owned(), place.line?))
    }

    /// The caller's registers.
    fn unwind(&self, address: u64, registers: &mut Registers, is_first: bool) -> Option<()> {
        let (range, start) = self.frames.clone()?;
        let mut section = EhFrame::new(self.bytes.get(range)?, LittleEndian);
        // Which only adds what this machine's compilers write.
        section.set_vendor(Vendor::AArch64);
        let bases = BaseAddresses::default().set_eh_frame(start).set_text(self.text);
        let mut context = UnwindContext::new();
        let row = section.unwind_info_for_address(&bases, &mut context, address, EhFrame::cie_from_offset).ok()?;
        let of = |register: Register, registers: &Registers| registers.get(usize::from(register.0)).copied();
        let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else {
            return None;
        };
        if usize::from(register.0) == FRAME_POINTER && registers[FRAME_POINTER] == 0 {
            // The kernel tells of a task that sleeps where it is and its stack pointer.
            let function = section.fde_for_address(&bases, address, EhFrame::cie_from_offset).ok()?;
            let begun = self.code(function.initial_address()..address)?;
            registers[FRAME_POINTER] = registers[STACK_POINTER] + frame_pointer_above_stack(begun)?;
        }
        let frame = of(*register, registers)?.wrapping_add_signed(*offset);
        let mut caller = *registers;
        (caller[STACK_POINTER], caller[RETURN_ADDRESS]) = (frame, 0);
        // Others than those that lead from frame to frame do not matter.
        let known = caller.len();
        for (register, rule) in row.registers().filter(|(register, _)| usize::from(register.0) < known) {
            let value = match rule {
                RegisterRule::Offset(offset) => {
                    let place = frame.wrapping_add_signed(*offset);
                    read_words::<1>(place as usize)?[0] as u64
                }
                RegisterRule::ValOffset(offset) => frame.wrapping_add_signed(*offset),
                RegisterRule::Register(other) => of(*other, registers)?,
                RegisterRule::SameValue => of(*register, registers)?,
                RegisterRule::Undefined => 0,
                _ => return None,
            };
            *caller.get_mut(usize::from(register.0))? = value;
        }
        take_link(&mut caller);
        // The stack grows downwards, so a caller's frame is above; functions that call none may have no frame.
        let least = registers[STACK_POINTER] + u64::from(!(is_first && CALLS_LEAVE_STACK));
        let goes_up = caller[STACK_POINTER] >= least;
        *registers = caller;
        goes_up.then_some(())
    }
}
