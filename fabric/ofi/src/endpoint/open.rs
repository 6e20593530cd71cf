//! Makes and closes an endpoint's objects.

use super::{Objects, OfiEndpoint};
use crate::library::{Information, Library};
use crate::operations::{OperationKind, Pool};
use crate::provider::Provider;
use crate::regions::{Regions, Registrar};
use crate::sys;
use cohort_fabric_host::address::LENGTH_MAX;
use cohort_fabric_host::endpoint::{EndpointPlace, RejectedPackets};
use std::mem::ManuallyDrop;
use std::ptr::{null, null_mut};

/// Sends, reads and writes under way, for each rank that shares an endpoint.
const SENDS: usize = 256;

/// Fewer where each has a buffer for a whole packet.
const SENDS_COPIED: usize = 64;

/// Buffers that wait for packets, for each rank that shares an endpoint.
const RECEIVES: usize = 64;

/// More ranks than that add nothing.
const RANKS_COUNTED: usize = 4;

impl Objects {
    const NONE: Self = Self {
        fabric: null_mut(),
        domain: null_mut(),
        addresses: null_mut(),
        completions: null_mut(),
        endpoint: null_mut(),
    };

    /// Opens everything but the endpoint.
    fn open(
        library: &Library,
        info: &Information,
        (peers, completions): (usize, usize),
        sleeps: bool,
    ) -> Result<Self, String> {
        let mut this = Self::NONE;
        let failed = |what: &str, result: i32| Err(format!("cannot open {what}: {}", library.text(result)));
        let info = info.first;
        // SAFETY: libfabric's own description, and objects that were opened just before.
        unsafe {
            let result = (library.open_fabric)((*info).fabric_attr, &raw mut this.fabric, null_mut());
            if result != 0 {
                return failed("the fabric", result);
            }
            let fabric = this.fabric;
            let result = ((*(*fabric).ops).domain)(fabric, info, &raw mut this.domain, null_mut());
            if result != 0 {
                return failed("the network interface", result);
            }
            let domain = this.domain;
            let mut vector = sys::AvAttr {
                r#type: sys::AV_TABLE,
                rx_ctx_bits: 0,
                count: peers,
                ep_per_node: 0,
                name: null(),
                map_addr: null_mut(),
                flags: 0,
            };
            let result = ((*(*domain).ops).av_open)(domain, &raw mut vector, &raw mut this.addresses, null_mut());
            if result != 0 {
                return failed("the address vector", result);
            }
            let mut result = -1;
            if sleeps {
                result = this.open_completions(completions, sys::WAIT_FD);
            }
            if result != 0 {
                result = this.open_completions(completions, sys::WAIT_NONE);
            }
            if result != 0 {
                return failed("the completion queue", result);
            }
            let result = ((*(*domain).ops).endpoint)(domain, info, &raw mut this.endpoint, null_mut());
            if result != 0 {
                return failed("the endpoint", result);
            }
        }
        this.enable(library)?;
        Ok(this)
    }

    fn open_completions(&mut self, count: usize, wait: i32) -> i32 {
        let mut attributes = sys::CqAttr {
            size: count,
            flags: 0,
            format: sys::CQ_FORMAT_MSG,
            wait_obj: wait,
            signaling_vector: 0,
            wait_cond: 0,
            wait_set: null_mut(),
        };
        let domain = self.domain;
        // SAFETY: an open domain.
        unsafe { ((*(*domain).ops).cq_open)(domain, &raw mut attributes, &raw mut self.completions, null_mut()) }
    }

    /// Binds the endpoint to its queue and vector, and enables it.
    fn enable(&self, library: &Library) -> Result<(), String> {
        // SAFETY: all objects are open.
        let result = unsafe {
            let fid = &raw mut (*self.endpoint).fid;
            let ops = (*fid).ops;
            let vector = &raw mut (*self.addresses).fid;
            let queue = &raw mut (*self.completions).fid;
            match ((*ops).bind)(fid, vector, 0) {
                0 => match ((*ops).bind)(fid, queue, sys::TRANSMIT | sys::RECV) {
                    0 => ((*ops).control)(fid, sys::COMMAND_ENABLE, null_mut()),
                    failed => failed,
                },
                failed => failed,
            }
        };
        if result == 0 { Ok(()) } else { Err(format!("cannot enable the endpoint: {}", library.text(result))) }
    }

    /// The endpoint's address.
    fn name(&self, library: &Library) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0_u8; LENGTH_MAX];
        let mut length = bytes.len();
        // SAFETY: an open endpoint, and room of the length that is passed.
        let result = unsafe {
            ((*(*self.endpoint).cm).getname)(&raw mut (*self.endpoint).fid, bytes.as_mut_ptr().cast(), &raw mut length)
        };
        if result != 0 || length > bytes.len() {
            return Err(format!("cannot find out the endpoint's address: {}", library.text(result)));
        }
        bytes.truncate(length);
        Ok(bytes)
    }

    /// The descriptor that becomes readable when there are completions.
    fn wait_descriptor(&self) -> Option<i32> {
        let mut descriptor = -1_i32;
        // SAFETY: an open queue; the command stores an int.
        let result = unsafe {
            let fid = &raw mut (*self.completions).fid;
            ((*(*fid).ops).control)(fid, sys::COMMAND_GETWAIT, (&raw mut descriptor).cast())
        };
        (result == 0 && descriptor >= 0).then_some(descriptor)
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        let close = |fid: *mut sys::Fid| {
            // SAFETY: an open object that nobody uses any more; it is gone whatever the result is.
            unsafe {
                let _ = ((*(*fid).ops).close)(fid);
            }
        };
        // SAFETY: each is NULL or open, and closed before what it was made from.
        unsafe {
            if !self.endpoint.is_null() {
                close(&raw mut (*self.endpoint).fid);
            }
            if !self.completions.is_null() {
                close(&raw mut (*self.completions).fid);
            }
            if !self.addresses.is_null() {
                close(&raw mut (*self.addresses).fid);
            }
            if !self.domain.is_null() {
                close(&raw mut (*self.domain).fid);
            }
            if !self.fabric.is_null() {
                close(&raw mut (*self.fabric).fid);
            }
        }
    }
}

impl OfiEndpoint {
    /// Opens an endpoint and posts its receive buffers.
    ///
    /// # Errors
    /// A text that says which step failed and why.
    pub fn open(library: &Library, provider: &Provider, place: EndpointPlace) -> Result<Self, String> {
        let info = provider.copy();
        let quirks = provider.quirks;
        quirks.before_open()?;
        let always_copied = provider.local_registration || provider.pieces < 3;
        let ranks = place.served().count().min(RANKS_COUNTED);
        let each = if always_copied { SENDS_COPIED } else { SENDS };
        let (sends, receives) = (each * ranks, RECEIVES * ranks);
        let sizes = (place.job.nodes() * place.count, sends + receives);
        let objects = Objects::open(library, &info, sizes, !quirks.sleeps_forever)?;
        let room = Pool::room_for(provider.packet, always_copied);
        let endpoint = if provider.endpoint_regions { objects.endpoint } else { null_mut() };
        let registrar = Registrar {
            domain: objects.domain,
            endpoint,
            provider_keys: provider.provider_keys,
            virtual_addresses: provider.virtual_addresses,
            pins: provider.pins,
            key_size: provider.key_size,
        };
        let mut this = Self {
            place,
            regions: ManuallyDrop::new(Regions::new(registrar)),
            sends: ManuallyDrop::new(Pool::new(sends, room)),
            receives: ManuallyDrop::new(Pool::new(receives, provider.packet)),
            descriptors: [null_mut(); 2],
            unposted: Vec::with_capacity(receives),
            peers: Vec::new(),
            under_way_max: sends as u32,
            connects_first: quirks.connect_waits,
            deaths_seen: 0,
            rejected: RejectedPackets::default(),
            inject: provider.inject,
            local_registration: provider.local_registration,
            wait_descriptor: objects.wait_descriptor(),
            name: objects.name(library)?,
            objects: ManuallyDrop::new(objects),
            left_open: quirks.close_waits,
        };
        if provider.local_registration {
            let pools = [this.sends.memory(), this.receives.memory()];
            for (index, (start, length)) in pools.into_iter().enumerate() {
                // SAFETY: the pools live as long as the registrations, and longer.
                let registered = unsafe { this.regions.register(start, length) };
                let registered = registered.map_err(|result| {
                    format!("cannot register {length} bytes of memory: {}; see `ulimit -l`", library.text(result))
                })?;
                this.descriptors[index] = registered.descriptor;
            }
        }
        while let Some(receive) = this.receives.take(OperationKind::Receive, 0) {
            this.unposted.push(receive);
        }
        this.post();
        Ok(this)
    }
}

impl Drop for OfiEndpoint {
    fn drop(&mut self) {
        if self.left_open {
            // The provider may still write to the receive buffers: they stay too.
            return;
        }
        // SAFETY: none is used again. Regions go before the domain, and buffers after the endpoint that uses them.
        unsafe {
            ManuallyDrop::drop(&mut self.regions);
            ManuallyDrop::drop(&mut self.objects);
            ManuallyDrop::drop(&mut self.sends);
            ManuallyDrop::drop(&mut self.receives);
        }
    }
}
