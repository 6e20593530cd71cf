//! Which numbers the network's descriptors have, in every process of a node: above all that the system hands out, so
//! that they and those of programs do not meet.

/// Numbers below are left to programs, where the limit has room for it.
const BASE_MIN: u64 = 1024;

/// Higher numbers cost memory in each process: the kernel's table has 8 bytes for each number.
const BASE_MAX: u64 = 16384;

/// How many numbers the network needs at most, or a quarter of what there is.
pub const ROOM: usize = 4096;

/// The first of them: above the soft limit of open files, so that the system hands none of these numbers out, if the
/// hard limit has room for them; else the highest that it allows.
#[must_use]
pub fn first(soft: u64, hard: u64) -> i32 {
    let wanted = soft.clamp(BASE_MIN, BASE_MAX);
    wanted.min(hard.saturating_sub((ROOM as u64).min(hard / 4))) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_lie_above_what_the_system_hands_out() {
        assert_eq!(first(1024, 1 << 20), 1024);
        assert_eq!(first(256, 1 << 20), 1024);
        assert_eq!(first(1 << 20, 1 << 20), 16384);
        assert_eq!(first(1024, 1024), 768);
    }
}
