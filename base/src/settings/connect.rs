//! Who meets whom at ports.

use super::{Row, choose};

/// Name of the variable that says whose processes may connect at ports.
pub const CONNECT: &str = "COHORT_CONNECT";

/// Name of the variable that says where names are published for other jobs.
pub const CONNECT_NAMES: &str = "COHORT_CONNECT_NAMES";

/// The row of [`CONNECT`].
pub(super) const ROW: Row = Row {
    name: CONNECT,
    values: "any, job",
    default: "any",
    help: "who may connect at a port (MPI_Open_port): processes of any job that is told its name, or of the own job",
    set: |s, v| choose(v, &[("any", true), ("job", false)]).map(|any| s.connects_any = any),
};

/// The row of [`CONNECT_NAMES`].
pub(super) const NAMES_ROW: Row = Row {
    name: CONNECT_NAMES,
    values: "auto, or a folder",
    default: "auto",
    help: "folder of the names that jobs publish for each other (MPI_Publish_name): of the user's, on this host",
    set: |_, v| (!v.is_empty()).then_some(()),
};
