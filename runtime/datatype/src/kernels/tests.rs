//! Each way of moving a run, at places in their pages where processors differ.

use super::*;
use std::vec;
use std::vec::Vec;

type Way = unsafe fn(*const u8, *mut u8, usize);

/// Moves runs of several lengths between places in two buffers; nothing around the destination may change.
fn moves(way: Way) {
    const AROUND: usize = 2 * PAGE;
    for bytes in [LINE, LINE + 1, LONG - 1, LONG, LONG + 63, VERY_LONG + 17, 70_001] {
        let data: Vec<u8> = (0..bytes + AROUND).map(|at| (at % 251) as u8).collect();
        let mut room = vec![0xff_u8; bytes + AROUND];
        let places = [0, 1, 8, 15, 16, 31, 32, 33, 127, 128, 129, 2048, PAGE - 8, PAGE - 1];
        for (from, to) in places.iter().flat_map(|&ahead| [(0, ahead), (24, 24 + ahead), (ahead, 0)]) {
            // SAFETY: both lie in their buffers, which are different ones.
            unsafe { way(data.as_ptr().add(from), room.as_mut_ptr().add(to), bytes) };
            let (before, rest) = room.split_at(to);
            let (moved, behind) = rest.split_at(bytes);
            assert_eq!(moved, &data[from..from + bytes], "{bytes} from {from} to {to}");
            assert!(before.iter().chain(behind).all(|&byte| byte == 0xff), "{bytes} from {from} to {to}");
            room.fill(0xff);
        }
    }
}

#[test]
fn runs_arrive_whole() {
    // SAFETY: `moves` keeps the conditions.
    moves(|from, to, bytes| unsafe { move_run(from, to, bytes) });
}

#[test]
fn runs_arrive_whole_line_by_line() {
    if !arch::moves_by_vectors() {
        return;
    }
    // SAFETY: `moves` keeps the conditions. The processor has AVX.
    moves(|from, to, bytes| unsafe { arch::move_lines(from, to, bytes) });
}

#[cfg(not(miri))]
#[test]
fn runs_arrive_whole_by_the_string_instruction() {
    // SAFETY: `moves` keeps the conditions.
    moves(|from, to, bytes| unsafe { move_strings(from, to, bytes) });
}
