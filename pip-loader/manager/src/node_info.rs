//! What a node says of itself when it joins a job (its business card, in PMI's terms).

use cohort_base::boot::VERSION;
use std::io;

/// How ranks are numbered over the nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbering {
    /// All ranks of the first node, then those of the second.
    #[default]
    Block,
    /// One rank of each node in turn, for as long as it has any.
    Cyclic,
}

/// What a node says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeInfo {
    /// Its ranks.
    pub ranks: u32,
    /// The manager's number of the application that the node belongs to.
    pub application: u32,
    /// The programs of its own command line.
    pub programs: u32,
    /// How it wants ranks numbered; all must agree.
    pub numbering: Numbering,
    /// Its ranks have address spaces of their own; all must agree.
    pub isolated: bool,
    /// It is one rank that no `pip-exec` has started; all must agree.
    pub alone: bool,
    /// Whether it wants a timeline that all nodes have in common.
    pub traced: bool,
    /// What it has of the settings that all must have alike ([`ALIKE`]).
    ///
    /// [`ALIKE`]: cohort_base::settings::ALIKE
    pub alike: Vec<u8>,
    /// The job's token, drawn at random; that of node 0 counts.
    pub token: [u64; 2],
    /// What the nodes of the job prove themselves by, drawn at random; only that of node 0 counts and travels.
    pub secret: [u8; 32],
    /// Its host's name.
    pub host: String,
    /// Its machine, of which several nodes of a job may be parts.
    pub machine: String,
    /// The CPUs that it may use, as a bit mask.
    pub cpus: Vec<u8>,
    /// By what addresses its launcher may be reached; only launchers read it.
    pub interfaces: Vec<u8>,
}

/// Most ranks of a node that are worth trying: the kernel's own limit of process ids. What says that it has more is no
/// node.
pub const RANKS_MAX: u32 = 4 << 20;

/// First bytes of an encoded [`NodeInfo`].
const MAGIC: &[u8; 4] = b"CHR3";

impl NodeInfo {
    /// That of this process's machine, for a node of so many ranks.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn of_this_machine(ranks: u32, numbering: Numbering) -> io::Result<Self> {
        let file = |path: &str| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            text.trim().to_owned()
        };
        Ok(Self {
            ranks,
            application: 0,
            programs: 1,
            numbering,
            isolated: false,
            alone: false,
            traced: false,
            alike: Vec::new(),
            token: [random()?, random()?].map(u64::from_le_bytes),
            secret: random()?,
            host: file("/proc/sys/kernel/hostname"),
            machine: file("/proc/sys/kernel/random/boot_id").replace('-', ""),
            cpus: affinity(),
            interfaces: Vec::new(),
        })
    }

    /// Whether some CPU may be used by the ranks of both.
    #[must_use]
    pub fn shares_cpus_with(&self, other: &Self) -> bool {
        let common = self.cpus.iter().zip(&other.cpus);
        self.machine == other.machine && common.into_iter().any(|(own, other)| own & other != 0)
    }

    /// As it travels: a byte for most numbers, since a job has as many of these as nodes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        write_number(&mut bytes, VERSION);
        write_number(&mut bytes, self.numbering as u32);
        let marks = [self.isolated, self.traced, self.alone].map(u32::from);
        write_number(&mut bytes, marks[0] | marks[1] << 1 | marks[2] << 2);
        for number in [self.ranks, self.application, self.programs] {
            write_number(&mut bytes, number);
        }
        let mut drawn: Vec<u8> = self.token.map(u64::to_le_bytes).concat();
        drawn.extend(self.secret);
        if drawn.iter().all(|&byte| byte == 0) {
            drawn.clear();
        }
        let texts = [&drawn[..], self.host.as_bytes(), self.machine.as_bytes()];
        for part in texts.into_iter().chain([&*self.cpus, &*self.interfaces, &*self.alike]) {
            write_number(&mut bytes, part.len() as u32);
            bytes.extend(part);
        }
        bytes
    }

    /// `None` for what this version does not encode.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        if reader.take(MAGIC.len())? != MAGIC || reader.number()? != VERSION {
            return None;
        }
        let numbering = match reader.number()? {
            0 => Numbering::Block,
            1 => Numbering::Cyclic,
            _ => return None,
        };
        let marks = reader.number()?;
        if marks > 7 {
            return None;
        }
        let [ranks, application, programs] = [reader.number()?, reader.number()?, reader.number()?];
        if ranks > RANKS_MAX {
            return None;
        }
        let drawn = reader.part()?;
        let (token, secret) = match drawn.split_first_chunk::<16>() {
            Some((token, secret)) => (*token, <[u8; 32]>::try_from(secret).ok()?),
            None => ([0; 16], [0; 32]),
        };
        let [first, second] = [0, 8].map(|at| token[at..].first_chunk().copied());
        let host = String::from_utf8(reader.part()?).ok()?;
        let info = Self {
            ranks,
            application,
            programs,
            numbering,
            isolated: marks & 1 != 0,
            traced: marks & 2 != 0,
            alone: marks & 4 != 0,
            token: [u64::from_le_bytes(first?), u64::from_le_bytes(second?)],
            secret,
            host,
            machine: String::from_utf8(reader.part()?).ok()?,
            cpus: reader.part()?,
            interfaces: reader.part()?,
            alike: reader.part()?,
        };
        reader.0.is_empty().then_some(info)
    }
}

/// Seven bits in each byte, the lowest first; the last byte's highest bit is 0.
pub(crate) fn write_number(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Bytes that are still to be read.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        let mut number = 0_u64;
        for shift in (0..35).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return number.try_into().ok();
            }
        }
        None
    }

    /// A length, and as many bytes.
    pub(crate) fn part(&mut self) -> Option<Vec<u8>> {
        let length = self.number()?;
        self.take(length as usize).map(<[u8]>::to_vec)
    }
}

/// Random bytes that nobody else knows.
///
/// # Errors
/// The system has none.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    // SAFETY: the buffer is valid for its size.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) };
    if got == N as isize { Ok(bytes) } else { Err(io::Error::last_os_error()) }
}

/// The CPUs that this thread may use, as a bit mask: CPU n is bit n % 8 of byte n / 8. Empty if the
/// system does not tell.
#[must_use]
pub fn affinity() -> Vec<u8> {
    let mut mask = vec![0_u8; 1024];
    // SAFETY: the kernel writes at most as many bytes as the buffer has, and returns how many.
    let written = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, mask.len(), mask.as_mut_ptr()) };
    mask.truncate(usize::try_from(written).unwrap_or(0));
    while mask.last() == Some(&0) {
        mask.pop();
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_read_as_it_was_written() {
        let mut info = NodeInfo::of_this_machine(3, Numbering::Cyclic).expect("random numbers");
        (info.application, info.programs, info.traced, info.alone) = (1, 2, true, true);
        assert!(info.shares_cpus_with(&info) && !info.host.is_empty());
        let mut bytes = info.encode();
        assert_eq!(NodeInfo::decode(&bytes), Some(info.clone()));
        assert_ne!(NodeInfo::of_this_machine(3, Numbering::Cyclic).expect("more").token, info.token);
        bytes[4] ^= 1;
        assert_eq!(NodeInfo::decode(&bytes), None, "another version");
        bytes[4] ^= 1;
        (info.token, info.secret) = ([0; 2], [0; 32]);
        let short = info.encode();
        assert_eq!((NodeInfo::decode(&short), short.len() + 48), (Some(info), bytes.len()));
        bytes.push(0);
        assert_eq!(NodeInfo::decode(&bytes), None, "longer");
        for length in 0..bytes.len() - 1 {
            assert_eq!(NodeInfo::decode(&bytes[..length]), None, "cut at {length}");
        }
    }
}
