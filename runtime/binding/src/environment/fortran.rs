//! What Fortran's types look like (MPI-5.0 section 20.4.1). In the ABIs of MPICH and Open MPI the library has a Fortran
//! of its own, whose types are known. A program of the MPI-5 ABI tells what its Fortran is like.
//!
//! The programs of a node share what the first one tells (`datatype::fortran`). Each may say the same once.

use crate::arguments::{Call, Outcome};
use crate::info::{given, publish};
use cohort_abi::parameters::{Base, Out};
use cohort_abi::{Abi, Handle, neutral};
use cohort_base::text::FixedText;
use cohort_engine::datatype::{fortran, predefined};
use cohort_object::Info;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering};
use neutral::handle;
use spin::Mutex;

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

/// The types of a compiler: sizes, and which of the optional ones it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Types {
    sizes: [i64; SIZES.len()],
    supported: [bool; OPTIONAL.len()],
}

impl Types {
    /// Those of an ABI before a program tells others.
    fn initial<A: Abi>(call: &Call<'_, A>) -> Self {
        let size = |handle| predefined(handle).map_or(0, |datatype| datatype.size());
        // Some types have no handle in one ABI.
        let has_handle = |handle| A::Datatype::from_neutral(call.context(), handle).neutral() == handle;
        Self {
            sizes: SIZES.map(|(_, handle)| size(handle)),
            supported: OPTIONAL.map(|(_, handle)| has_handle(handle) && size(handle) > 0),
        }
    }

    /// Those that an info object tells.
    fn read<A: Abi>(call: &Call<'_, A>, info: &Info) -> Outcome<Self> {
        let mut types = Self::initial(call);
        for ((name, handle), size) in SIZES.iter().zip(&mut types.sizes) {
            let key = size_key(name);
            let Some(value) = info.get(key.as_str()) else {
                continue;
            };
            let bytes = value.trim().parse().ok();
            let bytes = bytes.filter(|&bytes| fortran::can_be(*handle, bytes));
            *size = bytes.ok_or_else(|| {
                let what = format_args!("{} cannot be {value:?}", key.as_str());
                call.blame(neutral::ERR_INFO_VALUE, what)
            })?;
        }
        for ((name, _), supported) in OPTIONAL.iter().zip(&mut types.supported) {
            let key = supported_key(name);
            match info.get(key.as_str()).as_deref() {
                None => {}
                Some("true") => *supported = true,
                Some("false") => *supported = false,
                Some(value) => {
                    let what = format_args!("{} is true or false, not {value:?}", key.as_str());
                    return Err(call.blame(neutral::ERR_INFO_VALUE, what));
                }
            }
        }
        Ok(types)
    }

    fn write(&self, info: &Info) -> Outcome<()> {
        for ((name, _), size) in SIZES.iter().zip(self.sizes) {
            let value = FixedText::<16>::of(format_args!("{size}"));
            info.set(size_key(name).as_str(), value.as_str())?;
        }
        for ((name, _), supported) in OPTIONAL.iter().zip(self.supported) {
            let value = if supported { "true" } else { "false" };
            info.set(supported_key(name).as_str(), value)?;
        }
        Ok(())
    }

    /// The node's programs of the MPI-5 ABI have them from now on.
    fn use_them(&self) {
        for ((_, handle), size) in SIZES.iter().zip(self.sizes) {
            fortran::set_size(*handle, size);
        }
        for ((_, handle), supported) in OPTIONAL.iter().zip(self.supported) {
            if !supported {
                fortran::remove(*handle);
            }
        }
    }
}

fn size_key(name: &str) -> FixedText<64> {
    FixedText::of(format_args!("mpi_{name}_size"))
}

fn supported_key(name: &str) -> FixedText<64> {
    FixedText::of(format_args!("mpi_{name}_supported"))
}

/// What the node's programs have told.
struct Told {
    types: Option<Types>,
    /// `.TRUE.` and `.FALSE.`, as integers.
    truth: Option<[i128; 2]>,
}

static TOLD: Mutex<Told> = Mutex::new(Told { types: None, truth: None });

/// `MPI_Abi_get_fortran_info`.
pub fn abi_get_fortran_info<A: Abi>(call: &Call<'_, A>, target: Out<'_, A::Info>) -> Outcome<()> {
    let types = match A::TELLS_FORTRAN {
        true => TOLD.lock().types,
        false => Some(Types::initial(call)),
    };
    let Some(types) = types else {
        let nothing = A::Info::from_neutral(call.context(), neutral::handle::INFO_NULL);
        call.output(target, "info")?.write(nothing);
        return Ok(());
    };
    let known = Info::default();
    types.write(&known)?;
    publish(call, known, target)
}

/// The error of an attempt to change what is fixed.
#[cold]
fn fixed<A: Abi>(call: &Call<'_, A>) -> Outcome<()> {
    let what = format_args!("Fortran's types are set already; MPI_Abi_get_fortran_info tells them");
    Err(call.blame(neutral::ERR_ABI, what))
}

/// Tells something, once for a process and the same for all of a node.
fn tell<A: Abi, T: PartialEq + Copy>(
    call: &Call<'_, A>,
    own: &AtomicBool,
    place: &mut Option<T>,
    value: T,
    used: impl FnOnce(T),
) -> Outcome<()> {
    // Relaxed: the caller holds a lock.
    if own.load(Ordering::Relaxed) {
        return fixed(call);
    }
    match *place {
        None => {
            *place = Some(value);
            used(value);
        }
        Some(told) if told == value => {}
        Some(_) => {
            let what = format_args!("another process of this node has told of another Fortran");
            return Err(call.blame(neutral::ERR_ABI, what));
        }
    }
    own.store(true, Ordering::Relaxed);
    Ok(())
}

/// `MPI_Abi_set_fortran_info`.
pub fn abi_set_fortran_info<A: Abi>(call: &Call<'_, A>, info: A::Info) -> Outcome<()> {
    if !A::TELLS_FORTRAN {
        return fixed(call);
    }
    let types = Types::read(call, &given(call, info)?)?;
    let own = &call.process().fortran.types;
    tell(call, own, &mut TOLD.lock().types, types, |types| {
        types.use_them();
    })
}

/// The bytes of a LOGICAL.
fn logical_bytes<A: Abi>(call: &Call<'_, A>, size: c_int) -> Outcome<usize> {
    match size {
        1 | 2 | 4 | 8 | 16 => Ok(size as usize),
        _ => {
            let what = format_args!("the size is {size}, it can be 1, 2, 4, 8 or 16");
            Err(call.blame(neutral::ERR_ARG, what))
        }
    }
}

/// The addresses of two values.
fn values<A: Abi>(call: &Call<'_, A>, yes: Base, no: Base) -> Outcome<[Base; 2]> {
    for (place, name) in [(yes, "logical_true"), (no, "logical_false")] {
        if place.is_null() {
            return Err(call.blame(neutral::ERR_ARG, format_args!("{name} is NULL")));
        }
    }
    Ok([yes, no])
}

/// `MPI_Abi_get_fortran_booleans`: integers of `size` bytes. Values that are not known are not stored.
pub fn abi_get_fortran_booleans<A: Abi>(
    call: &Call<'_, A>,
    size: c_int,
    yes: Base,
    no: Base,
    is_set: Out<'_, c_int>,
) -> Outcome<()> {
    let places = values(call, yes, no)?;
    let is_set = call.output(is_set, "is_set")?;
    let bytes = logical_bytes(call, size)?;
    let truth = match A::TELLS_FORTRAN {
        true => TOLD.lock().truth,
        false => Some([1, 0]),
    };
    for (place, value) in places.iter().zip(truth.iter().flatten()) {
        place.write(&value.to_le_bytes()[..bytes]);
    }
    is_set.write(c_int::from(truth.is_some()));
    Ok(())
}

/// `MPI_Abi_set_fortran_booleans`. LOGICALs of other sizes have the same integers, cut off or with their sign.
pub fn abi_set_fortran_booleans<A: Abi>(call: &Call<'_, A>, size: c_int, yes: Base, no: Base) -> Outcome<()> {
    if !A::TELLS_FORTRAN {
        return fixed(call);
    }
    let places = values(call, yes, no)?;
    let bytes = logical_bytes(call, size)?;
    let truth = places.map(|place| {
        let mut value = [0; size_of::<i128>()];
        place.read(&mut value[..bytes]);
        let unused = 8 * (size_of::<i128>() - bytes);
        i128::from_le_bytes(value) << unused >> unused
    });
    if truth[0] == truth[1] {
        let what = format_args!("logical_true is the same as logical_false");
        return Err(call.blame(neutral::ERR_ARG, what));
    }
    let own = &call.process().fortran.truth;
    tell(call, own, &mut TOLD.lock().truth, truth, fortran::set_truth)
}
