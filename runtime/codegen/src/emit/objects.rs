//! `objects.rs`: the variables whose addresses are handles in Open MPI's ABI.

use crate::constants::Constant;
use std::fmt::Write;

/// Variables that old binaries name, and for which the standard has no handle any more, with their numbers in Fortran.
const OTHERS: [(&str, &str, i32); 6] = [
    ("datatype", "ompi_mpi_2cplex", 26),
    ("datatype", "ompi_mpi_2dblcplex", 27),
    ("datatype", "ompi_mpi_lb", 4),
    ("datatype", "ompi_mpi_ub", 3),
    ("datatype", "ompi_mpi_unavailable", -1),
    ("errhandler", "ompi_mpi_errors_throw_exceptions", -1),
];

/// The bytes of Open MPI's variables: programs may hold copies, which the dynamic linker makes by size.
fn size(kind: &str) -> usize {
    match kind {
        "comm" | "datatype" | "win" | "session" => 512,
        "op" => 2048,
        "errhandler" => 1024,
        "file" => 1536,
        _ => 256,
    }
}

/// The variables, and the table by which the runtime finds their addresses.
#[must_use]
pub fn objects(constants: &[Constant]) -> String {
    let mut out = String::from("use cohort_abi::neutral::handle;\nuse cohort_abi::openmpi::{Object, Objects};\n");
    let mut define = |kind: &str, name: &str, neutral: &str, fortran: i32| {
        let _ = writeln!(
            out,
            "\n/// A handle is the address of this.\n#[unsafe(no_mangle)]\n\
             pub static {name}: Object<{}> = Object::new({neutral}, {fortran});",
            size(kind),
        );
    };
    let mut entries = String::new();
    for constant in constants {
        if let (Some(kind), Some((name, fortran))) = (constant.handle(), constant.variable()) {
            let neutral = format!("handle::{}", constant.rust_name());
            define(kind, name, &neutral, fortran);
            let _ = writeln!(entries, "({neutral}, {fortran}, (&raw const {name}).cast()),");
        }
    }
    let mut unnamed = String::new();
    for (kind, name, fortran) in OTHERS {
        define(kind, name, "0", fortran);
        if fortran >= 0 {
            let _ = writeln!(unnamed, "({fortran}, (&raw const {name}).cast()),");
        }
    }
    let _ = write!(
        out,
        "\n/// Where they are for this rank: a program may hold a copy, which then is the object.\n\
         #[unsafe(export_name = \"cohort_openmpi_objects\")]\n\
         pub static OBJECTS: Objects = Objects::new(&[\n{entries}], &[{unnamed}]);\n"
    );
    out
}
