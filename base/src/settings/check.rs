//! How closely arguments of MPI functions are looked at.

use super::{Row, choose};

pub(super) const ROW: Row = Row {
    name: "COHORT_CHECK",
    values: "on, members, off",
    default: "on",
    help: "look for wrong arguments of MPI functions; members also compares those of all members",
    set: |s, v| {
        let choices = [("on", (1, 0)), ("members", (1, 1)), ("off", (0, 0))];
        choose(v, &choices).map(|(own, all)| (s.check, s.check_members) = (own > 0, all > 0))
    },
};
