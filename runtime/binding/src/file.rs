//! Files (MPI-5.0, chapter 14).

mod access;
mod datarep;
mod life;
mod pointer;
mod size;
mod survive;
mod under_way;
mod view;

pub use access::{
    iread, iread_all, iread_at, iread_at_all, iread_shared, iwrite, iwrite_all, iwrite_at, iwrite_at_all,
    iwrite_shared, read, read_all, read_all_begin, read_all_end, read_at, read_at_all, read_at_all_begin,
    read_at_all_end, read_ordered, read_ordered_begin, read_ordered_end, read_shared, write, write_all,
    write_all_begin, write_all_end, write_at, write_at_all, write_at_all_begin, write_at_all_end, write_ordered,
    write_ordered_begin, write_ordered_end, write_shared,
};
pub use datarep::{register_datarep, register_datarep_large};
pub use life::{close, delete, get_amode, get_group, get_info, open, set_info};
pub use pointer::{get_byte_offset, get_position, get_position_shared, seek, seek_shared};
pub use size::{get_atomicity, get_size, preallocate, set_atomicity, set_size, sync};
pub use survive::{get_failed, is_revoked, revoke};
pub use view::{get_type_extent, get_view, set_view};
