//! The objects of programs and their libraries with a place of their own: what the symbol tables of their files name.
//!
//! Files are mapped when a buffer lies in one of them for the first time, and stay.

use super::sites::{lines, map_text};
use alloc::string::String;
use alloc::vec::Vec;
use rustix::fs::{Mode, OFlags, fstat, open};
use rustix::mm::{MapFlags, ProtFlags, mmap};

/// Most objects of a file that are looked at; a file with more has none.
const MOST: usize = 500_000;

/// How often it is looked what is mapped now, before that becomes rare.
const OFTEN: u64 = 64;

/// An object of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Global {
    /// Its name, if that is text.
    pub name: &'static str,
    /// Its first byte.
    pub start: usize,
    /// Its size.
    pub bytes: usize,
}

/// An object as its file has it.
#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u64,
    end: u64,
    name: &'static str,
}

/// A file that is mapped somewhere.
struct Instance {
    start: usize,
    end: usize,
    file: usize,
}

/// A file of programs.
struct File {
    path: String,
    /// Its lowest address of its own, and its objects in their order; read when they are needed.
    objects: Option<(u64, Vec<Entry>)>,
}

/// All that is known.
pub struct Globals {
    files: Vec<File>,
    instances: Vec<Instance>,
    /// Other memory that was mapped when the files were looked for.
    others: Vec<(usize, usize)>,
    misses: u64,
    /// Something may have been mapped since.
    is_old: bool,
}

impl Globals {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self { files: Vec::new(), instances: Vec::new(), others: Vec::new(), misses: 0, is_old: false }
    }

    /// One more rank has its program in its place: what was read before may have seen that half done.
    pub fn look_again(&mut self) {
        self.is_old = true;
    }

    /// The object that has this byte.
    pub fn find(&mut self, address: usize) -> Option<Global> {
        if core::mem::take(&mut self.is_old) {
            self.read_map(&map_text());
        }
        if self.instance(address).is_none() {
            let behind = self.others.partition_point(|other| other.1 <= address);
            if self.others.get(behind).is_some_and(|other| other.0 <= address) {
                return None;
            }
            self.misses += 1;
            if self.misses > OFTEN && !self.misses.is_power_of_two() {
                return None;
            }
            self.read_map(&map_text());
        }
        let &Instance { start, file, .. } = self.instance(address)?;
        let file = &mut self.files[file];
        let (lowest, entries) = file.objects.get_or_insert_with(|| objects(&file.path).unwrap_or_default());
        let bias = start.wrapping_sub(*lowest as usize);
        let own = address.wrapping_sub(bias) as u64;
        let behind = entries.partition_point(|entry| entry.start <= own);
        // Of several that begin before, the one that reaches furthest.
        let nearby = entries[behind.saturating_sub(8)..behind].iter();
        let found = nearby.filter(|entry| own < entry.end).max_by_key(|entry| entry.end)?;
        let bytes = (found.end - found.start) as usize;
        Some(Global { name: found.name, start: bias.wrapping_add(found.start as usize), bytes })
    }

    fn instance(&self, address: usize) -> Option<&Instance> {
        let behind = self.instances.partition_point(|instance| instance.end <= address);
        self.instances.get(behind).filter(|instance| instance.start <= address)
    }

    fn read_map(&mut self, text: &[u8]) {
        self.instances.clear();
        self.others.clear();
        let (mut is_open, mut has_begun) = (false, false);
        for line in lines(text) {
            let last = self.instances.last_mut().filter(|_| is_open);
            if !line.path.starts_with('/') {
                // What has no content in the file follows its data.
                match last.filter(|last| line.path.is_empty() && last.end == line.start as usize) {
                    Some(last) => last.end = line.end as usize,
                    None => self.others.push((line.start as usize, line.end as usize)),
                }
                is_open = false;
                continue;
            }
            // Short files have code on their first page too. Another copy would begin without.
            let is_code = line.rights.starts_with("r-x");
            let goes_on = |last: &Instance| line.offset > 0 || has_begun && is_code && last.end == line.start as usize;
            if let Some(last) = last.filter(|last| goes_on(last) && self.files[last.file].path == line.path) {
                last.end = line.end as usize;
                has_begun &= line.offset == 0;
                continue;
            }
            is_open = line.offset == 0;
            has_begun = is_open;
            if !is_open {
                continue;
            }
            let known = self.files.iter().position(|file| file.path == line.path);
            let file = known.unwrap_or_else(|| {
                self.files.push(File { path: String::from(line.path), objects: None });
                self.files.len() - 1
            });
            self.instances.push(Instance { start: line.start as usize, end: line.end as usize, file });
        }
    }
}

/// A file's bytes, which stay.
fn bytes(path: &str) -> Option<&'static [u8]> {
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let length = usize::try_from(fstat(&file).ok()?.st_size).ok().filter(|&length| length > 0)?;
    // SAFETY: new memory, where the kernel likes.
    let start = unsafe { mmap(core::ptr::null_mut(), length, ProtFlags::READ, MapFlags::PRIVATE, &file, 0) }.ok()?;
    // SAFETY: so many bytes are mapped and stay; a file that runs is not written to.
    Some(unsafe { core::slice::from_raw_parts(start.cast(), length) })
}

/// The number of `size` bytes at a place.
fn number(bytes: &[u8], at: u64, size: usize) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let mut word = [0; 8];
    word[..size].copy_from_slice(bytes.get(at..at.checked_add(size)?)?);
    Some(u64::from_le_bytes(word))
}

/// The lowest address of an ELF file and its objects, in their order.
fn objects(path: &str) -> Option<(u64, Vec<Entry>)> {
    const LOAD: u64 = 1;
    const SYMBOLS: u64 = 2;
    const DYNAMIC_SYMBOLS: u64 = 11;
    let file = bytes(path)?;
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (programs, sections) = (number(file, 32, 8)?, number(file, 40, 8)?);
    let mut headers = (0..number(file, 56, 2)?).map(|index| programs + index * 56);
    let first = headers.find(|&header| number(file, header, 4) == Some(LOAD))?;
    let lowest = number(file, first + 16, 8)? & !(cohort_arch::page() as u64 - 1);
    let of_kind = |kind| {
        let mut all = (0..number(file, 60, 2)?).map(|index| sections + index * 64);
        all.find(|&section| number(file, section + 4, 4) == Some(kind))
    };
    let table = of_kind(SYMBOLS).or_else(|| of_kind(DYNAMIC_SYMBOLS))?;
    let (start, length) = (number(file, table + 24, 8)?, number(file, table + 32, 8)?);
    let strings = number(file, sections + number(file, table + 40, 4)? * 64 + 24, 8)?;
    let mut entries = Vec::new();
    for symbol in (0..length / 24).map(|index| start + index * 24) {
        entries.extend(entry(file, symbol, strings));
        if entries.len() > MOST {
            return None;
        }
    }
    entries.sort_unstable_by_key(|entry: &Entry| (entry.start, entry.end));
    Some((lowest, entries))
}

/// The symbol at this place, if it is an object of the file.
fn entry(file: &'static [u8], symbol: u64, strings: u64) -> Option<Entry> {
    const OBJECT: u64 = 1;
    let (start, size) = (number(file, symbol + 8, 8)?, number(file, symbol + 16, 8)?);
    let is_object = number(file, symbol + 4, 1)? & 15 == OBJECT && number(file, symbol + 6, 2)? != 0;
    if !is_object || size == 0 {
        return None;
    }
    let name = file.get(usize::try_from(strings + number(file, symbol, 4)?).ok()?..)?;
    // Compilers put numbers behind the names of local ones.
    let name = name.split(|&byte| byte == 0 || byte == b'.').next()?;
    Some(Entry { start, end: start.checked_add(size)?, name: core::str::from_utf8(name).unwrap_or("an object") })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[unsafe(no_mangle)]
    static COHORT_TEST_GLOBAL: [u8; 40] = [3; 40];

    #[test]
    fn parts_of_a_file_are_one() {
        let mut globals = Globals::new();
        let copy = "1000-2000 r--p 00000000 00:1 1 /lib/a\n2000-4000 r-xp 00000000 00:1 1 /lib/a\n\
                    4000-5000 rw-p 00001000 00:1 1 /lib/a\n";
        // Other copies begin where the first one ends, of which one is half done.
        let text = std::format!(
            "{copy}5000-6000 r--p 00000000 00:1 1 /lib/a\n6000-8000 r--p 00000000 00:1 1 /lib/a\n\
             8000-9000 rw-p 00000000 00:0 0\n"
        );
        globals.read_map(text.as_bytes());
        let parts: Vec<_> = globals.instances.iter().map(|it| (it.start, it.end)).collect();
        assert_eq!(parts, [(0x1000, 0x5000), (0x5000, 0x6000), (0x6000, 0x9000)]);
    }

    #[test]
    fn objects_are_found_with_their_sizes() {
        let mut globals = Globals::new();
        let place = COHORT_TEST_GLOBAL.as_ptr().addr();
        let found = globals.find(place + 39).expect("is named");
        assert_eq!((found.name, found.start, found.bytes), ("COHORT_TEST_GLOBAL", place, 40));
        assert!(globals.find(place + 40).is_none_or(|other| other.start >= place + 40));
        let local = 0;
        assert_eq!(globals.find((&raw const local).addr()), None);
    }
}
