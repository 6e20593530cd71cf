//! One rank's objects, by handle.

use crate::attribute::Keyval;
use crate::comm::Comm;
use crate::datatype::Datatype;
use crate::errhandler::{Errhandler, UserErrhandler, initial};
use crate::error::ErrorTable;
use crate::failure::has_memory;
use crate::file::{File, Representations, UnderWay};
use crate::group::Group;
use crate::hints;
use crate::info::Info;
use crate::passing::Place;
use crate::room::Room;
use crate::session::Session;
use crate::slots::Slots;
use crate::win::Win;
use crate::{Error, Outcome};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use cohort_abi::{FIRST_DYNAMIC_DATATYPE_INDEX, HandleKind, INDEX_MAX, dynamic, neutral};
use cohort_base::settings;
use cohort_engine::Rank;
use cohort_engine::datatype::{TypeRef, predefined_all};
use cohort_engine::rma::Window;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use spin::{Mutex, Once};

mod left;

/// Windows of a rank that short calls find in one step.
const WINDOWS: usize = 64;

/// Communicators that exist from initialisation to finalisation.
struct Builtin {
    world: Comm,
    own: Comm,
}

/// Everything that handles of one rank refer to, but for requests and operations.
pub struct Objects {
    rank: &'static Rank,
    builtin: Once<Builtin>,
    /// The same between initialisation and finalisation, NULL at other times.
    live: AtomicPtr<Builtin>,
    comms: Slots<Box<Comm>>,
    /// Communicators in `comms`.
    comm_count: AtomicU32,
    /// Those that operations under way have outlived.
    left_comms: Mutex<Vec<left::LeftComm>>,
    /// Handle of the communicator with the processes that have spawned this one, or that of none.
    parent: AtomicU32,
    /// Windows in `wins`.
    win_count: AtomicU32,
    /// Files in `files`.
    file_count: AtomicU32,
    groups: Slots<Group>,
    datatypes: Slots<Box<Datatype>>,
    errhandlers: Slots<Arc<UserErrhandler>>,
    keyvals: Slots<Arc<Keyval>>,
    freed_keyvals: Mutex<FreedKeyvals>,
    infos: Slots<Box<Info>>,
    sessions: Slots<Box<Session>>,
    wins: Slots<Box<Win>>,
    files: Slots<Box<File>>,
    /// What short calls on the first windows want of them; null where there is none.
    windows: [AtomicPtr<Window>; WINDOWS],
    predefined: Once<Vec<Datatype>>,
    /// Handles of the types of Fortran's kinds, which last for ever.
    parametrised: Mutex<Vec<u32>>,
    environment: Once<Info>,
    /// Errors that the program added.
    pub errors: ErrorTable,
    /// Error handler of calls without a communicator before `MPI_Init` (MPI 9.3).
    pub initial_errhandler: Mutex<Errhandler>,
    /// Whether the program has set the error handler of `MPI_COMM_SELF`. Until then that of `MPI_COMM_WORLD` hears of
    /// errors that belong to no object, as programs expect that know MPI before version 4.
    pub has_own_errhandler: AtomicBool,
    /// Operations on files that go on while the program computes.
    under_way: Once<&'static UnderWay>,
    /// Error handler of `MPI_FILE_NULL`, which new files inherit (MPI 14.7).
    pub file_errhandler: Mutex<Errhandler>,
    /// Data representations of the program (MPI 14.5.3), which last for ever.
    pub representations: Representations,
    /// The file that is being opened or closed.
    pub passing: Place,
}

/// The error when a kind of object has an object for each of its handles.
#[cold]
fn no_index(kind: &str) -> Error {
    let what = format_args!("no {kind} handle is left ({INDEX_MAX}): free some");
    Error::new(neutral::ERR_NO_MEM, what)
}

macro_rules! kinds {
    ($($field:ident $type:ty, $kind:ident, $error:ident, [$($add:ident)?], $get:ident, $remove:ident;)*) => {
        impl Objects {$(
            $(
            /// Keeps an object and returns its handle.
            ///
            /// # Errors
            /// `MPI_ERR_NO_MEM`, also when no index is left.
            pub fn $add(&self, object: $type) -> Outcome<u32> {
                has_memory()?;
                let index = self.$field.insert(&mut self.rank.enter(), object);
                index.map(|index| dynamic(HandleKind::$kind, index)).ok_or_else(|| no_index(stringify!($kind)))
            }
            )?

            /// The object of a dynamic handle.
            ///
            /// # Errors
            /// The error class of a bad handle of this kind.
            #[inline]
            pub fn $get(&self, handle: u32) -> Outcome<&$type> {
                // Handles of other kinds give an index that is too large.
                let index = handle.wrapping_sub(dynamic(HandleKind::$kind, 0));
                // SAFETY: MPI forbids to free a handle while another thread uses it.
                match unsafe { self.$field.first(index) } {
                    Some(found) => Ok(found),
                    // SAFETY: the same.
                    None => unsafe { self.$field.beyond_first(index) }.ok_or_else(|| neutral::$error.into()),
                }
            }

            /// Takes the object of a dynamic handle out.
            ///
            /// # Errors
            /// The error class of a bad handle of this kind.
            pub fn $remove(&self, handle: u32) -> Outcome<$type> {
                self.$get(handle)?;
                let index = handle & INDEX_MAX;
                self.$field.remove(&mut self.rank.enter(), index).ok_or_else(|| neutral::$error.into())
            }
        )*}
    };
}

kinds! {
    comms Box<Comm>, Comm, ERR_COMM, [], dynamic_comm, take_comm;
    groups Group, Group, ERR_GROUP, [add_group], dynamic_group, remove_group;
    errhandlers Arc<UserErrhandler>, Errhandler, ERR_ERRHANDLER, [add_errhandler], errhandler, remove_errhandler;
    keyvals Arc<Keyval>, Keyval, ERR_KEYVAL, [insert_keyval], any_keyval, remove_keyval;
    infos Box<Info>, Info, ERR_INFO, [add_info], info, remove_info;
    sessions Box<Session>, Session, ERR_SESSION, [add_session], session, remove_session;
    wins Box<Win>, Win, ERR_WIN, [], win, take_win;
    files Box<File>, File, ERR_FILE, [], file, take_file;
}

impl Objects {
    /// Keeps a window and returns its handle. The caller has seen that there [is
    /// room](Self::room_for_win), and the other members have heard so.
    ///
    /// # Errors
    /// `MPI_ERR_OTHER` when another thread has taken the last index.
    pub fn add_win(&self, win: Box<Win>) -> Outcome<u32> {
        let window = core::ptr::from_ref(&*win.window).cast_mut();
        let index = self.wins.insert(&mut self.rank.enter(), win);
        let handle = dynamic(HandleKind::Win, index.ok_or(neutral::ERR_OTHER)?);
        self.win(handle)?.comm().link(true);
        self.win_count.fetch_add(1, Ordering::Relaxed);
        if let Some(place) = self.windows.get((handle & INDEX_MAX) as usize) {
            // Release pairs with the Acquire in `window`.
            place.store(window, Ordering::Release);
        }
        Ok(handle)
    }

    /// Takes the window of a handle out.
    ///
    /// # Errors
    /// `MPI_ERR_WIN`
    pub fn remove_win(&self, handle: u32) -> Outcome<Box<Win>> {
        let win = self.take_win(handle)?;
        self.win_count.fetch_sub(1, Ordering::Relaxed);
        if let Some(place) = self.windows.get((handle & INDEX_MAX) as usize) {
            place.store(core::ptr::null_mut(), Ordering::Relaxed);
        }
        Ok(win)
    }

    /// The window of a handle's [word](cohort_abi::Handle::word), if it is one of the first that the rank has.
    #[inline(always)]
    #[must_use]
    pub fn window(&self, word: usize) -> Option<&Window> {
        // Handles of other kinds give an index that is too large.
        let place = self.windows.get(word.wrapping_sub(dynamic(HandleKind::Win, 0) as usize))?;
        // SAFETY: windows of the table live until their handle is taken out, and MPI forbids to free a handle while
        // another thread uses it.
        unsafe { place.load(Ordering::Acquire).as_ref() }
    }
}

/// Keyvals that the program has freed while attributes used them. Their numbers are given back some time after
/// the last of these attributes is gone.
struct FreedKeyvals {
    numbers: Vec<u32>,
    /// How many there are when the next look for unused ones is worth its time.
    enough: usize,
}

impl FreedKeyvals {
    const FEW: usize = 16;

    const fn new() -> Self {
        Self { numbers: Vec::new(), enough: Self::FEW }
    }
}

impl Objects {
    /// The objects of a rank that has not been initialised.
    #[must_use]
    pub fn new(rank: &'static Rank) -> Self {
        Self {
            rank,
            builtin: Once::new(),
            live: AtomicPtr::new(core::ptr::null_mut()),
            comms: Slots::new(),
            comm_count: AtomicU32::new(0),
            left_comms: Mutex::new(Vec::new()),
            parent: AtomicU32::new(neutral::handle::COMM_NULL),
            win_count: AtomicU32::new(0),
            file_count: AtomicU32::new(0),
            groups: Slots::new(),
            datatypes: Slots::new(),
            errhandlers: Slots::new(),
            keyvals: Slots::new(),
            freed_keyvals: Mutex::new(FreedKeyvals::new()),
            infos: Slots::new(),
            sessions: Slots::new(),
            wins: Slots::new(),
            files: Slots::new(),
            windows: [const { AtomicPtr::new(core::ptr::null_mut()) }; WINDOWS],
            predefined: Once::new(),
            parametrised: Mutex::new(Vec::new()),
            environment: Once::new(),
            errors: ErrorTable::new(),
            initial_errhandler: Mutex::new(initial(rank).into()),
            has_own_errhandler: AtomicBool::new(false),
            under_way: Once::new(),
            file_errhandler: Mutex::new(Errhandler::Return),
            representations: Representations::default(),
            passing: Place::default(),
        }
    }

    /// The rank.
    #[must_use]
    pub fn rank(&self) -> &'static Rank {
        self.rank
    }

    /// The witness that this is a call of the program.
    #[must_use]
    pub fn owner(&self) -> cohort_engine::Owner<'static> {
        crate::owner_of(self.rank)
    }

    /// Makes `MPI_COMM_WORLD` and `MPI_COMM_SELF`. Not collective: members meet in the
    /// shared part by its number.
    pub fn initialize(&self) {
        let builtin = self.builtin.call_once(|| {
            let node = self.rank.node();
            let handler = || self.initial_errhandler.lock().clone();
            let world = Comm::world(self.rank, handler());
            world.set_name(b"MPI_COMM_WORLD");
            let alone = Group::new(alloc::vec![self.rank.peer()], self.rank.peer());
            let number = node.context_of_self(self.rank.id());
            let own = Comm::new(self.rank, number, alone, handler());
            own.set_name(b"MPI_COMM_SELF");
            if let Some(parent) = Comm::with_parents(self.rank, handler()) {
                // A fresh rank has room for a handle.
                let handle = self.add_comm(Box::new(parent)).unwrap_or(neutral::handle::COMM_NULL);
                self.parent.store(handle, Ordering::Relaxed);
            }
            Builtin { world, own }
        });
        let builtin = core::ptr::from_ref(builtin).cast_mut();
        self.live.store(builtin, Ordering::Release);
    }

    /// The communicator with the processes that have spawned this one, until it is freed; else that of none.
    pub fn parent(&self) -> u32 {
        self.parent.load(Ordering::Relaxed)
    }

    /// From now on the predefined communicators are refused (`MPI_Finalize`).
    pub fn end(&self) {
        self.live.store(core::ptr::null_mut(), Ordering::Release);
    }

    /// The communicator of a handle.
    ///
    /// # Errors
    /// `MPI_ERR_COMM`; `MPI_ERR_OTHER` for a predefined one before initialisation or after
    /// finalisation.
    #[inline]
    pub fn comm(&self, handle: u32) -> Outcome<&Comm> {
        match handle {
            neutral::handle::COMM_WORLD => Ok(&self.builtin()?.world),
            neutral::handle::COMM_SELF => Ok(&self.builtin()?.own),
            handle => self.dynamic_comm(handle).map(|comm| &**comm),
        }
    }

    /// Keeps a keyval and returns its number.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM` when no number is left.
    pub fn add_keyval(&self, keyval: Arc<Keyval>) -> Outcome<u32> {
        let mut freed = self.freed_keyvals.lock();
        if freed.numbers.len() >= freed.enough {
            freed.numbers.retain(|&number| {
                let is_used = self.any_keyval(number).is_ok_and(Self::has_attributes);
                if !is_used {
                    let removed = self.remove_keyval(number);
                    debug_assert!(removed.is_ok(), "a freed keyval keeps its number");
                }
                is_used
            });
            freed.enough = FreedKeyvals::FEW + 2 * freed.numbers.len();
        }
        drop(freed);
        self.insert_keyval(keyval)
    }

    /// Whether attributes use a keyval: each of them has a reference, and its slot has one.
    fn has_attributes(keyval: &Arc<Keyval>) -> bool {
        Arc::strong_count(keyval) > 1
    }

    /// The keyval of a number. One that the program has freed lasts as long as attributes use it (MPI 7.7.2).
    ///
    /// # Errors
    /// `MPI_ERR_KEYVAL`.
    pub fn keyval(&self, number: u32) -> Outcome<Arc<Keyval>> {
        let keyval = self.any_keyval(number)?;
        match keyval.is_freed() && !Self::has_attributes(keyval) {
            true => Err(neutral::ERR_KEYVAL.into()),
            false => Ok(keyval.clone()),
        }
    }

    /// Frees a keyval. The program may do so again as long as attributes use it.
    ///
    /// # Errors
    /// `MPI_ERR_KEYVAL`.
    pub fn free_keyval(&self, number: u32) -> Outcome<()> {
        let was_freed = self.keyval(number)?.free();
        if Self::has_attributes(self.any_keyval(number)?) {
            if !was_freed {
                self.freed_keyvals.lock().numbers.push(number);
            }
            return Ok(());
        }
        self.remove_keyval(number).map(drop)
    }

    /// The rank's communicator to which a context of messages or of collectives belongs, for somebody who only looks:
    /// calls `look` with it.
    ///
    /// # Safety
    /// The rank's claim is held.
    pub unsafe fn with_comm_of(&self, context: u32, look: &mut dyn FnMut(&Comm)) {
        // SAFETY: NULL, or the builtin ones, which last for ever.
        if let Some(builtin) = unsafe { self.live.load(Ordering::Acquire).as_ref() } {
            let both = [&builtin.world, &builtin.own];
            if let Some(comm) = both.into_iter().find(|comm| comm.has_context(context)) {
                return look(comm);
            }
        }
        let comms = &self.comms;
        // SAFETY: the caller's promise; nobody reserves slots of communicators or files.
        unsafe {
            comms.each(|comm| {
                let is_it = comm.has_context(context);
                if is_it {
                    look(comm);
                }
                !is_it
            });
            self.files.each(|file| {
                let is_it = file.comm().has_context(context);
                if is_it {
                    look(file.comm());
                }
                !is_it
            });
        }
    }

    /// Whether there is room for one communicator more, besides the predefined ones.
    pub fn room_for_comm(&self) -> Room {
        self.room(&self.comms, &self.comm_count)
    }

    /// Whether there is room for one window more.
    pub fn room_for_win(&self) -> Room {
        self.room(&self.wins, &self.win_count)
    }

    /// What the rank has for operations on files that are under way.
    pub fn under_way(&self) -> &'static UnderWay {
        // Threads may look at it as long as the rank lives.
        self.under_way.call_once(|| Box::leak(Box::new(UnderWay::new(self.rank))))
    }

    /// Waits for operations on files that are under way, and ends their threads.
    pub fn end_operations(&self) {
        self.under_way.get().inspect(|under_way| under_way.end());
    }

    /// Whether there is room for one file more.
    pub fn room_for_file(&self) -> Room {
        self.room(&self.files, &self.file_count)
    }

    /// Keeps a file and returns its handle. The caller has seen that there [is room](Self::room_for_file), and the
    /// other members have heard so.
    ///
    /// # Errors
    /// `MPI_ERR_OTHER` when another thread has taken the last index.
    pub fn add_file(&self, file: Box<File>) -> Outcome<u32> {
        let index = self.files.insert(&mut self.rank.enter(), file);
        let handle = dynamic(HandleKind::File, index.ok_or(neutral::ERR_OTHER)?);
        self.file(handle)?.comm().link(true);
        self.file_count.fetch_add(1, Ordering::Relaxed);
        Ok(handle)
    }

    /// Takes the file of a handle out.
    ///
    /// # Errors
    /// `MPI_ERR_FILE`.
    pub fn remove_file(&self, handle: u32) -> Outcome<Box<File>> {
        let file = self.take_file(handle)?;
        self.file_count.fetch_sub(1, Ordering::Relaxed);
        Ok(file)
    }

    fn room<T>(&self, slots: &Slots<T>, count: &AtomicU32) -> Room {
        let most = self.rank.node().settings().handles_max;
        let is_full = count.load(Ordering::Relaxed) >= most;
        match is_full || !slots.has_room(&mut self.rank.enter()) {
            true => Room::NoHandle,
            false if has_memory().is_err() => Room::NoMemory,
            false => Room::There,
        }
    }

    /// Keeps a communicator and returns its handle. The caller has seen that there [is
    /// room](Self::room_for_comm), and the other members have heard so.
    ///
    /// # Errors
    /// `MPI_ERR_OTHER` when another thread has taken the last index.
    pub fn add_comm(&self, comm: Box<Comm>) -> Outcome<u32> {
        comm.link(true);
        let index = self.comms.try_insert(&mut self.rank.enter(), comm);
        let index = index.map_err(|comm| {
            comm.link(false);
            comm.release();
            Error::from(neutral::ERR_OTHER)
        })?;
        self.comm_count.fetch_add(1, Ordering::Relaxed);
        Ok(dynamic(HandleKind::Comm, index))
    }

    /// What `MPI_INFO_ENV` refers to (MPI 11.2.1): the keys that this runtime knows.
    pub fn environment_info(&self) -> &Info {
        self.environment.call_once(|| hints::of_environment(self.rank, &self.world_memory_kinds()))
    }

    /// The kinds of memory of objects of the world model, for `mpi_memory_alloc_kinds`.
    #[must_use]
    pub fn world_memory_kinds(&self) -> String {
        let mut rows = settings::TABLE.iter();
        let row = rows.find(|row| row.name == settings::MEMORY_KINDS);
        hints::memory_kinds(row.map_or("", |row| self.rank.node().setting(row)))
    }

    #[inline]
    fn builtin(&self) -> Outcome<&Builtin> {
        // SAFETY: NULL or what `initialize` stored, which lives as long as `self`. Acquire pairs
        // with the release there.
        unsafe { self.live.load(Ordering::Acquire).as_ref() }.ok_or_else(|| neutral::ERR_OTHER.into())
    }

    /// The group of a handle.
    ///
    /// # Errors
    /// `MPI_ERR_GROUP`.
    pub fn group(&self, handle: u32) -> Outcome<Group> {
        if handle == neutral::handle::GROUP_EMPTY {
            return Ok(Group::new(Vec::new(), self.rank.peer()));
        }
        self.dynamic_group(handle).cloned()
    }

    /// Keeps a group and returns its handle; that of `MPI_GROUP_EMPTY` for an empty one.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`.
    pub fn publish_group(&self, group: Group) -> Outcome<u32> {
        if group.size() == 0 { Ok(neutral::handle::GROUP_EMPTY) } else { self.add_group(group) }
    }

    /// Keeps a datatype and returns its handle.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`.
    pub fn add_datatype(&self, datatype: Datatype) -> Outcome<u32> {
        has_memory()?;
        let index = self.datatypes.insert(&mut self.rank.enter(), Box::new(datatype));
        let handle = index.map(|index| index + FIRST_DYNAMIC_DATATYPE_INDEX);
        match handle.filter(|&index| index <= INDEX_MAX) {
            Some(index) => Ok(dynamic(HandleKind::Datatype, index)),
            None => Err(no_index("Datatype")),
        }
    }

    /// The handle of a type of Fortran's kinds: the same arguments give the same handle
    /// (MPI-4.1, 19.1.9).
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`.
    pub fn publish_parametrised(&self, layout: TypeRef) -> Outcome<u32> {
        let mut known = self.parametrised.lock();
        let contents = layout.contents();
        let is_same = |&&handle: &&u32| {
            self.datatype(handle).is_ok_and(|other| {
                let other = other.layout.contents();
                other.combiner == contents.combiner && other.integers == contents.integers
            })
        };
        if let Some(&handle) = known.iter().find(is_same) {
            return Ok(handle);
        }
        let handle = self.add_datatype(Datatype::predefined(layout))?;
        known.push(handle);
        Ok(handle)
    }

    fn datatype_index(handle: u32) -> Option<u32> {
        let index = handle & INDEX_MAX;
        let index = (handle == dynamic(HandleKind::Datatype, index)).then_some(index)?;
        index.checked_sub(FIRST_DYNAMIC_DATATYPE_INDEX)
    }

    /// The datatype of a handle, predefined or not.
    ///
    /// # Errors
    /// `MPI_ERR_TYPE`.
    #[inline]
    pub fn datatype(&self, handle: u32) -> Outcome<&Datatype> {
        if let Some(index) = Self::datatype_index(handle) {
            // SAFETY: MPI forbids to free a handle while another thread uses it.
            let datatype = unsafe { self.datatypes.get(index) };
            return datatype.map(|datatype| &**datatype).ok_or_else(|| neutral::ERR_TYPE.into());
        }
        self.predefined_datatype(handle).ok_or_else(|| neutral::ERR_TYPE.into())
    }

    fn predefined_datatype(&self, handle: u32) -> Option<&Datatype> {
        let all = self.predefined.call_once(|| predefined_all().map(Datatype::predefined).collect());
        all.iter().find(|datatype| datatype.layout.handle() == handle)
    }

    /// Takes the datatype of a dynamic handle out.
    ///
    /// # Errors
    /// `MPI_ERR_TYPE`, also for a predefined one.
    pub fn remove_datatype(&self, handle: u32) -> Outcome<Box<Datatype>> {
        let index = Self::datatype_index(handle).ok_or(neutral::ERR_TYPE)?;
        self.datatypes.remove(&mut self.rank.enter(), index).ok_or_else(|| neutral::ERR_TYPE.into())
    }
}
