//! Settings of the network between nodes, which the loader passes on and ranks do not read.

use super::{Row, choose, is_name, number};

/// Who calls a network's driver when a waiting rank has work for it (`COHORT_NET_NOTIFY`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetNotify {
    /// The waiting rank, through its own copy of the owner's descriptor.
    Mirror,
    /// The owner, when it progresses next.
    Defer,
}

/// Seconds without a [`TIMEOUT`].
pub const TIMEOUT_DEFAULT: u32 = 30;

/// Name of the variable that says how long a silent node is tolerated.
pub const TIMEOUT: &str = "COHORT_NET_TIMEOUT";

/// Name of the variable that says which ports listen.
pub const PORTS: &str = "COHORT_NET_PORTS";

/// Name of the variable that says how many connections two nodes have.
pub const RAILS: &str = "COHORT_NET_RAILS";

/// Name of the variable that says how many endpoints a node has.
pub const ENDPOINTS: &str = "COHORT_NET_ENDPOINTS";

/// Connections without a [`RAILS`].
pub const RAILS_DEFAULT: u32 = 1;

/// Name of the variable that says whether connections between nodes are encrypted.
pub const ENCRYPT: &str = "COHORT_NET_ENCRYPT";

/// Name of the variable that says which congestion control connections have.
pub const CONGESTION: &str = "COHORT_NET_CONGESTION";

pub(super) const CONGESTION_ROW: Row = Row {
    name: CONGESTION,
    values: "auto, system, or an algorithm of the system's: cubic, reno, bbr, ...",
    default: "auto",
    help: "TCP without libfabric: congestion control; auto is the system's, but for BBR",
    set: |_, v| (is_name(v) && v.len() < 16).then_some(()),
};

pub(super) const ENCRYPT_ROW: Row = Row {
    name: ENCRYPT,
    values: "on, off (or 1, 0)",
    default: "off",
    help: "TCP without libfabric: encrypt what travels between nodes, the same on all nodes",
    set: |_, v| encrypt(v).map(|_| ()),
};

pub(super) const ENDPOINTS_ROW: Row = Row {
    name: ENDPOINTS,
    values: "auto, or a count, 1 to 256",
    default: "auto",
    help: "libfabric: endpoints of a node, which its ranks share",
    set: |_, v| (v == "auto" || endpoints(v).is_some()).then_some(()),
};

pub(super) const INTERFACE_ROW: Row = Row {
    name: "COHORT_NET_INTERFACE",
    values: "auto, an interface (eth0) or an address of it",
    default: "auto",
    help: "network interface that the nodes of a job talk over",
    set: |_, v| is_name(v).then_some(()),
};

pub(super) const LIBFABRIC_ROW: Row = Row {
    name: "COHORT_NET_LIBFABRIC",
    values: "auto, or a file",
    default: "auto",
    help: "libfabric.so.1 that the network loads instead of the one that the system finds",
    set: |_, v| (!v.is_empty()).then_some(()),
};

pub(super) const PORTS_ROW: Row = Row {
    name: PORTS,
    values: "auto, or the first and the last port, 1 to 65535: 50000-50999",
    default: "auto",
    help: "ports that a node listens on, for firewalls between nodes; auto is any free one",
    set: |_, v| (v == "auto" || ports(v).is_some()).then_some(()),
};

pub(super) const PROVIDER_ROW: Row = Row {
    name: "COHORT_NET_PROVIDER",
    values: "auto, direct, or a provider of libfabric: tcp, verbs, psm2, opx, efa, cxi, ...",
    default: "auto",
    help: "network of a job of more than one node: direct is TCP without libfabric",
    set: |_, v| is_name(v).then_some(()),
};

pub(super) const RAILS_ROW: Row = Row {
    name: RAILS,
    values: "a count, 1 to 16",
    default: "1",
    help: "TCP without libfabric: connections between two nodes, the same on all nodes",
    set: |_, v| rails(v).map(|_| ()),
};

pub(super) const TIMEOUT_ROW: Row = Row {
    name: TIMEOUT,
    values: "seconds, 1 to 86400",
    default: "30",
    help: "how long a node may be silent, stopped or cut off, until it is reported as lost",
    set: |_, v| timeout(v).map(|_| ()),
};

/// The seconds that a value of [`TIMEOUT`] stands for.
#[must_use]
pub fn timeout(value: &str) -> Option<u32> {
    number(value, 1, 86400)
}

/// What a value of [`ENCRYPT`] says.
#[must_use]
pub fn encrypt(value: &str) -> Option<bool> {
    choose(value, &[("on", true), ("1", true), ("off", false), ("0", false)])
}

/// The count that a value of [`RAILS`] stands for.
#[must_use]
pub fn rails(value: &str) -> Option<u32> {
    number(value, 1, 16)
}

/// The count that a value of [`ENDPOINTS`] stands for; none for `auto` too.
#[must_use]
pub fn endpoints(value: &str) -> Option<u32> {
    number(value, 1, 256)
}

/// The first and the last port that a value of [`PORTS`] stands for; none for `auto` too.
#[must_use]
pub fn ports(value: &str) -> Option<(u16, u16)> {
    let (first, last) = value.split_once('-')?;
    let port = |text: &str| number(text, 1, 65535).map(|port| port as u16);
    let range = (port(first)?, port(last)?);
    (range.0 <= range.1).then_some(range)
}
