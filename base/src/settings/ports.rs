//! Who meets whom at ports.

use super::{Row, choose};

/// Name of the variable that says whose processes may connect at ports.
pub const PORTS: &str = "COHORT_PORTS";

/// Name of the variable that says where names are published for other jobs.
pub const NAMES: &str = "COHORT_NAMES";

/// The row of [`PORTS`].
pub(super) const ROW: Row = Row {
    name: PORTS,
    values: "any, job",
    default: "any",
    help: "who may connect at a port (MPI_Open_port): processes of any job that is told its name, or of the own job",
    set: |s, v| choose(v, &[("any", true), ("job", false)]).map(|any| s.ports_for_any = any),
};

/// The row of [`NAMES`].
pub(super) const NAMES_ROW: Row = Row {
    name: NAMES,
    values: "auto, or a folder",
    default: "auto",
    help: "folder of the names that jobs publish for each other (MPI_Publish_name): of the user's, on this host",
    set: |_, v| (!v.is_empty()).then_some(()),
};
