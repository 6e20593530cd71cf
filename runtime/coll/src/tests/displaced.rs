//! A buffer that begins where another one does, and whose data lie elsewhere.

use super::data::int;
use super::on_nodes;
use crate::{Blocks, Call, start};
use cohort_core::Status;
use cohort_core::wait::{self, WaitKind};
use cohort_datatype::{Buffer, CountForm, hindexed_block};
use std::vec;
use std::vec::Vec;

/// Members of so many nodes that blocks travel by doubling, two of them on the first: each one's own element lies
/// behind all that it gets, and is named by a type with a displacement.
#[test]
fn own_blocks_that_only_seem_to_be_there_are_gathered() {
    const SIZE: usize = 11;
    let nodes: Vec<_> = [vec![0, 1]].into_iter().chain((2..SIZE as u32).map(|rank| vec![rank])).collect();
    on_nodes(&nodes, |group| {
        let whole = int();
        let behind = hindexed_block(1, &[4 * SIZE as i64], &whole, CountForm::Int).expect("small");
        let mut memory = vec![-1; SIZE + 1];
        memory[SIZE] = 100 + group.me as i32;
        let base = memory.as_mut_ptr().cast::<u8>();
        // SAFETY: the test's own memory, which stays until the operation is over.
        let (own, receive) = unsafe { (Buffer::new(base, 1, &behind), Blocks::equal(Buffer::new(base, 1, &whole))) };
        let call = Call::Allgather { send: Some(own), receive };
        // SAFETY: the memory lives until the request is complete.
        let request = unsafe { start(group, &call) }.expect("memory");
        wait::until(group.owner, WaitKind::Request, || request.is_complete());
        assert_eq!(request.status().error, Status::SUCCESS);
        request.release(&mut group.rank().enter());
        let expected: Vec<i32> = (100..100 + SIZE as i32).collect();
        assert_eq!(memory[..SIZE], expected);
    });
}
