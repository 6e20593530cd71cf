//! What Fortran's types look like (MPI-5.0 chapter 20). The runtime knows one Fortran, whose default
//! types have the sizes of every compiler on this platform, so programs can ask and not change it.

use crate::arguments::{Call, Outcome};
use crate::info::publish;
use crate::passed::{Base, Out};
use cohort_abi::{Abi, Handle, neutral};
use cohort_base::text::FixedText;
use cohort_engine::datatype::predefined;
use cohort_object::Info;
use core::ffi::c_int;
use neutral::handle;

/// Types whose size varies among compilers, by their key.
const SIZES: [(&str, u32); 4] = [
    ("logical", handle::LOGICAL),
    ("integer", handle::INTEGER),
    ("real", handle::REAL),
    ("double_precision", handle::DOUBLE_PRECISION),
];

/// Types that a compiler may lack, by their key.
const OPTIONAL: [(&str, u32); 19] = [
    ("logical1", handle::LOGICAL1),
    ("logical2", handle::LOGICAL2),
    ("logical4", handle::LOGICAL4),
    ("logical8", handle::LOGICAL8),
    ("logical16", handle::LOGICAL16),
    ("integer1", handle::INTEGER1),
    ("integer2", handle::INTEGER2),
    ("integer4", handle::INTEGER4),
    ("integer8", handle::INTEGER8),
    ("integer16", handle::INTEGER16),
    ("real2", handle::REAL2),
    ("real4", handle::REAL4),
    ("real8", handle::REAL8),
    ("real16", handle::REAL16),
    ("complex4", handle::COMPLEX4),
    ("complex8", handle::COMPLEX8),
    ("complex16", handle::COMPLEX16),
    ("complex32", handle::COMPLEX32),
    ("double_complex", handle::DOUBLE_COMPLEX),
];

/// `MPI_Abi_get_fortran_info`.
pub fn abi_get_fortran_info<A: Abi>(call: &Call<'_, A>, target: Out<'_, A::Info>) -> Outcome<()> {
    let known = Info::default();
    for (name, handle) in SIZES {
        let size = predefined(handle).map_or(0, |datatype| datatype.size());
        let key = FixedText::<64>::of(format_args!("mpi_{name}_size"));
        let value = FixedText::<16>::of(format_args!("{size}"));
        known.set(key.as_str(), value.as_str())?;
    }
    for (name, handle) in OPTIONAL {
        // Some types have no handle in one ABI.
        let has_handle = A::Datatype::from_neutral(call.context(), handle).neutral() == handle;
        let has_data = predefined(handle).is_some_and(|datatype| datatype.size() > 0);
        let supported = has_handle && has_data;
        let key = FixedText::<64>::of(format_args!("mpi_{name}_supported"));
        known.set(key.as_str(), if supported { "true" } else { "false" })?;
    }
    publish(call, known, target)
}

/// The error of an attempt to change what is fixed.
#[cold]
fn fixed<A: Abi>(call: &Call<'_, A>) -> Outcome<()> {
    let what = format_args!("Fortran's types are set already; MPI_Abi_get_fortran_info tells them");
    Err(call.blame(neutral::ERR_ABI, what))
}

/// `MPI_Abi_set_fortran_info`: they are set already.
pub fn abi_set_fortran_info<A: Abi>(call: &Call<'_, A>, _info: A::Info) -> Outcome<()> {
    fixed(call)
}

/// `MPI_Abi_get_fortran_booleans`: `.TRUE.` is 1 and `.FALSE.` 0, in integers of `size` bytes.
pub fn abi_get_fortran_booleans<A: Abi>(
    call: &Call<'_, A>,
    size: c_int,
    yes: Base,
    no: Base,
    is_set: Out<'_, c_int>,
) -> Outcome<()> {
    for (place, name) in [(yes, "logical_true"), (no, "logical_false")] {
        if place.is_null() {
            return Err(call.blame(neutral::ERR_ARG, format_args!("{name} is NULL")));
        }
    }
    let is_set = call.output(is_set, "is_set")?;
    let bytes = match size {
        1 | 2 | 4 | 8 | 16 => size as usize,
        _ => {
            let what = format_args!("the size is {size}, it can be 1, 2, 4, 8 or 16");
            return Err(call.blame(neutral::ERR_ARG, what));
        }
    };
    // Little-endian: the first byte counts ones.
    let mut value = [0; 16];
    no.write(&value[..bytes]);
    value[0] = 1;
    yes.write(&value[..bytes]);
    is_set.write(1);
    Ok(())
}

/// `MPI_Abi_set_fortran_booleans`: they are set already.
pub fn abi_set_fortran_booleans<A: Abi>(
    call: &Call<'_, A>,
    _size: c_int,
    _yes: Base,
    _no: Base,
) -> Outcome<()> {
    fixed(call)
}
