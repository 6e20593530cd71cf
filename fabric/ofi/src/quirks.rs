//! What is done otherwise with a provider that does not do what its description says, or not in a way that fits here.

use cohort_fabric_host::descriptors::hooks;
use std::io;

/// What is done otherwise with a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    /// Nothing signals its queue's descriptor while nobody polls: whoever sleeps on it sleeps for ever.
    pub sleeps_forever: bool,
    /// A packet of several pieces takes several messages, which the receiver puts together wrongly.
    pub one_piece: bool,
    /// An inject is a blocking send, in which a thief would wait for what only the owner may do.
    pub inject_blocks: bool,
    /// An endpoint is called after the process that opened it, so one process has one.
    pub named_by_process: bool,
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
    inject_blocks: true,
    named_by_process: true,
    connect_waits: true,
    close_waits: true,
    // A node may be slow to start. When this time is over, the provider ends the process.
    settings: &[("FI_PSM2_CONN_TIMEOUT", "30")],
};

impl Quirks {
    /// Those of the provider of this name, without what is layered on it.
    #[must_use]
    pub fn of(provider: &str) -> Self {
        match provider {
            "psm2" => PSM2,
            _ => Self::default(),
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

    /// What the call does first that opens an endpoint.
    ///
    /// # Errors
    /// No thread can be made.
    pub fn before_open(&self) -> io::Result<()> {
        if self.named_by_process {
            hooks::appear_as_another_process()?;
        }
        Ok(())
    }
}
