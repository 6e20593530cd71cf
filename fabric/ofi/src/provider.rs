//! Which provider and interface are used, and what was agreed on with it.

use crate::library::{Information, Library};
use crate::quirks::Quirks;
use crate::{Unavailable, sys};
use std::ffi::{CStr, CString};

/// Providers in order of preference, if none is asked for: fabrics of the machine's own. TCP needs no libfabric.
pub(crate) const ORDER: [&str; 5] = ["cxi", "opx", "psm2", "efa", "verbs"];

/// Providers that must be asked for.
const OTHERS: [&str; 1] = ["tcp"];

/// Providers that open descriptors on threads of their own, where ranks cannot share them. They are old ones
/// that `tcp` replaces.
const THREADED: [&str; 1] = ["sockets"];

/// Registration modes that are handled.
const MR_MODES: i32 = sys::MR_LOCAL | sys::MR_VIRT_ADDR | sys::MR_ALLOCATED | sys::MR_PROV_KEY | sys::MR_ENDPOINT;

/// Providers that copy memory by system calls and loads, so that a registration is a note and pins nothing.
const NOTHING_PINNED: [&str; 4] = ["tcp", "net", "udp", "shm"];

/// Bytes of the longest packet with its prefix: what the reliable layer above TCP
/// sends eagerly.
const PACKET_MAX: usize = 16 << 10;

/// Bytes of the longest read or write: enough to keep a network busy, little enough to share the work.
const TRANSFER_MAX: usize = 64 << 20;

/// An interface, and what its provider offers.
#[derive(Debug)]
pub struct Provider {
    /// libfabric's description, from which endpoints are made.
    pub information: Information,
    /// For example `tcp;ofi_rxm`.
    pub name: String,
    /// For example `eth0`.
    pub interface: String,
    /// Bytes of the longest packet, its prefix counted.
    pub packet: usize,
    /// Bytes of one read or write; 0 without them.
    pub transfer: usize,
    /// Bytes that are sent without completion.
    pub inject: usize,
    /// Pieces that a packet may be sent from.
    pub pieces: usize,
    /// Whether local memory must be registered.
    pub local_registration: bool,
    /// Whether remote memory is named by its address rather than by an offset.
    pub virtual_addresses: bool,
    /// Whether the provider chooses keys.
    pub provider_keys: bool,
    /// Whether regions are bound to an endpoint.
    pub endpoint_regions: bool,
    /// Whether registered memory is pinned, so that a stale registration is dangerous.
    pub pins: bool,
    /// Bytes of a key.
    pub key_size: usize,
    /// What it does otherwise.
    pub quirks: Quirks,
}

impl Provider {
    /// Chooses one. `wanted` and `interface` are the user's words; `others` names what there is besides libfabric.
    ///
    /// # Errors
    /// A text that names what there is and what to set; [`Unavailable::Broken`] if one of several has an interface that
    /// does not do what is needed.
    pub fn choose(
        library: &Library,
        wanted: Option<&str>,
        interface: Option<&str>,
        others: &str,
    ) -> Result<Self, Unavailable> {
        let source =
            interface.filter(|text| text.parse::<std::net::IpAddr>().is_ok()).and_then(|text| CString::new(text).ok());
        let device = if source.is_some() { None } else { interface };
        if let Some(name) = wanted.filter(|name| THREADED.contains(name)) {
            return Err(Unavailable::Absent(format!(
                "libfabric's provider \"{name}\" (COHORT_NET_PROVIDER) opens descriptors on threads of its \
                 own, which ranks cannot share; use tcp"
            )));
        }
        let names = wanted.map_or(ORDER.to_vec(), |name| vec![name]);
        let mut last = -sys::ENODATA;
        let mut broken = None;
        for name in names {
            let quirks = Quirks::of(name);
            quirks.set_variables();
            let source = quirks.own_name().or_else(|| source.clone());
            for capabilities in [sys::MSG | sys::RMA, sys::MSG] {
                let hints = hints(library, name, capabilities);
                match library.query(source.as_ref(), &hints) {
                    Ok(found) => {
                        if let Some(info) = found.iter().find(|info| fits(info, device)) {
                            return Ok(Self::of(found.copy(info), capabilities));
                        }
                    }
                    Err(result) => last = result,
                }
            }
            broken = broken.or_else(|| unfit(library, name, source.as_ref(), device, last));
        }
        Err(match broken {
            Some(problem) if wanted.is_none() => Unavailable::Broken(problem),
            _ => Unavailable::Absent(refusal(library, wanted, interface, last, others)),
        })
    }

    fn of(information: Information, capabilities: u64) -> Self {
        let info = information.get();
        // SAFETY: libfabric fills all attributes of what it finds; names are C strings.
        let (tx, ep, domain, name, interface) = unsafe {
            (
                &*info.tx_attr,
                &*info.ep_attr,
                &*info.domain_attr,
                text((*info.fabric_attr).prov_name),
                text((*info.domain_attr).name),
            )
        };
        let mode = domain.mr_mode;
        let has = |bit: i32| mode & bit != 0;
        let base = name.split(';').next().unwrap_or("");
        let pins = !NOTHING_PINNED.contains(&base);
        let quirks = Quirks::of(base);
        Self {
            packet: quirks.packet_max().min(PACKET_MAX).min(ep.max_msg_size),
            transfer: if capabilities & sys::RMA == 0 { 0 } else { TRANSFER_MAX.min(ep.max_msg_size) },
            inject: if quirks.inject_blocks { 0 } else { tx.inject_size },
            pieces: if quirks.one_piece { 1 } else { tx.iov_limit.max(1) },
            quirks,
            local_registration: has(sys::MR_LOCAL),
            virtual_addresses: has(sys::MR_VIRT_ADDR),
            provider_keys: has(sys::MR_PROV_KEY),
            endpoint_regions: has(sys::MR_ENDPOINT),
            pins,
            key_size: domain.mr_key_size.clamp(1, 8),
            name,
            interface,
            information,
        }
    }

    /// A copy of libfabric's description.
    #[must_use]
    pub fn copy(&self) -> Information {
        self.information.copy(self.information.get())
    }
}

/// What is asked of a provider.
fn hints(library: &Library, name: &str, capabilities: u64) -> Information {
    let hints = library.hints();
    // SAFETY: libfabric makes all attributes of empty hints; `prov_name` is freed by it with `free`.
    unsafe {
        let info = &mut *hints.first;
        info.caps = capabilities;
        info.mode = sys::MODE_CONTEXT | sys::MODE_CONTEXT2;
        (*info.ep_attr).r#type = sys::EP_RDM;
        let domain = &mut *info.domain_attr;
        domain.mr_mode = MR_MODES;
        domain.threading = sys::THREAD_DOMAIN;
        domain.resource_mgmt = sys::RM_ENABLED;
        (*info.tx_attr).msg_order = sys::ORDER_SAS;
        (*info.rx_attr).msg_order = sys::ORDER_SAS;
        let name = CString::new(name).unwrap_or_default();
        (*info.fabric_attr).prov_name = libc::strdup(name.as_ptr());
    }
    hints
}

/// Why a provider that has an interface here cannot be used; none if it has none.
fn unfit(library: &Library, name: &str, source: Option<&CString>, device: Option<&str>, result: i32) -> Option<String> {
    let anything = hints(library, name, 0);
    // SAFETY: libfabric makes all attributes of empty hints.
    unsafe {
        let info = &mut *anything.first;
        info.mode = u64::MAX;
        (*info.ep_attr).r#type = sys::EP_UNSPEC;
        (*info.domain_attr).mr_mode |= sys::MR_RAW | sys::MR_MMU_NOTIFY | sys::MR_RMA_EVENT;
        (*info.domain_attr).threading = sys::THREAD_UNSPEC;
        (*info.domain_attr).resource_mgmt = sys::RM_UNSPEC;
        (*info.tx_attr).msg_order = 0;
        (*info.rx_attr).msg_order = 0;
    }
    let found = library.query(source, &anything).ok()?;
    let interface = found
        .iter()
        .map(|info| {
            // SAFETY: libfabric fills the attributes; the name is a C string or NULL.
            unsafe { text((*info.domain_attr).name) }
        })
        .find(|name| device.is_none_or(|device| name == device))?;
    Some(format!(
        "libfabric's provider {name} has {interface}, but offers no reliable messages in order on it ({}; \
         FI_LOG_LEVEL=warn shows its reasons)",
        library.text(result)
    ))
}

/// Whether an interface can be used: it is the device that was asked for, or is no loopback, and its
/// addresses need no scope.
fn fits(info: &sys::Info, device: Option<&str>) -> bool {
    // SAFETY: libfabric fills the attributes; the name is a C string or NULL.
    let (name, longest) = unsafe { (text((*info.domain_attr).name), (*info.ep_attr).max_msg_size) };
    if longest < 4096 + cohort_fabric_host::packet::PREFIX {
        return false;
    }
    match device {
        Some(device) => name == device && !is_link_local(info),
        None => !is_link_local(info),
    }
}

/// An IPv6 address that is valid on one link only, `fe80::/10`.
fn is_link_local(info: &sys::Info) -> bool {
    if info.addr_format != sys::FORMAT_SOCKADDR_IN6
        || info.src_addr.is_null()
        || info.src_addrlen < size_of::<libc::sockaddr_in6>()
    {
        return false;
    }
    // SAFETY: the format and the length say that it is one.
    let address = unsafe { &*info.src_addr.cast::<libc::sockaddr_in6>() };
    let bytes = address.sin6_addr.s6_addr;
    bytes[0] == 0xfe && bytes[1] & 0xc0 == 0x80
}

/// The text of a C string; empty for NULL.
///
/// # Safety
/// NULL or a C string.
unsafe fn text(string: *const libc::c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}

/// Why there is no provider, and what to do.
fn refusal(library: &Library, wanted: Option<&str>, interface: Option<&str>, result: i32, others: &str) -> String {
    let (major, minor) = library.version();
    let what = wanted.map_or_else(
        || "no provider of libfabric".into(),
        |name| format!("libfabric's provider \"{name}\" (COHORT_NET_PROVIDER) does not"),
    );
    let verb = if wanted.is_some() { "offer" } else { "offers" };
    let place = interface.map_or(String::new(), |name| format!(" on \"{name}\" (COHORT_NET_INTERFACE)"));
    format!(
        "{what} {verb} reliable messages{place}: {} (libfabric {major}.{minor}). Available: {}. \
         Set COHORT_NET_PROVIDER to one of them, or install the missing one; \
         FI_LOG_LEVEL=warn shows libfabric's own reasons",
        library.text(result),
        available(library, others)
    )
}

/// Providers and their interfaces, for messages.
fn available(library: &Library, others: &str) -> String {
    let mut seen: Vec<String> = Vec::new();
    for name in ORDER.into_iter().chain(OTHERS) {
        let hints = hints(library, name, sys::MSG);
        if let Ok(found) = library.query(None, &hints) {
            for info in found.iter().filter(|info| fits(info, None)) {
                // SAFETY: libfabric fills both names.
                let entry = unsafe {
                    let name = text((*info.fabric_attr).prov_name);
                    format!("{name} on {}", text((*info.domain_attr).name))
                };
                if !seen.contains(&entry) {
                    seen.push(entry);
                }
            }
        }
    }
    seen.push(others.into());
    seen.join(", ")
}
