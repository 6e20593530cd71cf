//! Names that are published in jobs of several nodes, whose rank 0 keeps them.

use super::on_nodes;
use crate::ports;
use cohort_abi::neutral;
use cohort_engine::calls::{NAMES_MAX, TEXT_MAX};
use cohort_engine::coll::Table;
use std::format;

#[test]
fn one_name_too_many_is_refused_as_that() {
    on_nodes(
        &[&[0], &[1]],
        |_| (),
        |world| {
            let rank = world.rank();
            if rank.world_rank() == 0 {
                for number in 0..NAMES_MAX {
                    ports::publish(rank, &format!("name {number}"), "a port").expect("room");
                }
                let refused = |name: &str| {
                    let error = ports::publish(rank, name, "a port").expect_err("it is refused");
                    (error.code(), error.detail().contains("as many as"), error.detail().contains("already"))
                };
                assert_eq!(refused("one more"), (neutral::ERR_SERVICE, true, false));
                assert_eq!(refused("name 3"), (neutral::ERR_SERVICE, false, true));
                ports::unpublish(rank, "name 3", "a port").expect("it is published");
                ports::publish(rank, "one more", "a port").expect("room");
                assert_eq!(ports::lookup(rank, "one more").as_deref().ok(), Some("a port"));
            }
            world.allgather(Table::Object, [0]).expect("an allgather");
        },
    );
}

#[test]
fn a_name_that_is_too_long_is_not_found() {
    on_nodes(
        &[&[0], &[1]],
        |_| (),
        |world| {
            let long = "x".repeat(TEXT_MAX + 1);
            let code = |outcome: crate::Outcome<()>| outcome.expect_err("it is too long").code();
            assert_eq!(code(ports::lookup(world.rank(), &long).map(drop)), neutral::ERR_NAME);
            assert_eq!(code(ports::publish(world.rank(), &long, "a port")), neutral::ERR_SERVICE);
            world.allgather(Table::Object, [0]).expect("an allgather");
        },
    );
}
