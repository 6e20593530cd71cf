//! What is used of libfabric's interface 1.x: records, operation tables and numbers.
//!
//! Its `fi_*` functions are mostly inline in the headers and jump through the tables of an object; only a few
//! are real symbols ([`crate::library`]). Fields and entries that are not used are declared for their room.
//! Names are libfabric's, without prefix.

#![allow(missing_docs, reason = "libfabric's own names; see its manual pages")]

use libc::{c_char, c_int, c_void, iovec, size_t, ssize_t};

/// Interface version that is asked for; later libraries keep it.
pub const VERSION: u32 = (1 << 16) | 11;

pub const MSG: u64 = 1 << 1;
pub const RMA: u64 = 1 << 2;
pub const TRANSMIT: u64 = 1 << 11;
pub const READ: u64 = 1 << 8;
pub const WRITE: u64 = 1 << 9;
pub const RECV: u64 = 1 << 10;
pub const REMOTE_READ: u64 = 1 << 12;
pub const REMOTE_WRITE: u64 = 1 << 13;
pub const COMPLETION: u64 = 1 << 24;
pub const DELIVERY_COMPLETE: u64 = 1 << 28;
pub const NUMERIC_HOST: u64 = 1 << 55;
pub const SOURCE: u64 = 1 << 57;

pub const MODE_CONTEXT: u64 = 1 << 59;
pub const MODE_CONTEXT2: u64 = 1 << 52;

pub const ORDER_SAS: u64 = 1 << 8;

pub const MR_LOCAL: c_int = 1 << 2;
pub const MR_VIRT_ADDR: c_int = 1 << 4;
pub const MR_ALLOCATED: c_int = 1 << 5;
pub const MR_PROV_KEY: c_int = 1 << 6;
pub const MR_ENDPOINT: c_int = 1 << 9;

pub const THREAD_DOMAIN: c_int = 3;
pub const RM_ENABLED: c_int = 2;
pub const AV_TABLE: c_int = 2;
pub const EP_RDM: c_int = 3;
pub const WAIT_NONE: c_int = 0;
pub const WAIT_FD: c_int = 3;
pub const CQ_FORMAT_MSG: c_int = 2;

pub const FORMAT_SOCKADDR_IN6: u32 = 3;

pub const COMMAND_GETWAIT: c_int = 5;
pub const COMMAND_ENABLE: c_int = 6;

pub const ADDRESS_NONE: u64 = u64::MAX;

pub const EAGAIN: i32 = libc::EAGAIN;
/// An entry of the error queue is there.
pub const EAVAIL: i32 = 259;
/// No such capability or provider.
pub const ENODATA: i32 = libc::ENODATA;

/// An entry of a table that is not used.
type Unused = *const c_void;

#[repr(C)]
#[derive(Debug)]
pub struct TxAttr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub inject_size: size_t,
    pub size: size_t,
    pub iov_limit: size_t,
    pub rma_iov_limit: size_t,
    pub tclass: u32,
}

#[repr(C)]
#[derive(Debug)]
pub struct RxAttr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub total_buffered_recv: size_t,
    pub size: size_t,
    pub iov_limit: size_t,
}

#[repr(C)]
#[derive(Debug)]
pub struct EpAttr {
    pub kind: c_int,
    pub protocol: u32,
    pub protocol_version: u32,
    pub max_msg_size: size_t,
    pub msg_prefix_size: size_t,
    pub max_order_raw_size: size_t,
    pub max_order_war_size: size_t,
    pub max_order_waw_size: size_t,
    pub mem_tag_format: u64,
    pub tx_ctx_cnt: size_t,
    pub rx_ctx_cnt: size_t,
    pub auth_key_size: size_t,
    pub auth_key: *mut u8,
}

#[repr(C)]
#[derive(Debug)]
pub struct DomainAttr {
    pub domain: *mut Domain,
    pub name: *mut c_char,
    pub threading: c_int,
    pub control_progress: c_int,
    pub data_progress: c_int,
    pub resource_mgmt: c_int,
    pub av_type: c_int,
    pub mr_mode: c_int,
    pub mr_key_size: size_t,
    pub cq_data_size: size_t,
    pub cq_cnt: size_t,
    pub ep_cnt: size_t,
    pub tx_ctx_cnt: size_t,
    pub rx_ctx_cnt: size_t,
    pub max_ep_tx_ctx: size_t,
    pub max_ep_rx_ctx: size_t,
    pub max_ep_stx_ctx: size_t,
    pub max_ep_srx_ctx: size_t,
    pub cntr_cnt: size_t,
    pub mr_iov_limit: size_t,
    pub caps: u64,
    pub mode: u64,
    pub auth_key: *mut u8,
    pub auth_key_size: size_t,
    pub max_err_data: size_t,
    pub mr_cnt: size_t,
    pub tclass: u32,
}

#[repr(C)]
#[derive(Debug)]
pub struct FabricAttr {
    pub fabric: *mut Fabric,
    pub name: *mut c_char,
    pub prov_name: *mut c_char,
    pub prov_version: u32,
    pub api_version: u32,
}

#[repr(C)]
#[derive(Debug)]
pub struct Info {
    pub next: *mut Info,
    pub caps: u64,
    pub mode: u64,
    pub addr_format: u32,
    pub src_addrlen: size_t,
    pub dest_addrlen: size_t,
    pub src_addr: *mut c_void,
    pub dest_addr: *mut c_void,
    pub handle: *mut Fid,
    pub tx_attr: *mut TxAttr,
    pub rx_attr: *mut RxAttr,
    pub ep_attr: *mut EpAttr,
    pub domain_attr: *mut DomainAttr,
    pub fabric_attr: *mut FabricAttr,
    pub nic: *mut c_void,
}

#[repr(C)]
#[derive(Debug)]
pub struct FidOps {
    pub size: size_t,
    pub close: unsafe extern "C" fn(*mut Fid) -> c_int,
    pub bind: unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int,
    pub control: unsafe extern "C" fn(*mut Fid, c_int, *mut c_void) -> c_int,
}

#[repr(C)]
#[derive(Debug)]
pub struct Fid {
    pub class: size_t,
    pub context: *mut c_void,
    pub ops: *mut FidOps,
}

#[repr(C)]
#[derive(Debug)]
pub struct FabricOps {
    pub size: size_t,
    pub domain:
        unsafe extern "C" fn(*mut Fabric, *mut Info, *mut *mut Domain, *mut c_void) -> c_int,
    pub passive_ep: Unused,
    pub eq_open: Unused,
    pub wait_open: Unused,
    pub trywait: unsafe extern "C" fn(*mut Fabric, *mut *mut Fid, c_int) -> c_int,
}

#[repr(C)]
#[derive(Debug)]
pub struct Fabric {
    pub fid: Fid,
    pub ops: *mut FabricOps,
    pub api_version: u32,
}

#[repr(C)]
#[derive(Debug)]
pub struct AvAttr {
    pub kind: c_int,
    pub rx_ctx_bits: c_int,
    pub count: size_t,
    pub ep_per_node: size_t,
    pub name: *const c_char,
    pub map_addr: *mut c_void,
    pub flags: u64,
}

#[repr(C)]
#[derive(Debug)]
pub struct CqAttr {
    pub size: size_t,
    pub flags: u64,
    pub format: c_int,
    pub wait_obj: c_int,
    pub signaling_vector: c_int,
    pub wait_cond: c_int,
    pub wait_set: *mut c_void,
}

#[repr(C)]
#[derive(Debug)]
pub struct DomainOps {
    pub size: size_t,
    pub av_open: unsafe extern "C" fn(*mut Domain, *mut AvAttr, *mut *mut Av, *mut c_void) -> c_int,
    pub cq_open: unsafe extern "C" fn(*mut Domain, *mut CqAttr, *mut *mut Cq, *mut c_void) -> c_int,
    pub endpoint: unsafe extern "C" fn(*mut Domain, *mut Info, *mut *mut Ep, *mut c_void) -> c_int,
}

#[repr(C)]
#[derive(Debug)]
pub struct MrOps {
    pub size: size_t,
    pub reg: unsafe extern "C" fn(
        *mut Fid,
        *const c_void,
        size_t,
        u64,
        u64,
        u64,
        u64,
        *mut *mut Mr,
        *mut c_void,
    ) -> c_int,
}

#[repr(C)]
#[derive(Debug)]
pub struct Domain {
    pub fid: Fid,
    pub ops: *mut DomainOps,
    pub mr: *mut MrOps,
}

#[repr(C)]
#[derive(Debug)]
pub struct Mr {
    pub fid: Fid,
    pub mem_desc: *mut c_void,
    pub key: u64,
}

#[repr(C)]
#[derive(Debug)]
pub struct AvOps {
    pub size: size_t,
    pub insert:
        unsafe extern "C" fn(*mut Av, *const c_void, size_t, *mut u64, u64, *mut c_void) -> c_int,
}

#[repr(C)]
#[derive(Debug)]
pub struct Av {
    pub fid: Fid,
    pub ops: *mut AvOps,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CqEntry {
    pub context: *mut c_void,
    pub flags: u64,
    pub len: size_t,
}

#[repr(C)]
#[derive(Debug)]
pub struct CqError {
    pub context: *mut c_void,
    pub flags: u64,
    pub len: size_t,
    pub buf: *mut c_void,
    pub data: u64,
    pub tag: u64,
    pub olen: size_t,
    pub err: c_int,
    pub prov_errno: c_int,
    pub err_data: *mut c_void,
    pub err_data_size: size_t,
    /// Later versions of the interface append a field.
    pub reserve: [u64; 4],
}

#[repr(C)]
#[derive(Debug)]
pub struct CqOps {
    pub size: size_t,
    pub read: unsafe extern "C" fn(*mut Cq, *mut c_void, size_t) -> ssize_t,
    pub readfrom: Unused,
    pub readerr: unsafe extern "C" fn(*mut Cq, *mut CqError, u64) -> ssize_t,
}

#[repr(C)]
#[derive(Debug)]
pub struct Cq {
    pub fid: Fid,
    pub ops: *mut CqOps,
}

#[repr(C)]
#[derive(Debug)]
pub struct CmOps {
    pub size: size_t,
    pub setname: Unused,
    pub getname: unsafe extern "C" fn(*mut Fid, *mut c_void, *mut size_t) -> c_int,
}

#[repr(C)]
#[derive(Debug)]
pub struct MsgOps {
    pub size: size_t,
    pub recv: unsafe extern "C" fn(
        *mut Ep,
        *mut c_void,
        size_t,
        *mut c_void,
        u64,
        *mut c_void,
    ) -> ssize_t,
    pub recvv: Unused,
    pub recvmsg: Unused,
    pub send: Unused,
    pub sendv: unsafe extern "C" fn(
        *mut Ep,
        *const iovec,
        *mut *mut c_void,
        size_t,
        u64,
        *mut c_void,
    ) -> ssize_t,
    pub sendmsg: Unused,
    pub inject: unsafe extern "C" fn(*mut Ep, *const c_void, size_t, u64) -> ssize_t,
}

#[repr(C)]
#[derive(Debug)]
pub struct RmaIov {
    pub addr: u64,
    pub len: size_t,
    pub key: u64,
}

#[repr(C)]
#[derive(Debug)]
pub struct MsgRma {
    pub iov: *const iovec,
    pub desc: *mut *mut c_void,
    pub iov_count: size_t,
    pub addr: u64,
    pub rma_iov: *const RmaIov,
    pub rma_iov_count: size_t,
    pub context: *mut c_void,
    pub data: u64,
}

#[repr(C)]
#[derive(Debug)]
pub struct RmaOps {
    pub size: size_t,
    pub read: unsafe extern "C" fn(
        *mut Ep,
        *mut c_void,
        size_t,
        *mut c_void,
        u64,
        u64,
        u64,
        *mut c_void,
    ) -> ssize_t,
    pub readv: Unused,
    pub readmsg: Unused,
    pub write: Unused,
    pub writev: Unused,
    pub writemsg: unsafe extern "C" fn(*mut Ep, *const MsgRma, u64) -> ssize_t,
}

#[repr(C)]
#[derive(Debug)]
pub struct Ep {
    pub fid: Fid,
    pub ops: Unused,
    pub cm: *mut CmOps,
    pub msg: *mut MsgOps,
    pub rma: *mut RmaOps,
}

// The layout of the headers on 64-bit machines.
const _: () = {
    assert!(size_of::<Info>() == 120);
    assert!(size_of::<DomainAttr>() == 192);
    assert!(size_of::<EpAttr>() == 96);
    assert!(size_of::<TxAttr>() == 80);
    assert!(size_of::<RxAttr>() == 64);
    assert!(size_of::<CqEntry>() == 24);
    assert!(FORMAT_SOCKADDR_IN6 == cohort_fabric_host::address::FORMAT_SOCKADDR_IN6);
};
