//! Datatypes, packing, statuses.

use super::*;
use core::ptr::null_mut;

fn null_type() -> Datatype {
    Datatype::from_neutral((), neutral::handle::DATATYPE_NULL)
}

#[test]
fn a_vector_says_how_it_was_made() {
    run(1, |program| {
        let mut vector = null_type();
        assert_eq!(mpi!(program, Type_vector, 3, 2, 4, int(), &mut vector), 0);
        let (mut size, mut lb, mut extent) = (0, -1_isize, 0_isize);
        assert_eq!(mpi!(program, Type_size, vector, &mut size), 0);
        assert_eq!(mpi!(program, Type_get_extent, vector, &mut lb, &mut extent), 0);
        assert_eq!((size, lb, extent), (24, 0, 40));
        let (mut integers, mut addresses, mut types, mut combiner) = (0, 0, 0, 0);
        let code = mpi!(program, Type_get_envelope, vector, &mut integers, &mut addresses, &mut types, &mut combiner);
        assert_eq!((code, integers, addresses, types), (0, 3, 0, 1));
        assert_eq!(combiner, neutral::COMBINER_VECTOR);
        let (mut arguments, mut old) = ([0; 3], null_type());
        let list = arguments.as_mut_ptr();
        let code = mpi!(program, Type_get_contents, vector, 3, 0, 1, list, null_mut(), &mut old);
        assert_eq!((code, arguments), (0, [3, 2, 4]));
        assert!(old == int());
        let code = mpi!(program, Type_get_contents, vector, 2, 0, 1, list, null_mut(), &mut old);
        assert_eq!(code, neutral::ERR_ARG);
        assert_eq!(mpi!(program, Type_free, &mut vector), 0);
    });
}

#[test]
fn names_are_the_standards_until_changed() {
    run(1, |program| {
        let (mut name, mut length) = ([0; 128], 0);
        let target = name.as_mut_ptr();
        assert_eq!(mpi!(program, Type_get_name, int(), target, &mut length), 0);
        // SAFETY: MPI stores a string.
        let text = unsafe { core::ffi::CStr::from_ptr(name.as_ptr()) };
        assert_eq!((text, length), (c"MPI_INT", 7));
        let mut copy = null_type();
        assert_eq!(mpi!(program, Type_dup, int(), &mut copy), 0);
        assert_eq!(mpi!(program, Type_set_name, copy, c"mine".as_ptr()), 0);
        assert_eq!(mpi!(program, Type_get_name, copy, name.as_mut_ptr(), &mut length), 0);
        assert_eq!(length, 4);
        assert_eq!(mpi!(program, Type_free, &mut copy), 0);
        let mut predefined = int();
        assert_eq!(mpi!(program, Type_free, &mut predefined), neutral::ERR_TYPE);
    });
}

#[test]
fn packing_keeps_the_position_and_the_values() {
    run(1, |program| {
        let values = [1, -2, 3];
        let (mut packed, mut position, mut back) = ([0_u8; 12], 0, [0; 3]);
        let (from, buffer) = (values.as_ptr().cast::<c_void>(), packed.as_mut_ptr().cast());
        for part in 0..3 {
            let from = from.wrapping_byte_add(part * 4);
            let code = mpi!(program, Pack, from, 1, int(), buffer, 12, &mut position, world());
            assert_eq!((code, position), (0, part as c_int * 4 + 4));
        }
        let code = mpi!(program, Pack, from, 1, int(), buffer, 12, &mut position, world());
        assert_eq!(code, neutral::ERR_TRUNCATE);
        position = 0;
        let target = back.as_mut_ptr().cast();
        let code = mpi!(program, Unpack, buffer, 12, &mut position, target, 3, int(), world());
        assert_eq!((code, position, back), (0, 12, values));
    });
}

#[test]
fn the_portable_form_is_big_endian() {
    run(1, |program| {
        let value: c_int = 0x0102_0304;
        let (mut bytes, mut position, mut back) = ([0_u8; 4], 0_isize, 0);
        let form = c"external32".as_ptr();
        let buffer = bytes.as_mut_ptr().cast();
        let code = mpi!(program, Pack_external, form, (&raw const value).cast(), 1, int(), buffer, 4, &mut position);
        assert_eq!((code, bytes, position), (0, [1, 2, 3, 4], 4));
        position = 0;
        let code = mpi!(program, Unpack_external, form, buffer, 4, &mut position, (&raw mut back).cast(), 1, int());
        assert_eq!((code, back), (0, value));
    });
}

#[test]
fn a_status_remembers_elements() {
    run(1, |program| {
        let (mut status, mut count) = (status(), 0);
        let pair = Datatype::from_neutral((), neutral::handle::DOUBLE_INT);
        for elements in [0, 1, 2, 7] {
            assert_eq!(mpi!(program, Status_set_elements, &mut status, pair, elements), 0);
            assert_eq!(mpi!(program, Get_elements, &status, pair, &mut count), 0);
            assert_eq!(count, elements);
            assert_eq!(mpi!(program, Get_count, &status, pair, &mut count), 0);
            let whole = if elements % 2 == 0 { elements / 2 } else { neutral::UNDEFINED };
            assert_eq!(count, whole);
        }
        let mut size = -1;
        assert_eq!(mpi!(program, Type_size, byte(), &mut size), 0);
        assert_eq!(size, 1);
    });
}
