//! Registered memory of one endpoint, and the cache of it.

use crate::{random, sys};
use std::collections::{BTreeMap, HashMap};

/// Registrations kept though nobody uses them, where that pins no memory.
const IDLE_MAX: usize = 64;

/// What is needed to register memory.
#[derive(Clone, Copy, Debug)]
pub struct Registrar {
    /// The domain that memory is registered with.
    pub domain: *mut sys::Domain,
    /// The endpoint that regions must be bound to, or NULL.
    pub endpoint: *mut sys::Ep,
    /// Whether keys are chosen by the provider.
    pub provider_keys: bool,
    /// Whether remote memory is named by its address.
    pub virtual_addresses: bool,
    /// Whether registered memory is pinned: then idle registrations are given up at once, since nobody
    /// tells us when memory is unmapped; libfabric has a cache of its own for such providers.
    pub pins: bool,
    /// Bytes of a key.
    pub key_size: usize,
}

/// One registration.
#[derive(Debug)]
struct Entry {
    region: *mut sys::Mr,
    users: usize,
    last_use: u64,
}

/// A registration in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registered {
    /// The key for other ranks and for [`Regions::release`].
    pub key: u64,
    /// What local operations pass.
    pub descriptor: *mut libc::c_void,
    /// What stands for the first byte.
    pub address: u64,
}

/// The registrations of one endpoint. Dropped before the domain is closed.
#[derive(Debug)]
pub struct Regions {
    registrar: Registrar,
    entries: BTreeMap<(usize, usize), Entry>,
    places: HashMap<u64, (usize, usize)>,
    clock: u64,
    idle: usize,
}

impl Regions {
    /// No registration yet.
    #[must_use]
    pub fn new(registrar: Registrar) -> Self {
        Self { registrar, entries: BTreeMap::new(), places: HashMap::new(), clock: 0, idle: 0 }
    }

    /// Registers memory for every use, or finds it registered.
    ///
    /// # Errors
    /// libfabric's negative number.
    ///
    /// # Safety
    /// The memory stays mapped until it is released, and longer where nothing is pinned, if it
    /// is used by then.
    pub unsafe fn register(&mut self, start: *mut u8, length: usize) -> Result<Registered, i32> {
        self.clock += 1;
        let place = (start as usize, length);
        if let Some(entry) = self.entries.get_mut(&place) {
            self.idle -= usize::from(entry.users == 0);
            entry.users += 1;
            entry.last_use = self.clock;
            let region = entry.region;
            return Ok(self.describe(region, start));
        }
        // SAFETY: the caller's promise.
        let region = unsafe { self.open(start, length)? };
        // SAFETY: a region that was opened just now.
        let key = unsafe { (*region).key };
        self.places.insert(key, place);
        let entry = Entry { region, users: 1, last_use: self.clock };
        self.entries.insert(place, entry);
        Ok(self.describe(region, start))
    }

    fn describe(&self, region: *mut sys::Mr, start: *mut u8) -> Registered {
        // SAFETY: a region that is open.
        let (key, descriptor) = unsafe { ((*region).key, (*region).mem_desc) };
        let address = if self.registrar.virtual_addresses { start as usize as u64 } else { 0 };
        Registered { key, descriptor, address }
    }

    /// # Safety
    /// As for [`Regions::register`].
    unsafe fn open(&mut self, start: *mut u8, length: usize) -> Result<*mut sys::Mr, i32> {
        let access = sys::TRANSMIT | sys::RECV | sys::READ | sys::WRITE | sys::REMOTE_READ | sys::REMOTE_WRITE;
        let key = if self.registrar.provider_keys { 0 } else { self.fresh_key()? };
        let mut region = std::ptr::null_mut();
        let domain = self.registrar.domain;
        // SAFETY: an open domain; the memory is the caller's promise.
        let result = unsafe {
            ((*(*domain).mr).reg)(
                &raw mut (*domain).fid,
                start.cast(),
                length,
                access,
                0,
                key,
                0,
                &raw mut region,
                std::ptr::null_mut(),
            )
        };
        if result != 0 {
            return Err(result);
        }
        if self.registrar.endpoint.is_null() {
            return Ok(region);
        }
        // SAFETY: both are open; such a provider wants the region bound and enabled.
        let result = unsafe {
            let fid = &raw mut (*region).fid;
            let endpoint = &raw mut (*self.registrar.endpoint).fid;
            match ((*(*fid).ops).bind)(fid, endpoint, 0) {
                0 => ((*(*fid).ops).control)(fid, sys::COMMAND_ENABLE, std::ptr::null_mut()),
                failed => failed,
            }
        };
        if result != 0 {
            close(region);
            return Err(result);
        }
        Ok(region)
    }

    /// A key that nobody can guess, as far as the provider's keys are long enough. Reads and writes carry no other
    /// proof.
    fn fresh_key(&self) -> Result<u64, i32> {
        let mask = u64::MAX >> (64 - 8 * self.registrar.key_size as u32);
        loop {
            let key = random()? & mask;
            if !self.places.contains_key(&key) {
                return Ok(key);
            }
        }
    }

    /// Ends one use of a registration; an unknown key is passed over.
    pub fn release(&mut self, key: u64) {
        let Some(&place) = self.places.get(&key) else {
            return;
        };
        let Some(entry) = self.entries.get_mut(&place) else {
            return;
        };
        entry.users -= 1;
        if entry.users > 0 {
            return;
        }
        self.idle += 1;
        if self.registrar.pins {
            self.forget(key, place);
        } else if self.idle > IDLE_MAX {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let idle = self.entries.iter().filter(|(_, entry)| entry.users == 0);
        let oldest = idle.min_by_key(|(_, entry)| entry.last_use);
        if let Some((&place, entry)) = oldest {
            // SAFETY: a region that is open.
            let key = unsafe { (*entry.region).key };
            self.forget(key, place);
        }
    }

    fn forget(&mut self, key: u64, place: (usize, usize)) {
        self.places.remove(&key);
        if let Some(entry) = self.entries.remove(&place) {
            self.idle -= 1;
            close(entry.region);
        }
    }
}

impl Drop for Regions {
    fn drop(&mut self) {
        for entry in std::mem::take(&mut self.entries).into_values() {
            close(entry.region);
        }
    }
}

fn close(region: *mut sys::Mr) {
    // SAFETY: a region that is open and that nobody uses any more. It is gone whatever the result is.
    unsafe {
        let fid = &raw mut (*region).fid;
        let _ = ((*(*fid).ops).close)(fid);
    }
}
