//! Every codec is checked on all of its values.

extern crate std;

use crate::generated::constants::Constants;
use crate::mpich::handles::{DATATYPE_IN, DATATYPE_OUT, PAIR_IN};
use crate::neutral::{self, handle};
use crate::{
    Abi, FIRST_DYNAMIC_DATATYPE_INDEX, Handle, HandleKind, INDEX_MAX, Mpi5, Mpich, Status, StatusLayout, dynamic,
};
use core::ffi::c_int;
use std::collections::HashSet;
use std::vec::Vec;

/// The neutral handles of the predefined objects of type `H`, found by trying all codes.
fn predefined<H: Handle<Context = ()>>() -> Vec<u32> {
    (1..4096).filter(|&code| H::from_neutral((), code).neutral() == code).collect()
}

#[test]
fn known_handles_have_the_mpich_values() {
    type M = Mpich;
    assert_eq!(<M as Abi>::Comm::from_neutral((), handle::COMM_WORLD).to_int(), 0x4400_0000);
    assert_eq!(<M as Abi>::Datatype::from_neutral((), handle::DOUBLE).to_int(), 0x4c00_080b);
    assert_eq!(<M as Abi>::Datatype::from_int(0x8c00_0001u32 as c_int).neutral(), handle::DOUBLE_INT);
    assert_eq!(<M as Abi>::Op::from_int(0x5800_0003).neutral(), handle::SUM);
    assert_eq!(<M as Abi>::File::from_int(0).neutral(), handle::FILE_NULL);
    assert_eq!(<M as Abi>::Request::from_neutral((), handle::REQUEST_NULL).to_int(), 0x2c00_0000);
    assert_eq!(<M as Abi>::Message::from_int(0x6c00_0000).neutral(), handle::MESSAGE_NO_PROC);
}

#[test]
fn every_predefined_datatype_survives_the_round_trip() {
    let count = predefined::<<Mpich as Abi>::Datatype>().len();
    let listed = DATATYPE_OUT.iter().filter(|&&value| value != 0).count();
    let builtin = DATATYPE_IN.iter().filter(|&&(value, _)| value != 0).count();
    let pairs = PAIR_IN.iter().filter(|&&value| value != 0).count();
    assert_eq!((count, listed), (builtin + pairs, builtin + pairs));
}

#[test]
fn foreign_numbers_are_no_handles() {
    for value in [0, 1, -1, 0x4400_0000, 0x4c00_0000, 0x4c00_ff01, 0x8c00_0005u32 as c_int] {
        let neutral = <Mpich as Abi>::Datatype::from_int(value).neutral();
        assert!(neutral == 0 || neutral == 0xffff_ffff, "{value:x}: {neutral:x}");
    }
    assert_eq!(<Mpich as Abi>::Comm::from_int(0x4c00_080b).neutral(), 0);
    assert_eq!(<Mpich as Abi>::Comm::from_int(0).neutral(), 0);
}

/// Dynamic handles of a kind, at both ends of the range, in one ABI.
fn check_dynamic<H: Handle<Context = ()>>() {
    let first = if H::KIND == HandleKind::Datatype { FIRST_DYNAMIC_DATATYPE_INDEX } else { 0 };
    for index in [first, first + 1, INDEX_MAX] {
        let neutral = dynamic(H::KIND, index);
        let outside = H::from_neutral((), neutral);
        assert_eq!(outside.neutral(), neutral);
        assert_eq!(H::from_int(outside.to_int()).neutral(), neutral);
        assert!(!predefined::<H>().iter().any(|&code| H::from_neutral((), code) == outside));
    }
}

fn check_dynamic_of_all_kinds<A: Abi<Context = ()>>() {
    check_dynamic::<A::Comm>();
    check_dynamic::<A::Datatype>();
    check_dynamic::<A::Errhandler>();
    check_dynamic::<A::File>();
    check_dynamic::<A::Group>();
    check_dynamic::<A::Info>();
    check_dynamic::<A::Message>();
    check_dynamic::<A::Op>();
    check_dynamic::<A::Request>();
    check_dynamic::<A::Session>();
    check_dynamic::<A::Win>();
}

#[test]
fn dynamic_handles_survive_and_are_never_predefined() {
    check_dynamic_of_all_kinds::<Mpich>();
    check_dynamic_of_all_kinds::<Mpi5>();
}

fn check_status<A: Abi>(mut stored: A::Status) {
    for count_bytes in [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 40, (1 << 62) - 1] {
        for (source, tag) in [(0, 0), (7, 32767), (neutral::PROC_NULL, neutral::ANY_TAG)] {
            for cancelled in [false, true] {
                let error = neutral::ERR_TRUNCATE;
                let status = Status { source, tag, error, count_bytes, cancelled, beyond: 0 };
                stored.write(&status);
                stored.write_error(error);
                assert_eq!(stored.read(), status);
                stored.write(&Status { error: neutral::ERR_RANK, ..status });
                assert_eq!(stored.read().error, error, "a single completion leaves MPI_ERROR");
            }
        }
    }
}

#[test]
fn statuses_survive_the_round_trip() {
    // SAFETY: statuses consist of integers, for which zeros are valid.
    unsafe {
        check_status::<Mpich>(core::mem::zeroed());
        check_status::<Mpi5>(core::mem::zeroed());
        check_status::<crate::OpenMpi>(core::mem::zeroed());
    }
    assert_eq!(size_of::<<Mpich as Abi>::Status>(), 4 * Mpich::F_STATUS_SIZE);
    assert_eq!(size_of::<<Mpi5 as Abi>::Status>(), 4 * Mpi5::F_STATUS_SIZE);
}

#[test]
fn wildcards_and_null_ranks() {
    assert_eq!(Mpich::rank_in(-2), neutral::ANY_SOURCE);
    assert_eq!(Mpich::rank_in(-1), neutral::PROC_NULL);
    assert_eq!(Mpich::rank_in(-4), neutral::INVALID);
    assert_eq!(Mpich::rank_in(5), 5);
    assert_eq!(Mpich::tag_in(-1), neutral::ANY_TAG);
    assert_eq!(Mpich::tag_in(-2), neutral::INVALID);
    assert_eq!(Mpich::rank_out(neutral::ROOT), -3);
    assert_eq!(Mpi5::rank_in(-1), neutral::ANY_SOURCE);
}

#[test]
fn error_classes_are_a_bijection_and_added_codes_lie_above() {
    let classes = (0..neutral::FIRST_ADDED_ERROR).filter(|&class| {
        class == neutral::ERR_UNKNOWN || Mpich::error_out(class) != Mpich::error_out(neutral::ERR_UNKNOWN)
    });
    let mut seen = HashSet::new();
    for class in classes {
        assert!(seen.insert(Mpich::error_out(class)));
        assert_eq!(Mpich::error_in(Mpich::error_out(class)), class);
    }
    assert_eq!(seen.len(), 63 + 18 + 3 + 1, "classes, tool codes, failures of processes, the last code");
    let added = Mpich::error_out(neutral::FIRST_ADDED_ERROR + 3);
    assert!(added > Mpich::error_out(neutral::ERR_LASTCODE));
    assert_eq!(Mpich::error_in(added), neutral::FIRST_ADDED_ERROR + 3);
    assert_eq!(Mpich::error_in(54), neutral::INVALID);
}

#[test]
fn keys_and_modes() {
    let key = dynamic(HandleKind::Keyval, 3) as i32;
    assert_eq!(Mpich::keyval_in(Mpich::keyval_out(key)), key);
    assert_eq!(Mpich::keyval_in(0x6440_0001), neutral::TAG_UB);
    assert_eq!(Mpich::keyval_in(0), neutral::INVALID);
    let modes = neutral::MODE_RDWR | neutral::MODE_CREATE;
    assert_eq!(Mpich::access_mode_out(modes), 8 | 1);
    assert_eq!(Mpich::access_mode_in(8 | 1), modes);
    assert_eq!(Mpich::access_mode_in(1 << 20), neutral::INVALID);
    assert_eq!(Mpich::assertion_in(0), 0);
}

/// Open MPI's objects: reading a handle is a load, whatever its kind.
#[test]
fn handles_of_open_mpi_lead_to_objects() {
    use crate::openmpi::{Object, Objects};
    type A = crate::OpenMpi;
    static WORLD: Object<512> = Object::new(handle::COMM_WORLD, 0);
    static INT: Object<512> = Object::new(handle::INT, 39);
    static PACKED: Object<512> = Object::new(0, 40);
    static TABLE: Objects = Objects::new(
        &[(handle::COMM_WORLD, 0, (&raw const WORLD).cast()), (handle::INT, 39, (&raw const INT).cast())],
        &[(40, (&raw const PACKED).cast())],
    );
    assert_eq!(<A as Abi>::Datatype::of_int(&TABLE, 40).to_int(), 40);
    let world = <A as Abi>::Comm::from_neutral(&TABLE, handle::COMM_WORLD);
    assert_eq!((world.neutral(), world.to_int()), (handle::COMM_WORLD, 0));
    assert!(<A as Abi>::Comm::of_int(&TABLE, 0) == world);
    assert_eq!(<A as Abi>::Datatype::of_int(&TABLE, 39).neutral(), handle::INT);
    for unknown in [-1, 0, 7] {
        assert_eq!(<A as Abi>::Datatype::of_int(&TABLE, unknown).neutral(), 0);
    }
    for index in [FIRST_DYNAMIC_DATATYPE_INDEX, INDEX_MAX] {
        let neutral = dynamic(HandleKind::Datatype, index);
        let outside = <A as Abi>::Datatype::from_neutral(&TABLE, neutral);
        assert_eq!(outside.neutral(), neutral);
        assert!(<A as Abi>::Datatype::of_int(&TABLE, outside.to_int()) == outside);
    }
    assert_eq!(size_of::<Object<512>>(), 512);
    assert_eq!(size_of::<<A as Abi>::Status>(), 24);
}
