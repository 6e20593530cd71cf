//! How members tell each other integers when they make communicators. Each exchange says which call it is `of`, so that
//! members which call different ones do not take each other's words.

use super::Comm;
use crate::Outcome;
use alloc::vec;
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_engine::coll::{self, Blocks, Call, Reduction, Table};
use cohort_engine::datatype::op::{Op, PredefinedOp};
use cohort_engine::datatype::{Buffer, TypeRef, predefined};

/// The numbers of every member of a group, by rank.
type ByRank<const N: usize> = Vec<[i32; N]>;

/// A list of each member of a group: one block of memory, however many members there are.
pub(super) struct Lists {
    counts: Vec<i64>,
    all: Vec<i32>,
}

impl Lists {
    /// The lists, by rank.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[i32]> {
        let mut rest = &self.all[..];
        self.counts.iter().map(move |&count| {
            let (list, others) = rest.split_at(count as usize);
            rest = others;
            list
        })
    }
}

pub(super) fn integer() -> Outcome<TypeRef> {
    predefined(neutral::handle::INT32_T).ok_or_else(|| neutral::ERR_INTERN.into())
}

impl Comm {
    /// Everyone's numbers: those of the own group, and those of the other group of an
    /// intercommunicator. Collective.
    pub(super) fn meet<const N: usize>(&self, of: Table, mine: [i32; N]) -> Outcome<(ByRank<N>, ByRank<N>)> {
        let mut ours = self.allgather(of, mine)?;
        let Some(inter) = self.inter() else {
            return Ok((ours, Vec::new()));
        };
        let integer = integer()?;
        let mut theirs = vec![[0; N]; inter.remote.len()];
        let table = |table: &mut ByRank<N>| {
            let count = (table.len() * N) as u64;
            // SAFETY: such a table, both of which outlive the calls below.
            unsafe { Buffer::new(table.as_mut_ptr().cast(), count, &integer) }
        };
        let (out, into) = (table(&mut ours), table(&mut theirs));
        inter.leaders_swap(out, into)?;
        let (buffer, root) = (into, 0);
        coll::run_within(&inter.local, of, &Call::Bcast { buffer, root })?;
        Ok((ours, theirs))
    }

    /// The largest of everyone's numbers, each place by itself: of the own group, and of the other group of an
    /// intercommunicator. Collective; takes few steps and little memory in a group of any size.
    pub(super) fn largest<const N: usize>(
        &self,
        of: Table,
        mut mine: [i32; N],
    ) -> Outcome<([i32; N], Option<[i32; N]>)> {
        let integer = integer()?;
        let mut ours = [0; N];
        let buffer =
            // SAFETY: such a list, all of which outlive the calls below.
            |list: &mut [i32; N]| unsafe {
                Buffer::new(list.as_mut_ptr().cast(), N as u64, &integer)
            };
        let (input, op) = (mine.as_mut_ptr().cast_const().cast(), Op::Predefined(PredefinedOp::Max));
        // SAFETY: both lists are as long, and outlive the call.
        let reduction = unsafe { Reduction::new(Some(input), buffer(&mut ours), op) };
        coll::run_within(&self.collective(), of, &Call::Allreduce { reduction })?;
        let Some(inter) = self.inter() else {
            return Ok((ours, None));
        };
        let mut theirs = [0; N];
        let (out, into) = (buffer(&mut ours), buffer(&mut theirs));
        inter.leaders_swap(out, into)?;
        let (buffer, root) = (into, 0);
        coll::run_within(&inter.local, of, &Call::Bcast { buffer, root })?;
        Ok((ours, Some(theirs)))
    }

    /// The numbers of every member of the own group.
    pub(crate) fn allgather<const N: usize>(&self, of: Table, mut mine: [i32; N]) -> Outcome<ByRank<N>> {
        let mut all = vec![[0; N]; self.size() as usize];
        let integer = integer()?;
        // SAFETY: `mine` has N integers, `all` N for each member, and both outlive the call.
        let (send, receive) = unsafe {
            let send = Buffer::new(mine.as_mut_ptr().cast(), N as u64, &integer);
            let first = Buffer::new(all.as_mut_ptr().cast(), N as u64, &integer);
            (send, Blocks::equal(first))
        };
        coll::run_within(&self.collective(), of, &Call::Allgather { send: Some(send), receive })?;
        Ok(all)
    }

    /// The lists of every member of the own group. Collective.
    pub(super) fn allgather_lists(&self, of: Table, mine: &[i32]) -> Outcome<Lists> {
        let lengths = self.allgather(of, [mine.len() as i32])?;
        let counts: Vec<i64> = lengths.iter().map(|&[length]| length.into()).collect();
        let start = |next: &mut i64, count: &i64| Some(core::mem::replace(next, *next + count));
        let starts: Vec<i64> = counts.iter().scan(0, start).collect();
        let mut all = vec![0_i32; counts.iter().sum::<i64>() as usize];
        let integer = integer()?;
        let base = mine.as_ptr().cast_mut().cast();
        // SAFETY: `mine` is only read; `all` has room for everyone's list; both outlive the call.
        let (send, receive) = unsafe {
            let send = Buffer::new(base, mine.len() as u64, &integer);
            (send, Blocks::varying(all.as_mut_ptr().cast(), (&counts, &starts), &integer))
        };
        coll::run_within(&self.collective(), of, &Call::Allgather { send: Some(send), receive })?;
        Ok(Lists { counts, all })
    }
}
