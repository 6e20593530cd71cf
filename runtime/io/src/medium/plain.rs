//! System calls that return when the bytes are moved.

use super::{Mapping, Medium, RUNS, Run, Way};
use core::array::from_fn;
use rustix::fd::BorrowedFd;
use rustix::io::{Errno, IoSlice, IoSliceMut, ReadWriteFlags, pread, preadv2, pwrite, pwritev2};

/// `pread`, `pwrite`, and their forms for several runs.
#[derive(Clone, Copy, Debug)]
pub struct Plain<'fd>(pub BorrowedFd<'fd>);

impl Medium for Plain<'_> {
    fn attempt(&self, way: Way, runs: &mut [Run<'_>], offset: u64) -> Result<usize, Errno> {
        let count = runs.len().min(RUNS);
        match (way, runs) {
            (Way::Read, [run]) => pread(self.0, run.room(), offset),
            (Way::Write, [run]) => pwrite(self.0, run.source(), offset),
            (Way::Read, runs) => {
                let mut slices: [_; RUNS] =
                    from_fn(|index| IoSliceMut::new(runs.get_mut(index).map_or(&mut [], Run::room)));
                preadv2(self.0, &mut slices[..count], offset, ReadWriteFlags::empty())
            }
            (Way::Write, runs) => {
                let slices: [_; RUNS] = from_fn(|index| IoSlice::new(runs.get(index).map_or(&[], Run::source)));
                pwritev2(self.0, &slices[..count], offset, ReadWriteFlags::empty())
            }
        }
    }

    fn mapping(&self, offset: u64, bytes: u64) -> Option<Mapping> {
        Mapping::of(self.0, offset, bytes)
    }
}
