//! Where in the program a call comes from: the first address on the stack that a call of the program's own code has
//! left there.
//!
//! Between the program and us lie a facade, and for Fortran its library. Their frames are small, and what they hold is
//! seen to be an address behind a call by the bytes before it. Files and lines are the loader's matter.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::read;

/// Most words of the stack that are looked at.
const WORDS: usize = 96;

/// Bytes of an observed call's frame below the return address.
pub const TO_RETURN: usize = 104;

/// Beginnings of the names of files that no call of a program is in.
const OURS: [&str; 8] = ["libcohort_", "libmpi", "libpmpi", "libc.so", "libc-", "libpthread", "ld-linux", "ld-musl"];

/// Code of a file.
#[derive(Clone, Copy, Debug)]
struct Area {
    start: u64,
    end: u64,
    is_ours: bool,
}

/// What is mapped, and which calls were seen.
pub struct Sites {
    areas: Vec<Area>,
    seen: BTreeSet<u64>,
}

impl Sites {
    /// Nothing is known yet.
    pub const fn new() -> Self {
        Self { areas: Vec::new(), seen: BTreeSet::new() }
    }

    /// The address behind the program's call whose observed frame lies at this place; 0 if it is not found.
    pub fn of(&mut self, frame: usize) -> u64 {
        let found = self.look(frame);
        if found != 0 && self.seen.contains(&found) {
            return found;
        }
        // Libraries may have come meanwhile, whose code was not known.
        self.areas = mapped();
        let found = self.look(frame);
        if found != 0 {
            self.seen.insert(found);
        }
        found
    }

    fn look(&self, frame: usize) -> u64 {
        let words = core::ptr::with_exposed_provenance::<u64>(frame + TO_RETURN);
        for index in 0..WORDS {
            // SAFETY: the words lie on the calling thread's stack above a frame; more than so many are there: that of
            // the first function, its arguments and the environment, or what a thread has at the top of its stack.
            let word = unsafe { words.add(index).read_volatile() };
            if self.area(word).is_some_and(|area| !area.is_ours && is_behind_call(word, area)) {
                return word;
            }
        }
        0
    }

    fn area(&self, address: u64) -> Option<Area> {
        let behind = self.areas.partition_point(|area| area.end <= address);
        self.areas.get(behind).copied().filter(|area| area.start <= address)
    }
}

/// Whether the instruction before an address is a call.
fn is_behind_call(address: u64, area: Area) -> bool {
    if address < area.start + 8 {
        return false;
    }
    let first = core::ptr::with_exposed_provenance::<u8>(address as usize - 7);
    // SAFETY: code that is mapped, and may be read.
    let bytes: [u8; 7] = core::array::from_fn(|index| unsafe { first.add(index).read_volatile() });
    let indirect = |at: usize| bytes[at] == 0xff && bytes[at + 1] >> 3 & 7 == 2;
    bytes[2] == 0xe8 || [0, 1, 3, 4, 5].into_iter().any(indirect)
}

/// The code that is mapped now, in its order.
fn mapped() -> Vec<Area> {
    lines(&map_text()).filter_map(area).collect()
}

/// What is mapped now, as the kernel writes it.
pub fn map_text() -> Vec<u8> {
    let mut text = Vec::new();
    let Ok(file) = open(c"/proc/self/maps", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else {
        return text;
    };
    let mut room = [0u8; 4096];
    while let Ok(count) = read(&file, &mut room[..]) {
        if count == 0 {
            break;
        }
        text.extend_from_slice(&room[..count]);
    }
    text
}

/// A line of what is mapped.
pub struct Line<'a> {
    pub start: u64,
    pub end: u64,
    pub rights: &'a str,
    pub offset: u64,
    /// Empty for memory without a name.
    pub path: &'a str,
}

/// Its lines.
pub fn lines(text: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let lines = text.split(|&byte| byte == b'\n');
    lines.filter_map(|line| core::str::from_utf8(line).ok()).filter_map(line)
}

fn line(text: &str) -> Option<Line<'_>> {
    let mut fields = text.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let (rights, offset) = (fields.next()?, number(fields.next()?)?);
    let path = fields.nth(2).unwrap_or_default().trim();
    Some(Line { start: number(start)?, end: number(end)?, rights, offset, path })
}

/// Code of a file that may be read.
fn area(line: Line<'_>) -> Option<Area> {
    let name = line.path.rsplit('/').next().unwrap_or_default();
    let is_ours = OURS.iter().any(|ours| name.starts_with(ours));
    let is_code = line.rights.starts_with("r-x") && line.path.starts_with('/');
    is_code.then_some(Area { start: line.start, end: line.end, is_ours })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps_are_read() {
        let area = |text| line(text).and_then(area);
        let it = area("7f00-7f80 r-xp 00001000 08:01 12                 /home/me/a b").expect("code");
        assert_eq!((it.start, it.end, it.is_ours), (0x7f00, 0x7f80, false));
        assert!(area("7f00-7f80 r-xp 00001000 08:01 12 /usr/lib/libmpi.so.12").expect("code").is_ours);
        assert!(area("7f00-7f80 rw-p 00001000 08:01 12 /home/me/a").is_none());
        assert!(area("7f00-7f80 r-xp 00000000 00:00 0 [vdso]").is_none());
    }
}
