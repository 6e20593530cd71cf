//! Procedures with CHARACTER arguments whose length is an argument too, and lists of CHARACTERs.

use crate::A;
use crate::arguments::{self, Ierror};
use crate::generated::c;
use crate::handles::{self, Handles, handle};
use crate::sentinel::{is_argv_null, is_argvs_null};
use crate::text::{Room, Text};
use alloc::vec::Vec;
use cohort_abi::{Abi, Handle};
use core::ffi::{c_char, c_int};

type Comm = <A as Abi>::Comm;
type Info = <A as Abi>::Info;

/// `MPI_INFO_GET`: `valuelen` counts characters in both languages; C writes a NUL after them.
pub unsafe extern "C" fn info_get(
    info: *const c_int,
    key: *const c_char,
    valuelen: *const c_int,
    value: *mut c_char,
    flag: *mut c_int,
    ierror: Ierror,
    key_length: c_int,
    value_length: c_int,
) {
    // SAFETY: the Fortran caller keeps the contract of this procedure.
    unsafe {
        let key = Text::stripped(key, key_length);
        let mut room = Room::of(usize::try_from(*valuelen).unwrap_or(0));
        let info: Info = handle(*info);
        let code = c::MPI_Info_get(info, key.pointer(), *valuelen, room.pointer(), flag);
        ierror.set(code);
        if code == 0 && *flag != 0 {
            room.store(value, value_length);
        }
    }
}

/// `MPI_INFO_GET_STRING`: C's `buflen` counts the NUL, Fortran's does not.
pub unsafe extern "C" fn info_get_string(
    info: *const c_int,
    key: *const c_char,
    buflen: *mut c_int,
    value: *mut c_char,
    flag: *mut c_int,
    ierror: Ierror,
    key_length: c_int,
    value_length: c_int,
) {
    // SAFETY: the Fortran caller keeps the contract of this procedure.
    unsafe {
        let key = Text::stripped(key, key_length);
        let (mut room, mut length) = room_for(*buflen);
        let asked = length;
        let info: Info = handle(*info);
        let code = c::MPI_Info_get_string(info, key.pointer(), &mut length, room.pointer(), flag);
        ierror.set(code);
        if code == 0 && *flag != 0 {
            *buflen = length - 1;
            if asked != 0 {
                room.store(value, value_length);
            }
        }
    }
}

/// `MPI_SESSION_GET_NTH_PSET`: C's `pset_len` counts the NUL, Fortran's does not.
pub unsafe extern "C" fn session_get_nth_pset(
    session: *const c_int,
    info: *const c_int,
    n: *const c_int,
    pset_len: *mut c_int,
    pset_name: *mut c_char,
    ierror: Ierror,
    name_length: c_int,
) {
    // SAFETY: the Fortran caller keeps the contract of this procedure.
    unsafe {
        let (mut room, mut length) = room_for(*pset_len);
        let asked = length;
        let session: <A as Abi>::Session = handle(*session);
        let info: Info = handle(*info);
        let code = c::MPI_Session_get_nth_pset(session, info, *n, &mut length, room.pointer());
        ierror.set(code);
        if code == 0 {
            *pset_len = length - 1;
            if asked != 0 {
                room.store(pset_name, name_length);
            }
        }
    }
}

/// Room for so many characters, and its length for C. Without any, C is asked for the length only.
fn room_for(characters: c_int) -> (Room, c_int) {
    match usize::try_from(characters) {
        Ok(characters @ 1..) => (Room::of(characters), characters as c_int + 1),
        _ => (Room::of(0), 0),
    }
}

/// A list of strings for C, which ends with NULL.
struct List {
    /// What the pointers lead to.
    _strings: Vec<Text>,
    pointers: Vec<*mut c_char>,
}

impl List {
    fn of(strings: Vec<Text>) -> Self {
        let pointers = strings.iter().map(|text| text.pointer().cast_mut());
        let pointers = pointers.chain([core::ptr::null_mut()]).collect();
        Self { _strings: strings, pointers }
    }

    /// The CHARACTERs at `start`, `step` apart, up to a blank one.
    ///
    /// # Safety
    /// They are valid for `length` reads each.
    unsafe fn until_blank(start: *const c_char, length: c_int, step: usize) -> Self {
        let size = usize::try_from(length).unwrap_or(0);
        // SAFETY: as the caller promises.
        let all = (0..).map(|index| unsafe { Text::stripped(start.add(index * step * size), length) });
        Self::of(all.take_while(|text| !text.is_blank()).collect())
    }
}

/// `MPI_COMM_SPAWN`. Command and arguments matter at the root only, and others need not have any.
pub unsafe extern "C" fn comm_spawn(
    command: *const c_char,
    argv: *const c_char,
    maxprocs: *const c_int,
    info: *const c_int,
    root: *const c_int,
    comm: *const c_int,
    intercomm: *mut c_int,
    array_of_errcodes: *mut c_int,
    ierror: Ierror,
    command_length: c_int,
    argv_length: c_int,
) {
    // SAFETY: the Fortran caller keeps the contract of this procedure.
    unsafe {
        let is_root = handles::is_rank(*comm, *root);
        let command = is_root.then(|| Text::stripped(command, command_length));
        let mut list = (is_root && !is_argv_null(argv)).then(|| List::until_blank(argv, argv_length, 1));
        let list = list.as_mut().map_or(core::ptr::null_mut(), |list| list.pointers.as_mut_ptr());
        let mut made: Comm = handle(*intercomm);
        let code = c::MPI_Comm_spawn(
            command.as_ref().map_or(core::ptr::null(), Text::pointer),
            list,
            *maxprocs,
            handle(*info),
            *root,
            handle(*comm),
            &mut made,
            arguments::errcodes(array_of_errcodes),
        );
        ierror.set(code);
        *intercomm = made.to_int();
    }
}

/// `MPI_COMM_SPAWN_MULTIPLE`. Row i of `array_of_argv(count, *)` has the arguments of command i. The lists and their
/// length matter at the root only.
pub unsafe extern "C" fn comm_spawn_multiple(
    count: *const c_int,
    array_of_commands: *const c_char,
    array_of_argv: *const c_char,
    array_of_maxprocs: *const c_int,
    array_of_info: *const c_int,
    root: *const c_int,
    comm: *const c_int,
    intercomm: *mut c_int,
    array_of_errcodes: *mut c_int,
    ierror: Ierror,
    command_length: c_int,
    argv_length: c_int,
) {
    // SAFETY: the Fortran caller keeps the contract of this procedure.
    unsafe {
        let is_root = handles::is_rank(*comm, *root);
        let count = if is_root { *count } else { 0 };
        let rows = usize::try_from(count).unwrap_or(0);
        let place = |length: c_int, row| usize::try_from(length).unwrap_or(0) * row;
        let commands = (0..rows).map(|row| {
            let start = array_of_commands.add(place(command_length, row));
            Text::stripped(start, command_length)
        });
        let mut commands = List::of(commands.collect());
        let has_lists = is_root && !is_argvs_null(array_of_argv);
        let mut lists: Vec<List> = match has_lists {
            false => Vec::new(),
            true => (0..rows)
                .map(|row| {
                    let start = array_of_argv.add(place(argv_length, row));
                    List::until_blank(start, argv_length, rows)
                })
                .collect(),
        };
        let mut argvs: Vec<*mut *mut c_char> = lists.iter_mut().map(|list| list.pointers.as_mut_ptr()).collect();
        let argvs = if has_lists { argvs.as_mut_ptr() } else { core::ptr::null_mut() };
        let mut made: Comm = handle(*intercomm);
        let mut infos = Handles::<Info>::of(array_of_info, || rows);
        let code = c::MPI_Comm_spawn_multiple(
            count,
            commands.pointers.as_mut_ptr(),
            argvs,
            array_of_maxprocs,
            infos.pointer(),
            *root,
            handle(*comm),
            &mut made,
            arguments::errcodes(array_of_errcodes),
        );
        ierror.set(code);
        *intercomm = made.to_int();
    }
}
