//! The boot records and the node image.

mod survival;

use crate::image;
use cohort_base::boot::{
    AUDIT_LIBRARY, CpuLocation, Founder, Lifecycle, MAGIC, NODE_IMAGE, NODE_OPEN, NodeApi, NodeBoot, NodeOpen,
    RankBoot, RankLocation, Rest, VERSION,
};
use cohort_base::claims::Claims;
use cohort_base::live::RankSample;
use cohort_base::picture::Fact;
use cohort_base::spawn::{Desk, WorldBoot};
use cohort_base::trace::Ring;
use cohort_bridge::{Bridge, Line};
use pip_ground::Refusal;
use std::ffi::{CStr, CString, OsStr, c_char, c_void};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where the libraries lie relative to the folder of pip-exec.
pub const FOLDERS: [&str; 2] = ["", "../lib/cohort"];

/// The folder with the node image and the MPI libraries.
///
/// # Errors
/// There is none, and the message says where it was looked for; or the dynamic linker could not be told of it.
pub fn library_folder(own: &Path) -> Result<PathBuf, Refusal> {
    let folders = FOLDERS.map(|folder| own.join(folder));
    let found = folders.iter().find(|folder| folder.join(NODE_IMAGE).is_file());
    let found = found.and_then(|folder| folder.canonicalize().ok());
    let folder = found.ok_or_else(|| {
        Refusal::new(format!(
            "{} is missing, as is {}: the installation is incomplete \
             (--no-mpi runs programs that use no MPI)",
            folders[0].join(NODE_IMAGE).display(),
            folders[1].join(NODE_IMAGE).display(),
        ))
    })?;
    let name = folder.as_os_str().as_encoded_bytes();
    if let Some(&letter) = name.iter().find(|letter| b":;$".contains(letter)) {
        return Err(Refusal::new(format!(
            "the dynamic linker cannot look for libraries in {}: the {:?} in its name means something else there; move \
             the installation",
            folder.display(),
            char::from(letter),
        )));
    }
    Ok(folder)
}

/// What one rank's record says.
#[derive(Clone, Copy, Debug)]
pub struct RankFacts {
    /// Its rank in `MPI_COMM_WORLD`.
    pub world_rank: u32,
    /// Number of its program on the command line.
    pub app_number: u32,
    /// CPU it is bound to, or -1.
    pub cpu: i32,
    /// Its program is linked to an MPI library.
    pub is_linked: bool,
    /// The world that it is spawned into; none for one that the job begins with.
    pub world: Option<&'static WorldBoot>,
    /// As in [`RankBoot`].
    pub initial_errhandler: u32,
    /// NULL, or a ring that is never freed.
    pub trace: *const Ring,
}

/// What a node image learns of its machine and of the job.
#[derive(Debug)]
pub struct Surroundings {
    /// Where its usable CPUs are.
    pub places: Vec<CpuLocation>,
    /// How many CPUs this node has for itself.
    pub cpus: u32,
    /// Where these begin, as in [`NodeBoot`].
    pub first_cpu: u32,
    /// Whether nodes of the job share too few CPUs, as in [`NodeBoot`].
    pub shares_cpus: bool,
    /// How many CPUs the job has on all nodes.
    pub universe: u32,
    /// The number of this node.
    pub node: u32,
    /// How many nodes the job has.
    pub nodes: u32,
    /// How many ranks the job has.
    pub world_ranks: u32,
    /// What tells the job from others, as in [`NodeBoot`].
    pub job: u64,
    /// Where all ranks live, as in [`NodeBoot`]: never freed, or NULL for a job of one node.
    pub homes: *const RankLocation,
    /// The network, as in [`NodeBoot`]: never freed, or NULL for a job of one node.
    pub network: *const c_void,
}

/// The record of a rank, the `rank`-th of its node, as it is before the node image is opened.
fn record(rank: usize, facts: &RankFacts, leaver: *const c_char, claims: *const Claims) -> RankBoot {
    RankBoot {
        local_rank: rank as u32,
        world_rank: facts.world_rank,
        world: facts.world.map_or(ptr::null(), ptr::from_ref),
        app_number: facts.app_number,
        cpu: facts.cpu,
        initial_errhandler: facts.initial_errhandler,
        trace: facts.trace,
        leaver: if facts.is_linked { leaver } else { ptr::null() },
        claims,
        ..RankBoot::new()
    }
}

/// Room for what ranks map at addresses of their choice, or NULL if there is none: then nobody looks.
fn claims() -> *const Claims {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // Zeros are a valid value.
    image::reserve(size_of::<Claims>(), protection, libc::MAP_NORESERVE)
        .map_or(ptr::null(), |place| place.cast_const().cast())
}

/// From so many ranks of an address space on, the kernel's walk over their map entries when one of them ends takes
/// longer than executing another program.
const MANY: usize = 256;

/// Where the header of an ELF file says where its code begins.
const ENTRY: std::ops::Range<usize> = 24..32;

/// What ranks execute to end, in this folder; NULL without one, or if the file there cannot be executed.
fn leaver(folder: Option<&Path>) -> *const c_char {
    let path = folder.map(|folder| folder.join(AUDIT_LIBRARY));
    let path = path.filter(|path| {
        let mut header = [0; ENTRY.end];
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
        read.is_ok() && header[ENTRY] != [0; 8]
    });
    let text = path.and_then(|path| CString::new(path.into_os_string().into_encoded_bytes()).ok());
    text.map_or(ptr::null(), |text| text.into_raw().cast_const())
}

/// The entries as C has them: addresses, and NULL at the end. They stay.
fn list_of(entries: Vec<CString>) -> *const *const c_char {
    let entries: &'static [CString] = entries.leak();
    let mut list: Vec<_> = entries.iter().map(|entry| entry.as_ptr()).collect();
    list.push(ptr::null());
    list.leak().as_ptr()
}

/// The records, and the node image if there is one. Never freed: ranks and node image
/// keep pointers into it.
pub struct Node {
    /// One record per rank, and room for those that may be spawned.
    records: *mut RankBoot,
    count: usize,
    capacity: usize,
    /// Where ranks ask for more of them.
    desk: &'static Desk,
    /// What each record leads to.
    leaver: *const c_char,
    claims: *const Claims,
    api: Option<&'static NodeApi>,
    node: *mut c_void,
}

/// A node whose ranks other jobs send something. It stays.
#[derive(Clone, Copy)]
pub struct Outside {
    api: &'static NodeApi,
    node: usize,
    records: usize,
    capacity: u32,
}

impl Outside {
    fn node(&self) -> *mut c_void {
        ptr::with_exposed_provenance_mut(self.node)
    }

    /// See [`NodeApi::first_foreign`].
    #[must_use]
    pub fn first_foreign(&self) -> u32 {
        // SAFETY: `node` came from the same image's open.
        unsafe { (self.api.first_foreign)(self.node()) }
    }

    /// See [`NodeApi::open_bridge`]. Once.
    pub fn open_bridge(&self, bridge: &'static Bridge) {
        // SAFETY: as above; the bridge stays.
        unsafe { (self.api.open_bridge)(self.node(), ptr::from_ref(bridge).cast()) };
    }

    /// See [`NodeApi::arrived`].
    pub fn arrived(&self, rank: u32) -> bool {
        // SAFETY: as above.
        unsafe { (self.api.arrived)(self.node(), rank) }
    }

    /// See [`SurvivalApi::failed_outside`](cohort_base::boot::SurvivalApi::failed_outside).
    pub fn failed_outside(&self, line: &'static Line, index: Option<u32>) {
        let index = index.unwrap_or(u32::MAX);
        // SAFETY: as above; the line stays.
        unsafe { (self.api.survival.failed_outside)(self.node(), ptr::from_ref(line).cast(), index) };
    }

    /// Nobody communicates in a context any more.
    pub fn close_context(&self, context: u32) {
        // SAFETY: as above.
        unsafe { (self.api.survival.close)(self.node(), context) };
    }

    /// Wakes a rank that waits for an answer.
    pub fn wake(&self, rank: u32) {
        // SAFETY: as above; the rank has asked for something.
        unsafe { (self.api.wake)(self.node(), rank) };
    }

    /// How many ranks the node may have.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Whether this rank of the node takes part in MPI no more.
    #[must_use]
    pub fn is_over(&self, rank: u32) -> bool {
        let records: *const RankBoot = ptr::with_exposed_provenance(self.records);
        // SAFETY: there is room for so many records, zeroed before they are written, and this word is atomic.
        rank < self.capacity
            && unsafe { (*records.add(rank as usize)).lifecycle.load(Ordering::Acquire) } == Lifecycle::Finalized as u32
    }
}

impl Node {
    /// See [`NodeApi::died`].
    pub fn died(&self, number: u32) {
        if let Some(api) = self.api {
            // SAFETY: `node` came from the same image's open, and the job has this rank.
            unsafe { (api.died)(self.node, number) };
        }
    }

    /// Makes the records and, with a folder, loads the node image from it and opens it.
    /// So many more ranks as there is `room` for may be added later. Call before the first rank starts; `environment`
    /// holds `KEY=VALUE` entries.
    ///
    /// # Errors
    /// The image cannot be loaded or refuses the records.
    ///
    /// # Safety
    /// What the facts and the pointers of `around` lead to is as the records want it, and is never freed.
    pub unsafe fn open(
        folder: Option<&Path>,
        (facts, room): (&[RankFacts], usize),
        environment: Vec<CString>,
        around: Surroundings,
    ) -> Result<Self, Refusal> {
        let leaver = leaver(folder.filter(|_| facts.len() >= MANY));
        let capacity = facts.len() + room;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let records = image::reserve(capacity * size_of::<RankBoot>(), protection, libc::MAP_NORESERVE)
            .map_err(|error| Refusal::new(format!("no room for the records of {capacity} ranks: {error}")))?;
        let mut this = Self {
            records: records.cast(),
            count: 0,
            capacity,
            desk: Box::leak(Box::new(Desk::new(std::process::id() as i32))),
            leaver,
            claims: claims(),
            api: None,
            node: ptr::null_mut(),
        };
        this.write_records(facts);
        if let Some(folder) = folder {
            let places: &'static [_] = around.places.leak();
            let boot = Box::leak(Box::new(NodeBoot {
                capacity: capacity as u32,
                world_ranks: around.world_ranks,
                cpus: around.cpus,
                universe: around.universe,
                first_cpu: around.first_cpu,
                shares_cpus: u32::from(around.shares_cpus),
                environment: list_of(environment),
                places: places.as_ptr(),
                places_len: places.len() as u32,
                report_fd: libc::STDERR_FILENO,
                node: around.node,
                nodes: around.nodes,
                homes: around.homes,
                network: around.network,
                desk: if room > 0 { this.desk } else { ptr::null() },
                job: around.job,
                ..NodeBoot::new(this.records, facts.len() as u32)
            }));
            this.open_image(&folder.join(NODE_IMAGE), boot)?;
        }
        this.lead_to_image(0);
        Ok(this)
    }

    /// The node of a process that has started this launcher: its one rank is there, and so is the image.
    ///
    /// # Errors
    /// It is of another version.
    ///
    /// # Safety
    /// The record is that of such a process, and all that it leads to stays.
    pub unsafe fn of_founder(founder: &Founder) -> Result<Self, Refusal> {
        // SAFETY: the caller's promise.
        let boot = unsafe { founder.boot.as_ref() }.filter(|boot| (boot.magic, boot.version) == (MAGIC, VERSION));
        // SAFETY: the same; a record of this version has both.
        let parts = boot.and_then(|boot| unsafe { Some((boot, boot.ranks.as_ref()?, boot.desk.as_ref()?)) });
        let Some((boot, rank, desk)) = parts else {
            return Err(Refusal::new("the MPI library of the process that spawns is of another version than pip-exec"));
        };
        Ok(Self {
            records: boot.ranks.cast_mut(),
            count: 1,
            capacity: boot.capacity as usize,
            desk,
            leaver: ptr::null(),
            claims: claims(),
            // SAFETY: NULL, or the image's, which stays.
            api: unsafe { rank.api.as_ref() },
            node: rank.node,
        })
    }

    /// Writes the records of the next ranks.
    fn write_records(&mut self, facts: &[RankFacts]) {
        for facts in facts {
            let record = record(self.count, facts, self.leaver, self.claims);
            // SAFETY: there is room for `capacity` of them, and nobody has seen this one yet.
            unsafe { self.records.add(self.count).write(record) };
            self.count += 1;
        }
    }

    /// Writes the records of ranks that take the places of others from `first` on.
    fn rewrite_records(&mut self, first: usize, facts: &[RankFacts]) {
        for (index, facts) in (first..).zip(facts) {
            let new = record(index, facts, self.leaver, self.claims);
            // SAFETY: a record of ours, whose rank has ended. Others may look at a number in it at this moment, and see
            // the one or the other: each is a word, written by itself.
            unsafe {
                let old = self.records.add(index);
                (&raw mut (*old).world_rank).write_volatile(new.world_rank);
                (&raw mut (*old).app_number).write_volatile(new.app_number);
                (&raw mut (*old).cpu).write_volatile(new.cpu);
                (&raw mut (*old).world).write_volatile(new.world);
                (&raw mut (*old).initial_errhandler).write_volatile(new.initial_errhandler);
                (&raw mut (*old).trace).write_volatile(new.trace);
                (&raw mut (*old).leaver).write_volatile(new.leaver);
                (*old).leaves.store(false, Ordering::Relaxed);
                (*old).last_words.forget();
                (*old).spare.forget();
                (*old).abort.store(0, Ordering::Relaxed);
                (*old).pid.store(0, Ordering::Relaxed);
                (*old).touched.store(0, Ordering::Relaxed);
                (*old).has_begun.store(false, Ordering::Relaxed);
                (*old).lifecycle.store(0, Ordering::Release);
            }
        }
    }

    /// Tells the ranks from `first` on where the node image is. None of them runs yet.
    fn lead_to_image(&mut self, first: usize) {
        for index in first..self.count {
            // SAFETY: a record of ours; the node image reads these two fields from a rank's own calls only.
            unsafe {
                (*self.records.add(index)).api = self.api.map_or(ptr::null(), ptr::from_ref);
                (*self.records.add(index)).node = self.node;
            }
        }
    }

    /// The records of all ranks.
    #[must_use]
    pub fn ranks(&self) -> &'static [RankBoot] {
        // SAFETY: so many are written, and never freed; only their atomics change.
        unsafe { std::slice::from_raw_parts(self.records, self.count) }
    }

    /// How many ranks may be added still behind all others.
    #[must_use]
    pub fn room(&self) -> usize {
        self.capacity - self.count
    }

    /// What ranks have asked for.
    #[must_use]
    pub fn desk(&self) -> &'static Desk {
        self.desk
    }

    /// Adds ranks from index `first` on, which may start then: behind all others, where there is [room](Node::room) for
    /// them, or in places that were [made ready](Node::renew).
    pub fn add(&mut self, first: usize, facts: &[RankFacts]) {
        if first == self.count {
            assert!(facts.len() <= self.room(), "no room for so many ranks");
            self.write_records(facts);
            self.lead_to_image(first);
        } else {
            assert!(first + facts.len() <= self.count, "no such places");
            self.rewrite_records(first, facts);
        }
        if let Some(api) = self.api {
            // SAFETY: `node` came from the same image's open; the records are complete, and one thread does this.
            unsafe { (api.add)(self.node, first as u32, facts.len() as u32) };
        }
    }

    /// Makes the places of ranks that have ended ready for others ([`NodeApi::renew`]); says whether they are.
    pub fn renew(&mut self, first: usize, count: usize) -> bool {
        // SAFETY: `node` came from the same image's open, one thread does this, and the ranks have ended.
        self.api.is_some_and(|api| unsafe { (api.renew)(self.node, first as u32, count as u32) })
    }

    /// Wakes a rank that waits for an answer.
    pub fn wake(&self, rank: u32) {
        if let Some(api) = self.api {
            // SAFETY: `node` came from the same image's open, and has this rank.
            unsafe { (api.wake)(self.node, rank) };
        }
    }

    /// What joins the node with other jobs, for threads of the launcher; none without a node image.
    pub fn outside(&self) -> Option<Outside> {
        let (node, records) = (self.node.expose_provenance(), self.records.expose_provenance());
        Some(Outside { api: self.api?, node, records, capacity: self.capacity as u32 })
    }

    fn open_image(&mut self, path: &Path, boot: &'static NodeBoot) -> Result<(), Refusal> {
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| Refusal::new("the path of the node image holds a NUL byte"))?;
        // SAFETY: the node image has no initialisers beyond those of a Rust library
        // without std; the name is a C string.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            // SAFETY: after a failed dlopen, dlerror returns a string.
            let reason = unsafe { CStr::from_ptr(libc::dlerror()) };
            let reason = OsStr::from_bytes(reason.to_bytes()).to_string_lossy().into_owned();
            return Err(Refusal::new(format!("cannot load the node image: {reason}")));
        }
        let symbol = CString::new(NODE_OPEN).unwrap_or_default();
        // SAFETY: a valid handle and a C string.
        let open = unsafe { libc::dlsym(library, symbol.as_ptr()) };
        let stale = || {
            Refusal::new(format!(
                "{} does not belong to this pip-exec (boot record version {VERSION}), or memory is short",
                path.display()
            ))
        };
        if open.is_null() {
            return Err(stale());
        }
        // SAFETY: the image exports this name with this type.
        let open: NodeOpen = unsafe { std::mem::transmute(open) };
        // SAFETY: the records are complete and never freed.
        let api = unsafe { open(boot, &raw mut self.node) };
        // SAFETY: NULL, or a static of the image, which is never unloaded.
        match unsafe { api.as_ref() } {
            Some(api) if api.version == VERSION => {
                self.api = Some(api);
                Ok(())
            }
            _ => Err(stale()),
        }
    }

    /// Whether ranks share the node image, so that there is something to see of them.
    pub fn has_image(&self) -> bool {
        self.api.is_some()
    }

    /// What a rank does at this moment: see [`cohort_base::live::LiveApi`].
    pub fn glance(&self, rank: usize) -> u32 {
        self.api.map_or(0, |api| {
            // SAFETY: `node` came from the same image's open.
            unsafe { (api.live.glance)(self.node, rank as u32) }
        })
    }

    /// What a rank has done up to now.
    pub fn sample(&self, rank: usize) -> RankSample {
        let mut sample = RankSample::default();
        if let Some(api) = self.api {
            // SAFETY: `node` came from the same image's open; a valid place.
            unsafe { (api.live.sample)(self.node, rank as u32, &raw mut sample) };
        }
        sample
    }

    /// Has the calls of all ranks observed from now on, or no more: by a thread, since that may wait for a rank.
    pub fn watch(&self, on: bool) {
        let Some(api) = self.api else {
            return;
        };
        static WANTED: AtomicBool = AtomicBool::new(false);
        static TURN: Mutex<()> = Mutex::new(());
        WANTED.store(on, Ordering::Release);
        let (watch, node) = (api.live.watch, self.node.expose_provenance());
        let thread = std::thread::Builder::new().name("watch".into());
        // Without a thread, calls are not counted; looks still tell what ranks do.
        let _ = thread.spawn(move || {
            let node = std::ptr::with_exposed_provenance_mut(node);
            // Whoever comes last does what was wanted last.
            let _turn = TURN.lock();
            // SAFETY: `node` came from the same image's open, and is never unmade.
            unsafe { watch(node, WANTED.load(Ordering::Acquire)) };
        });
    }

    /// How often a rank has moved something for another one.
    pub fn hits(&self, rank: usize, victim: usize) -> u64 {
        self.api.map_or(0, |api| {
            // SAFETY: `node` came from the same image's open.
            unsafe { (api.live.hits)(self.node, rank as u32, victim as u32) }
        })
    }

    /// Tells what a rank of the node waits for, and has in its queues.
    pub fn look(&self, rank: u32, hear: &mut dyn FnMut(Fact)) {
        unsafe extern "C" fn forward(data: *mut c_void, fact: *const Fact) {
            // SAFETY: `look` below gives the address of its closure; a fact is valid during the call.
            unsafe { (*data.cast::<&mut dyn FnMut(Fact)>())(*fact) }
        }
        let mut hear = hear;
        if let Some(api) = self.api
            && (rank as usize) < self.count
        {
            // SAFETY: `node` came from the same image's open, and has this rank.
            unsafe { (api.look)(self.node, rank, forward, (&raw mut hear).cast()) };
        }
    }

    /// The sleep of a rank ([`NodeApi::rest`]).
    pub fn rest(&self, rank: u32) -> Rest {
        let none = Rest { threads: 0, number: 0 };
        // SAFETY: as above.
        let ask = |api: &NodeApi| unsafe { (api.rest)(self.node, rank) };
        let api = self.api.filter(|_| (rank as usize) < self.count);
        api.map_or(none, ask)
    }

    /// Lets the node image write its report. Call after the last rank has ended.
    pub fn report(&self) {
        if let Some(api) = self.api {
            // SAFETY: `node` came from the same image's open.
            unsafe { (api.report)(self.node) };
        }
    }

    /// What the checker has found, as [`cohort_base::check`] has it. Call as [`Node::report`].
    pub fn findings(&self) -> Option<String> {
        let api = self.api?;
        let mut text = Vec::new();
        // SAFETY: `node` came from the same image's open; `take` is called with the address of `text` during this call.
        unsafe { (api.findings)(self.node, (&raw mut text).cast(), take) };
        String::from_utf8(text).ok()
    }

    /// Ranks are about to be ended: none is to die while it notes what the checker has found.
    pub fn hold_findings(&self) {
        if let Some(api) = self.api {
            // SAFETY: `node` came from the same image's open.
            unsafe { (api.hold_findings)(self.node) };
        }
    }

    /// What the node image has counted, as JSON. Call as [`Node::report`].
    pub fn statistics(&self) -> Option<String> {
        let api = self.api?;
        let mut text = Vec::new();
        // SAFETY: `node` came from the same image's open; `take` is called with the address of `text` during this call.
        unsafe { (api.statistics)(self.node, (&raw mut text).cast(), take) };
        String::from_utf8(text).ok()
    }
}

/// Adds a piece to the text that `context` leads to.
///
/// # Safety
/// `context` is the address of a vector that nobody else uses, and `text` has `length` bytes.
unsafe extern "C" fn take(context: *mut c_void, text: *const u8, length: usize) {
    // SAFETY: the caller's condition.
    let (all, piece) = unsafe {
        let all: &mut Vec<u8> = &mut *context.cast();
        (all, std::slice::from_raw_parts(text, length))
    };
    all.extend_from_slice(piece);
}
