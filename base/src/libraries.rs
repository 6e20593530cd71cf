//! File names of MPI libraries: ours, those whose place ours take, and those of other ABIs.

/// Our libraries: of the MPICH ABI, of that of MPI-5, and of Open MPI's.
pub const OURS: [&str; 3] = ["libmpi.so.12", "libmpi_abi.so.1", "libmpi.so.40"];

/// Index of Open MPI's.
pub const OPENMPI: usize = 2;

/// Names of libraries whose place ours take, with the index of ours. A version may follow those that end in one.
pub const REPLACED: [(&str, usize); 7] = [
    ("libmpi.so", 0),
    ("libmpi.so.12", 0),
    ("libmpich.so", 0),
    ("libmpich.so.12", 0),
    ("libmpi_abi.so", 1),
    ("libmpi_abi.so.1", 1),
    ("libmpi.so.40", 2),
];

/// How names of MPI libraries begin that are none of [`REPLACED`], and whose they are if that is certain: they have an
/// ABI that we do not provide.
pub const OTHERS: [(&str, Option<&str>); 8] = [
    ("libmpi.so.20", Some("Open MPI")),
    ("libmpi_ibm.so", Some("Spectrum MPI")),
    ("libmpi_ilp64.so", Some("Intel MPI")),
    ("libmpi_cray", Some("Cray MPICH")),
    ("libmpi_gnu_", Some("Cray MPICH")),
    ("libmpi.so.", None),
    ("libmpich.so.", None),
    ("libmpi_abi.so.", None),
];

/// How names of libraries begin that work with their own MPI only, and what they are: they call its inner functions.
pub const COMPANIONS: [(&str, &str); 1] = [("liboshmem", "OpenSHMEM")];
