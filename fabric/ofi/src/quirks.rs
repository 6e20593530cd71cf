//! What is done otherwise with a provider that does not do what its description says, or not in a way that fits here.
//!
//! `tests/programs/tools/psm2_limits.c` shows what is said of PSM2 without Cohort.

use crate::names;
use cohort_descriptors::hooks;
use cohort_fabric_host::no_thread;
use std::ffi::CString;

/// What is done otherwise with a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quirks {
    /// Nothing signals its queue's descriptor while nobody polls: whoever sleeps on it sleeps for ever.
    pub sleeps_forever: bool,
    /// A packet of several pieces is several messages, which later packets overtake.
    pub one_piece: bool,
    /// Bytes of the longest packet that no later one overtakes, its prefix counted; 0 if none is overtaken.
    pub packet: usize,
    /// An inject is a blocking send, in which a thief would wait for what only the owner may do.
    pub inject_blocks: bool,
    /// An endpoint is called after the process that opened it, so one process has one.
    pub named_by_process: bool,
    /// An endpoint's memory is a file called after the process id. A process that was killed leaves it behind, and the
    /// next one with its number is refused. A name that is asked for takes the number's place.
    pub takes_name: bool,
    /// The first send to a peer waits until the peer polls, see [`crate::endpoint`].
    pub connect_waits: bool,
    /// To close an endpoint waits until its peers close theirs, and holds up all others of the process meanwhile.
    pub close_waits: bool,
    /// Variables that are set if they are not.
    settings: &'static [(&'static str, &'static str)],
}

const PSM2: Quirks = Quirks {
    sleeps_forever: true,
    one_piece: true,
    // Longer ones are sent by rendezvous: from 16,000 bytes on through shared memory, from 16 KiB on by DMA.
    packet: 8 << 10,
    inject_blocks: true,
    named_by_process: true,
    takes_name: false,
    connect_waits: true,
    close_waits: true,
    // A node may be slow to start. When this time is over, the provider ends the process.
    settings: &[("FI_PSM2_CONN_TIMEOUT", "30")],
};

const SHM: Quirks = Quirks { takes_name: true, ..Quirks::NONE };

impl Quirks {
    const NONE: Self = Self {
        sleeps_forever: false,
        one_piece: false,
        packet: 0,
        inject_blocks: false,
        named_by_process: false,
        takes_name: false,
        connect_waits: false,
        close_waits: false,
        settings: &[],
    };

    /// Those of the provider of this name, without what is layered on it.
    #[must_use]
    pub fn of(provider: &str) -> Self {
        match provider {
            "psm2" => PSM2,
            "shm" => SHM,
            _ => Self::NONE,
        }
    }

    /// Bytes that no packet may exceed.
    #[must_use]
    pub fn packet_max(&self) -> usize {
        match self.packet {
            0 => usize::MAX,
            packet => packet,
        }
    }

    /// Sets its variables, before libfabric looks at the provider.
    pub fn set_variables(&self) {
        for (name, value) in self.settings {
            if std::env::var_os(name).is_none() {
                // SAFETY: the loader opens the network while it has one thread.
                unsafe { std::env::set_var(name, value) };
            }
        }
    }

    /// A name for the endpoint where the provider takes one, after what dead processes left is removed.
    #[must_use]
    pub fn own_name(&self) -> Option<CString> {
        self.takes_name.then(names::remove_stale)?;
        names::fresh().ok()
    }

    /// What the call does first that opens an endpoint.
    ///
    /// # Errors
    /// A text that says that no thread can be made.
    pub fn before_open(&self) -> Result<(), String> {
        if self.named_by_process {
            hooks::appear_as_another_process().map_err(|error| no_thread("no thread for the endpoint", &error))?;
        }
        Ok(())
    }
}
