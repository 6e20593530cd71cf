//! What is used of libfabric's interface 1.x: records, operation tables and numbers.
//!
//! Its `fi_*` functions are mostly inline in the headers and jump through the tables of an object;
//! only a few are real symbols ([`crate::library`]). Fields and entries that are not used are
//! declared for their room. Names are libfabric's, without prefix. Each declaration names what it
//! stands for in the headers, with which the tests compare sizes, offsets and values.

#![allow(missing_docs, reason = "libfabric's own names; see its manual pages")]

#[cfg(test)]
mod tests;

use cohort_fabric_host::address;
use libc::{c_char, c_int, c_void, iovec, size_t, ssize_t};

/// Declares numbers: name, type, value and the expression that stands for it in the headers.
macro_rules! numbers {
    ($($(#[$attribute:meta])* $name:ident: $type:ty = $value:expr => $header:literal;)*) => {
        $($(#[$attribute])* pub const $name: $type = $value;)*

        /// The headers' expressions, and what they must be.
        #[cfg(test)]
        const NUMBERS: &[(&str, i128)] = &[$(($header, $name as i128)),*];
    };
}

/// Declares records with all of their fields in order: `ours` are made here and passed to libfabric, so they
/// are whole; `theirs` are made by libfabric, whose later versions append to them, and need only begin as declared.
macro_rules! records {
    ($($(#[$attribute:meta])* $maker:ident $header:ident as $name:ident {
        $($field:ident: $type:ty),* $(,)?
    })*) => {
        $(
            $(#[$attribute])*
            #[repr(C)]
            #[derive(Debug)]
            pub struct $name {
                $(pub $field: $type),*
            }
        )*

        /// The layout of every record.
        #[cfg(test)]
        fn records() -> Vec<tests::Record> {
            vec![$(tests::Record {
                header: stringify!($header),
                is_ours: stringify!($maker) == "ours",
                size: size_of::<$name>(),
                fields: vec![$(tests::Field {
                    name: stringify!($field).trim_start_matches("r#"),
                    offset: std::mem::offset_of!($name, $field),
                    size: size_of::<$type>(),
                }),*],
            }),*]
        }
    };
}

numbers! {
    /// Interface version that is asked for; later libraries keep it.
    VERSION: u32 = (1 << 16) | 11 => "FI_VERSION(1, 11)";
    MSG: u64 = 1 << 1 => "FI_MSG";
    RMA: u64 = 1 << 2 => "FI_RMA";
    READ: u64 = 1 << 8 => "FI_READ";
    WRITE: u64 = 1 << 9 => "FI_WRITE";
    RECV: u64 = 1 << 10 => "FI_RECV";
    TRANSMIT: u64 = 1 << 11 => "FI_TRANSMIT";
    REMOTE_READ: u64 = 1 << 12 => "FI_REMOTE_READ";
    REMOTE_WRITE: u64 = 1 << 13 => "FI_REMOTE_WRITE";
    COMPLETION: u64 = 1 << 24 => "FI_COMPLETION";
    DELIVERY_COMPLETE: u64 = 1 << 28 => "FI_DELIVERY_COMPLETE";
    NUMERIC_HOST: u64 = 1 << 55 => "FI_NUMERICHOST";
    SOURCE: u64 = 1 << 57 => "FI_SOURCE";
    MODE_CONTEXT: u64 = 1 << 59 => "FI_CONTEXT";
    MODE_CONTEXT2: u64 = 1 << 52 => "FI_CONTEXT2";
    ORDER_SAS: u64 = 1 << 8 => "FI_ORDER_SAS";
    MR_LOCAL: c_int = 1 << 2 => "FI_MR_LOCAL";
    MR_RAW: c_int = 1 << 3 => "FI_MR_RAW";
    MR_VIRT_ADDR: c_int = 1 << 4 => "FI_MR_VIRT_ADDR";
    MR_ALLOCATED: c_int = 1 << 5 => "FI_MR_ALLOCATED";
    MR_PROV_KEY: c_int = 1 << 6 => "FI_MR_PROV_KEY";
    MR_MMU_NOTIFY: c_int = 1 << 7 => "FI_MR_MMU_NOTIFY";
    MR_RMA_EVENT: c_int = 1 << 8 => "FI_MR_RMA_EVENT";
    MR_ENDPOINT: c_int = 1 << 9 => "FI_MR_ENDPOINT";
    THREAD_UNSPEC: c_int = 0 => "FI_THREAD_UNSPEC";
    THREAD_DOMAIN: c_int = 3 => "FI_THREAD_DOMAIN";
    RM_UNSPEC: c_int = 0 => "FI_RM_UNSPEC";
    RM_ENABLED: c_int = 2 => "FI_RM_ENABLED";
    AV_TABLE: c_int = 2 => "FI_AV_TABLE";
    EP_UNSPEC: c_int = 0 => "FI_EP_UNSPEC";
    EP_RDM: c_int = 3 => "FI_EP_RDM";
    WAIT_NONE: c_int = 0 => "FI_WAIT_NONE";
    WAIT_FD: c_int = 3 => "FI_WAIT_FD";
    CQ_FORMAT_MSG: c_int = 2 => "FI_CQ_FORMAT_MSG";
    FORMAT_SOCKADDR_IN6: u32 = address::FORMAT_SOCKADDR_IN6 => "FI_SOCKADDR_IN6";
    COMMAND_GETWAIT: c_int = 5 => "FI_GETWAIT";
    COMMAND_ENABLE: c_int = 6 => "FI_ENABLE";
    ADDRESS_NONE: u64 = u64::MAX => "FI_ADDR_UNSPEC";
    EAGAIN: c_int = libc::EAGAIN => "FI_EAGAIN";
    /// An entry of the error queue is there.
    EAVAIL: c_int = 259 => "FI_EAVAIL";
    /// No such capability or provider.
    ENODATA: c_int = libc::ENODATA => "FI_ENODATA";
}

/// An entry of a table that is not used.
type Unused = *const c_void;

records! {
    ours fi_context2 as Context2 {
        internal: [*mut c_void; 8],
    }
    theirs fi_tx_attr as TxAttr {
        caps: u64,
        mode: u64,
        op_flags: u64,
        msg_order: u64,
        comp_order: u64,
        inject_size: size_t,
        size: size_t,
        iov_limit: size_t,
        rma_iov_limit: size_t,
        tclass: u32,
    }
    theirs fi_rx_attr as RxAttr {
        caps: u64,
        mode: u64,
        op_flags: u64,
        msg_order: u64,
        comp_order: u64,
        total_buffered_recv: size_t,
        size: size_t,
        iov_limit: size_t,
    }
    theirs fi_ep_attr as EpAttr {
        r#type: c_int,
        protocol: u32,
        protocol_version: u32,
        max_msg_size: size_t,
        msg_prefix_size: size_t,
        max_order_raw_size: size_t,
        max_order_war_size: size_t,
        max_order_waw_size: size_t,
        mem_tag_format: u64,
        tx_ctx_cnt: size_t,
        rx_ctx_cnt: size_t,
        auth_key_size: size_t,
        auth_key: *mut u8,
    }
    theirs fi_domain_attr as DomainAttr {
        domain: *mut Domain,
        name: *mut c_char,
        threading: c_int,
        control_progress: c_int,
        data_progress: c_int,
        resource_mgmt: c_int,
        av_type: c_int,
        mr_mode: c_int,
        mr_key_size: size_t,
        cq_data_size: size_t,
        cq_cnt: size_t,
        ep_cnt: size_t,
        tx_ctx_cnt: size_t,
        rx_ctx_cnt: size_t,
        max_ep_tx_ctx: size_t,
        max_ep_rx_ctx: size_t,
        max_ep_stx_ctx: size_t,
        max_ep_srx_ctx: size_t,
        cntr_cnt: size_t,
        mr_iov_limit: size_t,
        caps: u64,
        mode: u64,
        auth_key: *mut u8,
        auth_key_size: size_t,
        max_err_data: size_t,
        mr_cnt: size_t,
        tclass: u32,
    }
    theirs fi_fabric_attr as FabricAttr {
        fabric: *mut Fabric,
        name: *mut c_char,
        prov_name: *mut c_char,
        prov_version: u32,
        api_version: u32,
    }
    theirs fi_info as Info {
        next: *mut Info,
        caps: u64,
        mode: u64,
        addr_format: u32,
        src_addrlen: size_t,
        dest_addrlen: size_t,
        src_addr: *mut c_void,
        dest_addr: *mut c_void,
        handle: *mut Fid,
        tx_attr: *mut TxAttr,
        rx_attr: *mut RxAttr,
        ep_attr: *mut EpAttr,
        domain_attr: *mut DomainAttr,
        fabric_attr: *mut FabricAttr,
        nic: *mut c_void,
    }
    theirs fi_ops as FidOps {
        size: size_t,
        close: unsafe extern "C" fn(*mut Fid) -> c_int,
        bind: unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int,
        control: unsafe extern "C" fn(*mut Fid, c_int, *mut c_void) -> c_int,
    }
    theirs fid as Fid {
        fclass: size_t,
        context: *mut c_void,
        ops: *mut FidOps,
    }
    theirs fi_ops_fabric as FabricOps {
        size: size_t,
        domain:
            unsafe extern "C" fn(*mut Fabric, *mut Info, *mut *mut Domain, *mut c_void) -> c_int,
        passive_ep: Unused,
        eq_open: Unused,
        wait_open: Unused,
        trywait: unsafe extern "C" fn(*mut Fabric, *mut *mut Fid, c_int) -> c_int,
    }
    theirs fid_fabric as Fabric {
        fid: Fid,
        ops: *mut FabricOps,
        api_version: u32,
    }
    ours fi_av_attr as AvAttr {
        r#type: c_int,
        rx_ctx_bits: c_int,
        count: size_t,
        ep_per_node: size_t,
        name: *const c_char,
        map_addr: *mut c_void,
        flags: u64,
    }
    ours fi_cq_attr as CqAttr {
        size: size_t,
        flags: u64,
        format: c_int,
        wait_obj: c_int,
        signaling_vector: c_int,
        wait_cond: c_int,
        wait_set: *mut c_void,
    }
    theirs fi_ops_domain as DomainOps {
        size: size_t,
        av_open: unsafe extern "C" fn(*mut Domain, *mut AvAttr, *mut *mut Av, *mut c_void) -> c_int,
        cq_open: unsafe extern "C" fn(*mut Domain, *mut CqAttr, *mut *mut Cq, *mut c_void) -> c_int,
        endpoint: unsafe extern "C" fn(*mut Domain, *mut Info, *mut *mut Ep, *mut c_void) -> c_int,
    }
    theirs fi_ops_mr as MrOps {
        size: size_t,
        reg: unsafe extern "C" fn(
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
    theirs fid_domain as Domain {
        fid: Fid,
        ops: *mut DomainOps,
        mr: *mut MrOps,
    }
    theirs fid_mr as Mr {
        fid: Fid,
        mem_desc: *mut c_void,
        key: u64,
    }
    theirs fi_ops_av as AvOps {
        size: size_t,
        insert:
            unsafe extern "C" fn(*mut Av, *const c_void, size_t, *mut u64, u64, *mut c_void) -> c_int,
    }
    theirs fid_av as Av {
        fid: Fid,
        ops: *mut AvOps,
    }
    #[derive(Clone, Copy)]
    ours fi_cq_msg_entry as CqEntry {
        op_context: *mut c_void,
        flags: u64,
        len: size_t,
    }
    /// See [`ErrorRoom`].
    theirs fi_cq_err_entry as CqError {
        op_context: *mut c_void,
        flags: u64,
        len: size_t,
        buf: *mut c_void,
        data: u64,
        tag: u64,
        olen: size_t,
        err: c_int,
        prov_errno: c_int,
        err_data: *mut c_void,
        err_data_size: size_t,
    }
    theirs fi_ops_cq as CqOps {
        size: size_t,
        read: unsafe extern "C" fn(*mut Cq, *mut c_void, size_t) -> ssize_t,
        readfrom: Unused,
        readerr: unsafe extern "C" fn(*mut Cq, *mut CqError, u64) -> ssize_t,
    }
    theirs fid_cq as Cq {
        fid: Fid,
        ops: *mut CqOps,
    }
    theirs fi_ops_cm as CmOps {
        size: size_t,
        setname: Unused,
        getname: unsafe extern "C" fn(*mut Fid, *mut c_void, *mut size_t) -> c_int,
    }
    theirs fi_ops_msg as MsgOps {
        size: size_t,
        recv: unsafe extern "C" fn(
            *mut Ep,
            *mut c_void,
            size_t,
            *mut c_void,
            u64,
            *mut c_void,
        ) -> ssize_t,
        recvv: Unused,
        recvmsg: Unused,
        send: Unused,
        sendv: unsafe extern "C" fn(
            *mut Ep,
            *const iovec,
            *mut *mut c_void,
            size_t,
            u64,
            *mut c_void,
        ) -> ssize_t,
        sendmsg: Unused,
        inject: unsafe extern "C" fn(*mut Ep, *const c_void, size_t, u64) -> ssize_t,
    }
    ours fi_rma_iov as RmaIov {
        addr: u64,
        len: size_t,
        key: u64,
    }
    ours fi_msg_rma as MsgRma {
        msg_iov: *const iovec,
        desc: *mut *mut c_void,
        iov_count: size_t,
        addr: u64,
        rma_iov: *const RmaIov,
        rma_iov_count: size_t,
        context: *mut c_void,
        data: u64,
    }
    theirs fi_ops_rma as RmaOps {
        size: size_t,
        read: unsafe extern "C" fn(
            *mut Ep,
            *mut c_void,
            size_t,
            *mut c_void,
            u64,
            u64,
            u64,
            *mut c_void,
        ) -> ssize_t,
        readv: Unused,
        readmsg: Unused,
        write: Unused,
        writev: Unused,
        writemsg: unsafe extern "C" fn(*mut Ep, *const MsgRma, u64) -> ssize_t,
    }
    theirs fid_ep as Ep {
        fid: Fid,
        ops: Unused,
        cm: *mut CmOps,
        msg: *mut MsgOps,
        rma: *mut RmaOps,
    }
}

/// Room for an error entry: later versions of the interface append a field.
#[repr(C)]
#[derive(Debug)]
pub struct ErrorRoom {
    pub entry: CqError,
    pub reserve: [u64; 4],
}
