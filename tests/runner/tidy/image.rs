//! What the built libraries promise to a loader (rules of stealable code).

use crate::{Outcome, place};
use goblin::elf::Elf;
use goblin::elf::program_header::PT_TLS;
use std::collections::BTreeSet;

/// What the node image may leave undefined: the compiler calls these of itself.
const ALLOWED: [&str; 5] = ["memcpy", "memmove", "memset", "memcmp", "bcmp"];

/// Weak references of the C start files, which nobody needs to define.
const START_FILES: [&str; 4] =
    ["__cxa_finalize", "__gmon_start__", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable"];

/// Looks at a built library.
pub fn with_elf<T>(name: &str, look: impl FnOnce(&Elf<'_>) -> Result<T, String>) -> Result<T, String> {
    let path = place::built_file(name)?;
    let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let elf = Elf::parse(&bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    look(&elf)
}

fn undefined<'a>(elf: &'a Elf<'_>) -> BTreeSet<&'a str> {
    elf.dynsyms
        .iter()
        .filter(|symbol| symbol.is_import())
        .filter_map(|symbol| elf.dynstrtab.get_at(symbol.st_name))
        .filter(|name| !name.is_empty())
        .collect()
}

fn exported<'a>(elf: &'a Elf<'_>) -> BTreeSet<&'a str> {
    elf.dynsyms
        .iter()
        .filter(|symbol| symbol.is_function() && !symbol.is_import())
        .filter_map(|symbol| elf.dynstrtab.get_at(symbol.st_name))
        .collect()
}

/// No PT_TLS segment, no `__tls_get_addr`, no TLS relocation.
pub fn no_thread_local() -> Outcome {
    use goblin::elf::reloc::{R_X86_64_DTPMOD64, R_X86_64_TLSDESC, R_X86_64_TPOFF64};
    with_elf("libcohort_node.so", |elf| {
        if elf.program_headers.iter().any(|header| header.p_type == PT_TLS) {
            return Err("the node image has a PT_TLS segment".into());
        }
        if undefined(elf).contains("__tls_get_addr") {
            return Err("the node image calls __tls_get_addr".into());
        }
        let kinds = [R_X86_64_DTPMOD64, R_X86_64_TLSDESC, R_X86_64_TPOFF64];
        let relocations = elf.dynrelas.iter().chain(elf.pltrelocs.iter());
        match relocations.into_iter().find(|relocation| kinds.contains(&relocation.r_type)) {
            Some(found) => Err(format!("TLS relocation at {:#x}", found.r_offset)),
            None => Ok(()),
        }
    })
}

/// Nothing undefined but [`ALLOWED`].
pub fn few_undefined() -> Outcome {
    with_elf("libcohort_node.so", |elf| {
        let excess: Vec<&str> =
            undefined(elf).into_iter().filter(|name| !ALLOWED.contains(name) && !START_FILES.contains(name)).collect();
        if excess.is_empty() { Ok(()) } else { Err(format!("undefined symbols: {excess:?}")) }
    })
}

/// Every `MPI_X` has its `PMPI_X`, and there are as many as the standard has procedures.
pub fn twin_names() -> Outcome {
    for face in ["libmpi.so.12", "libmpi_abi.so.1", "libmpi.so.40"] {
        with_elf(face, |elf| {
            let names = exported(elf);
            let procedures: Vec<&&str> = names.iter().filter(|name| name.starts_with("MPI_")).collect();
            if procedures.len() < 531 {
                return Err(format!("{face} exports {} MPI_ names only", procedures.len()));
            }
            match procedures.iter().find(|name| !names.contains(format!("P{name}").as_str())) {
                Some(name) => Err(format!("{face} has {name} and no P{name}")),
                None => Ok(()),
            }
        })?;
    }
    Ok(())
}
