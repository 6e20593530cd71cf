//! Windows (MPI 12.2): memory of the members of a communicator, for one-sided access.
//!
//! Making one is collective: the members tell each other their parts, agree on a number, and meet once more when
//! everybody has his end of the window. A window has a communicator of its own for these meetings, so that the
//! program may free the one it was made from.

use crate::alignment;
use crate::attribute::Attributes;
use crate::comm::Comm;
use crate::errhandler::Errhandler;
use crate::group::Group;
use crate::info::Info;
use crate::name::Name;
use crate::outside;
use crate::policy::{self, OwnPolicy};
use crate::rendezvous::exhausted;
use crate::room::Room;
use crate::{Error, Outcome};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_arch::page;
use cohort_engine::coll;
use cohort_engine::rma::{Part, Plan, Reorder, Window};
use core::ptr::{NonNull, with_exposed_provenance_mut};
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use spin::Mutex;

/// Alignment of memory that the runtime gives to windows that are not shared. Long blocks then begin in the middle of a
/// page, those of C libraries just behind its start: a processor takes a load for one of the bytes that it has just
/// stored if their places in their pages are the same, and copies from the start of one page to just behind that of
/// another wait each time.
const ALIGNMENT: usize = 2048;

/// Alignment of the parts of a shared window that need not follow each other: a cache line; a page if they have many.
const APART: u64 = 64;
const MANY_PAGES: u64 = 64 << 10;

/// Hints that a window has unless the program says otherwise (MPI 12.2.1).
const DEFAULT_HINTS: [(&str, &str); 5] = [
    ("no_locks", "false"),
    ("accumulate_ordering", "rar,raw,war,waw"),
    ("accumulate_ops", "same_op_no_op"),
    ("same_size", "false"),
    ("same_disp_unit", "false"),
];

/// Where a window's memory comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// From the program.
    Create,
    /// From the runtime.
    Allocate,
    /// From the runtime, one piece for all members.
    Shared,
    /// From the program, later.
    Dynamic,
}

impl Flavor {
    /// What the members say who make such a window.
    fn table(self) -> coll::Table {
        match self {
            Self::Create => coll::Table::Window,
            Self::Allocate => coll::Table::WindowAllocate,
            Self::Shared => coll::Table::WindowShared,
            Self::Dynamic => coll::Table::WindowDynamic,
        }
    }

    /// The neutral value of `MPI_WIN_CREATE_FLAVOR`.
    #[must_use]
    pub fn neutral(self) -> i32 {
        match self {
            Self::Create => neutral::WIN_FLAVOR_CREATE,
            Self::Allocate => neutral::WIN_FLAVOR_ALLOCATE,
            Self::Shared => neutral::WIN_FLAVOR_SHARED,
            Self::Dynamic => neutral::WIN_FLAVOR_DYNAMIC,
        }
    }
}

/// A window, as one of its members sees it.
pub struct Win {
    /// The engine's part.
    pub window: Box<Window>,
    comm: Comm,
    flavor: Flavor,
    /// Cached attributes.
    pub attributes: Attributes,
    /// Its error handler.
    pub errhandler: Mutex<Errhandler>,
    info: Mutex<Info>,
    /// The hint of this name, for every lock.
    no_locks: AtomicBool,
    progress: OwnPolicy,
    name: Name,
    facts: Facts,
}

/// Values of the predefined attributes, whose addresses programs get.
#[derive(Debug, Default)]
pub struct Facts {
    /// `MPI_WIN_SIZE`, an `MPI_Aint`.
    pub size: isize,
    /// `MPI_WIN_DISP_UNIT`, an `int`.
    pub unit: i32,
    /// `MPI_WIN_CREATE_FLAVOR`, as the program's ABI has it.
    pub flavor: AtomicI32,
    /// `MPI_WIN_MODEL`, as the program's ABI has it.
    pub model: AtomicI32,
}

/// What a member says about its part when a window is made.
#[derive(Clone, Copy, Debug)]
struct Offer {
    /// A number for the window; that of the first member counts.
    number: u32,
    /// What the caller lacks.
    room: Room,
    /// The class of what is wrong with the caller's arguments, or `MPI_SUCCESS`.
    trouble: i32,
    part: Part,
    spacing: Spacing,
}

/// What a member asks for about the places of the parts of a shared window: all members use what all of them ask for.
#[derive(Clone, Copy, Debug)]
struct Spacing {
    /// The parts need not follow each other.
    is_apart: bool,
    /// The alignment of the first part, or of all that are apart: a power of two.
    align: usize,
}

impl Win {
    /// Makes a window of the parts, and with the hints, that members ask for; collective. A part's base matters to
    /// [`Flavor::Create`] only. A member whose arguments are wrong meets the others all the same.
    ///
    /// # Errors
    /// `MPI_ERR_COMM` for an intercommunicator, `MPI_ERR_RMA_SHARED` for a shared window of members that do not share
    /// memory, at all members `MPI_ERR_NO_MEM` if one is short of memory and `MPI_ERR_OTHER` if one has no handle left;
    /// what is wrong with the arguments of one, and `MPI_ERR_INFO_VALUE` for its alignment or policy that is none.
    pub fn make(comm: &Comm, flavor: Flavor, asked: Outcome<(Part, Info)>, room: Room) -> Outcome<Self> {
        if comm.is_inter() {
            return Err(neutral::ERR_COMM.into());
        }
        let rank = comm.rank();
        let is_here = |&member: &_| rank.node().local(member).is_some();
        if flavor == Flavor::Shared && !comm.group().members().iter().all(is_here) {
            return Err(neutral::ERR_RMA_SHARED.into());
        }
        if rank.node().survives() && !comm.group().members().iter().all(is_here) {
            let what = format_args!("windows of several nodes are not there where ranks go on after a failure");
            return Err(Error::new(neutral::ERR_UNSUPPORTED_OPERATION, what));
        }
        let progress = OwnPolicy::of_rank(rank);
        let checked = asked.and_then(|(part, hints)| {
            let align = alignment::wanted(&hints)?;
            progress.take(&hints)?;
            Ok((part, align, hints))
        });
        let trouble = checked.as_ref().err().cloned();
        let (part, align, hints) = checked.unwrap_or_else(|_| (Part::default(), 1, Info::default()));
        let spacing = Spacing { is_apart: is_true(&hints, "alloc_shared_noncontig"), align };
        let class = trouble.as_ref().map_or(neutral::SUCCESS, Error::code);
        let offer = Offer { number: 0, room, trouble: class, part, spacing };
        Self::make_of(comm, flavor, offer, hints, progress).map_err(|error| trouble.unwrap_or(error))
    }

    /// [`Win::make`] by what the caller says about its part.
    fn make_of(comm: &Comm, flavor: Flavor, mut offer: Offer, hints: Info, progress: OwnPolicy) -> Outcome<Self> {
        let rank = comm.rank();
        let (size, align) = match flavor {
            Flavor::Allocate => (offer.part.size, offer.spacing.align.max(ALIGNMENT)),
            Flavor::Shared => shared_block(comm, &mut offer)?,
            Flavor::Create | Flavor::Dynamic => (0, 1),
        };
        let block;
        (block, offer.room) = allocated(comm, size, align, offer.room);
        if let Some(block) = block {
            offer.part.base = block.as_ptr().expose_provenance();
        }
        let drawn = (comm.me() == 0).then(|| outside::drawn_for(rank, comm.group().members()));
        offer.number = drawn.flatten().unwrap_or(0);
        let opened = coll::view(&comm.collective(), flavor.table(), offer.words(), |offers| {
            Self::open(comm, flavor, offers, &hints)
        });
        let (own, window) = match opened.map_err(Error::from).flatten() {
            Ok(opened) => opened,
            Err(error) => {
                let is_known = matches!(error.code(), neutral::MPIX_ERR_PROC_FAILED | neutral::MPIX_ERR_REVOKED);
                // When a member has failed, others may have the window, and this memory in it.
                if let Some(block) = block.filter(|_| !is_known) {
                    // SAFETY: nobody has heard of it.
                    unsafe { cohort_engine::rma::free_block(block) };
                }
                return Err(error);
            }
        };
        if let Some(block) = block {
            window.shared().keep(block);
        }
        let part = window.shared().part(window.me());
        if matches!(flavor, Flavor::Allocate | Flavor::Shared) {
            touch(&part);
        }
        let (own, window) = Self::met(comm, own, window)?;
        window.set_lockable(!is_true(&hints, "no_locks"));
        Ok(Self {
            progress,
            facts: Facts {
                size: part.size as isize,
                // The wide form of the call allows units that do not fit.
                unit: i32::try_from(part.unit).unwrap_or(i32::MAX),
                ..Facts::default()
            },
            window,
            comm: own,
            flavor,
            attributes: Attributes::new(),
            errhandler: Mutex::new(Errhandler::Fatal),
            no_locks: AtomicBool::new(is_true(&hints, "no_locks")),
            info: Mutex::new(with_defaults(hints)),
            name: Name::default(),
        })
    }

    /// A window that all members have opened. They meet in the old communicator: a member that a failure has kept from
    /// the new one's number closes that one to all.
    fn met(comm: &Comm, own: Comm, window: Box<Window>) -> Outcome<(Comm, Box<Window>)> {
        match coll::barrier_within(&comm.collective(), coll::Table::Object) {
            Ok(()) => Ok((own, window)),
            Err(error) => {
                let error = Error::from(error);
                // Others may have it.
                window.abandon(own.owner());
                own.give_up(&error);
                Err(error)
            }
        }
    }

    /// The caller's end of the window that all members agree on by these offers, if they do.
    fn open(comm: &Comm, flavor: Flavor, offers: &[Words], hints: &Info) -> Outcome<(Comm, Box<Window>)> {
        refused(offers)?;
        let rank = comm.rank();
        let number = Offer::of(&offers[0]).number;
        if number == 0 {
            return Err(exhausted(rank.node()));
        }
        let lacks = offers.iter().map(|words| Offer::of(words).room).max();
        lacks.map_or(Ok(()), |lacks| lacks.of_all(rank, "window"))?;
        let own = Comm::new(rank, number, comm.group().clone(), Errhandler::Return);
        let parts = || {
            let mut parts: Box<[Part]> = offers.iter().map(|words| Offer::of(words).part).collect();
            if flavor == Flavor::Shared {
                lay_out(&mut parts, Spacing::of_all(offers));
            }
            parts
        };
        let plan =
            Plan { number, members: own.group().members(), parts: &parts, is_dynamic: flavor == Flavor::Dynamic };
        let window = Window::open(own.owner(), &plan, reorder(hints));
        Ok((own, window))
    }

    /// Ends the window; collective. The caller's epochs are over ([`Window::idle`]).
    ///
    /// # Errors
    /// Of the collective inside.
    pub fn release(self) -> Outcome<()> {
        let met = coll::barrier_within(&self.comm.collective(), coll::Table::Object);
        let met = match self.window.is_broken() {
            true => {
                self.window.abandon(self.comm.owner());
                Ok(())
            }
            false => met.inspect(|()| self.window.close(self.comm.owner())),
        };
        self.comm.link(false);
        met?;
        self.comm.release();
        Ok(())
    }

    /// The members.
    #[must_use]
    pub fn group(&self) -> &Group {
        self.comm.group()
    }

    /// The communicator of its meetings.
    #[must_use]
    pub fn comm(&self) -> &Comm {
        &self.comm
    }

    /// Where its memory comes from.
    #[must_use]
    pub fn flavor(&self) -> Flavor {
        self.flavor
    }

    /// The caller's part.
    #[must_use]
    pub fn part(&self) -> Part {
        self.window.shared().part(self.window.me())
    }

    /// Values of its predefined attributes.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// `MPI_Win_get_name`.
    #[must_use]
    pub fn given_name(&self) -> Vec<u8> {
        self.name.given()
    }

    /// The same as text, for messages.
    #[must_use]
    pub fn name(&self) -> String {
        self.name.text()
    }

    /// `MPI_Win_set_name`.
    pub fn set_name(&self, name: &[u8]) {
        self.name.set(name);
    }

    /// `MPI_Win_get_info`.
    ///
    /// # Errors
    /// None in practice: the policy's key and name are short.
    pub fn info(&self) -> Outcome<Info> {
        let info = self.info.lock().clone();
        info.set(policy::KEY, self.progress.name())?;
        Ok(info)
    }

    /// `MPI_Win_set_info`. Keys that are not named keep their values.
    ///
    /// # Errors
    /// `MPI_ERR_INFO_VALUE` for a progress policy that is none, `MPI_ERR_NO_MEM`.
    pub fn set_info(&self, given: &Info) -> Outcome<()> {
        let hints = self.info.lock().clone();
        for index in 0..given.len() {
            if let Some(key) = given.nth_key(index)
                && let Some(value) = given.value(&key)
            {
                hints.set_bytes(&key, &value)?;
            }
        }
        self.progress.take(given)?;
        self.window.set_reorder(reorder(&hints));
        let no_locks = is_true(&hints, "no_locks");
        self.no_locks.store(no_locks, Ordering::Relaxed);
        self.window.set_lockable(!no_locks);
        *self.info.lock() = hints;
        Ok(())
    }

    /// Whether the program promised to take no locks.
    #[inline]
    #[must_use]
    pub fn has_no_locks(&self) -> bool {
        self.no_locks.load(Ordering::Relaxed)
    }
}

fn is_true(hints: &Info, key: &str) -> bool {
    matches!(hints.get(key).as_deref(), Some("true" | "1"))
}

/// The hints about the order of epochs.
fn reorder(hints: &Info) -> Reorder {
    Reorder {
        access_after_access: is_true(hints, "MPI_WIN_ACCESS_AFTER_ACCESS_REORDER"),
        access_after_exposure: is_true(hints, "MPI_WIN_ACCESS_AFTER_EXPOSURE_REORDER"),
        exposure_after_exposure: is_true(hints, "MPI_WIN_EXPOSURE_AFTER_EXPOSURE_REORDER"),
        exposure_after_access: is_true(hints, "MPI_WIN_EXPOSURE_AFTER_ACCESS_REORDER"),
    }
}

fn with_defaults(hints: Info) -> Info {
    for (key, value) in DEFAULT_HINTS {
        if hints.get(key).is_none() {
            let known = hints.set(key, value);
            debug_assert!(known.is_ok(), "short keys and values fit");
        }
    }
    hints
}

/// So much memory, and what the caller lacks when it has asked for it.
fn allocated(comm: &Comm, size: u64, align: usize, room: Room) -> (Option<NonNull<u8>>, Room) {
    if size == 0 {
        return (None, room);
    }
    match allocate(comm, size, align) {
        Some(block) => (Some(block), room),
        None => (None, room.max(Room::NoMemory)),
    }
}

/// Zeroed memory of the caller's heap.
fn allocate(comm: &Comm, size: u64, align: usize) -> Option<NonNull<u8>> {
    let size = usize::try_from(size).ok()?;
    comm.rank().enter().alloc_zeroed(size, align)
}

/// The longest part of a window whose pages are there from the start. Pages of longer ones come as they are used first:
/// programs make windows of many gigabytes of which they use little.
const TOUCHED_MOST: u64 = 2 << 20;

/// Touches each page of the caller's part, of zeros that nobody else has heard of: the kernel takes memory from the
/// NUMA node of the task that touches it first, and no operation meets a page that is not there.
fn touch(part: &Part) {
    if part.size > TOUCHED_MOST {
        return;
    }
    let end = part.base.saturating_add(part.size as usize);
    let mut at = part.base;
    while at < end {
        // SAFETY: the window's memory, which is the program's from the next barrier on.
        unsafe { with_exposed_provenance_mut::<u8>(at).write_volatile(0) };
        at = (at + 1).next_multiple_of(page());
    }
}

/// An offer as members tell it to each other.
type Words = [i32; 10];

impl Offer {
    fn words(&self) -> Words {
        let halves = |value: u64| [value as i32, (value >> 32) as i32];
        let Part { base, size, unit } = self.part;
        let [base, size, unit] = [halves(base as u64), halves(size), halves(unit.cast_unsigned())];
        let [number, room, spacing] = [self.number.cast_signed(), self.room.word(), self.spacing.word()];
        [number, room, base[0], base[1], size[0], size[1], unit[0], unit[1], spacing, self.trouble]
    }

    fn of(words: &Words) -> Self {
        let whole = |low: i32, high: i32| u64::from(low.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32;
        Self {
            number: words[0].cast_unsigned(),
            room: Room::of_word(words[1]),
            part: Part {
                base: whole(words[2], words[3]) as usize,
                size: whole(words[4], words[5]),
                unit: whole(words[6], words[7]).cast_signed(),
            },
            spacing: Spacing::of_word(words[8]),
            trouble: words[9],
        }
    }
}

impl Spacing {
    fn word(self) -> i32 {
        (self.align.trailing_zeros() << 1 | u32::from(self.is_apart)).cast_signed()
    }

    fn of_word(word: i32) -> Self {
        Self { is_apart: word & 1 != 0, align: 1 << (word >> 1) }
    }

    /// What all members use when these are their offers: parts apart if all ask for that, as a member that does not may
    /// rely on parts that follow each other (MPI-4.1 section 12.2.3), and the largest alignment.
    fn of_all(offers: &[Words]) -> Self {
        let all = offers.iter().map(|words| Offer::of(words).spacing);
        all.fold(Self { is_apart: true, align: 1 }, |all, one| Self {
            is_apart: all.is_apart && one.is_apart,
            align: all.align.max(one.align),
        })
    }

    /// The bytes between the beginnings of two parts; `None` for more than can be counted. Parts that follow each other
    /// without a gap can not all be aligned: then the alignment is that of the first.
    fn stride(self, size: u64) -> Option<u64> {
        if !self.is_apart {
            return Some(size);
        }
        let usual = if size >= MANY_PAGES { page() as u64 } else { APART };
        size.checked_next_multiple_of(usual.max(self.align as u64))
    }
}

/// Refuses what a member has asked for whose arguments are wrong.
fn refused(offers: &[Words]) -> Outcome<()> {
    let mut troubles = offers.iter().map(|words| Offer::of(words).trouble).enumerate();
    match troubles.find(|&(_, class)| class != neutral::SUCCESS) {
        None => Ok(()),
        Some((member, class)) => Err(Error::new(class, format_args!("the arguments of rank {member} are wrong"))),
    }
}

/// The bytes that the caller allocates for a shared window, the first member all, the others nothing, and their
/// alignment. Collective.
fn shared_block(comm: &Comm, offer: &mut Offer) -> Outcome<(u64, usize)> {
    offer.part.base = 0;
    let sum = |all: &[Words]| {
        refused(all)?;
        let spacing = Spacing::of_all(all);
        let mut strides = all.iter().map(|words| spacing.stride(Offer::of(words).part.size));
        let total = strides.try_fold(0_u64, |sum, stride| sum.checked_add(stride?));
        Ok::<_, Error>((total, spacing.align))
    };
    let (total, align) = coll::view(&comm.collective(), coll::Table::WindowShared, offer.words(), sum)??;
    let Some(total) = total else {
        Room::NoMemory.of_all(comm.rank(), "window")?;
        return Err(neutral::ERR_NO_MEM.into());
    };
    Ok((if comm.me() == 0 { total.max(1) } else { 0 }, align.max(page())))
}

/// Lays the parts of a shared window out one behind the other, from the first member's memory on, which has room for
/// all of them.
fn lay_out(parts: &mut [Part], spacing: Spacing) {
    let mut next = parts[0].base;
    for part in parts {
        part.base = next;
        next += spacing.stride(part.size).unwrap_or(0) as usize;
    }
}
