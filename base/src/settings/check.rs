//! How closely arguments of MPI functions are looked at, and what else of a program.

use super::{Row, choose};
use crate::check::{Kinds, asked};

/// Name of the variable.
pub const CHECK: &str = "COHORT_CHECK";

pub(super) const ROW: Row = Row {
    name: CHECK,
    values: "on, members, off, all[,no-KIND][,warn][,json:FILE]",
    default: "on",
    help: "look for wrong arguments of MPI functions; members also compares those of all members; all is --check",
    set: |s, v| {
        if let Some(asked) = asked(v) {
            (s.check, s.check_members, s.check_types, s.check_kinds) = (true, true, false, asked.kinds);
            return Some(());
        }
        let choices = [("on", (1, 0)), ("members", (1, 1)), ("off", (0, 0))];
        let (own, all) = choose(v, &choices)?;
        (s.check, s.check_members, s.check_types, s.check_kinds) = (own > 0, all > 0, all > 0, Kinds::NONE);
        Some(())
    },
};
