//! The node image as its loader sees it: what it exports, and which boot records it takes.

use crate::{Outcome, place};
use cohort_base::boot::{AbiId, NODE_IMAGE, NODE_OPEN, NodeApi, NodeBoot, NodeOpen, RankBoot, VERSION};
use goblin::elf::Elf;
use goblin::elf::dynamic::{DF_1_NODELETE, DF_1_NOW, DT_FLAGS_1};
use goblin::elf::sym::STB_WEAK;
use std::ffi::{CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::ptr::{null, null_mut};

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// `RTLD_NOW` of Linux.
const RTLD_NOW: c_int = 2;

/// Exactly one symbol is exported, imports that may stay unbound are weak, and the dynamic linker
/// binds all of them when it loads the image, never on the task of a rank.
pub fn links_as_promised() -> Outcome {
    let path = place::built_file(NODE_IMAGE)?;
    let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let elf = Elf::parse(&bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut exported = vec![];
    for symbol in elf.dynsyms.iter() {
        let name = elf.dynstrtab.get_at(symbol.st_name).unwrap_or_default();
        if !symbol.is_import() && !name.is_empty() {
            exported.push(name);
        }
        if symbol.is_import() && name.starts_with('_') && symbol.st_bind() != STB_WEAK {
            return Err(format!("{name} is not weak"));
        }
    }
    if exported != [NODE_OPEN] {
        return Err(format!("exported: {exported:?}"));
    }
    let dynamic = elf.dynamic.ok_or("no dynamic section")?;
    let flags = dynamic.dyns.iter().find(|entry| entry.d_tag == DT_FLAGS_1);
    let wanted = DF_1_NOW | DF_1_NODELETE;
    match flags {
        Some(entry) if entry.d_val & wanted == wanted => Ok(()),
        _ => Err("not linked with -z now -z nodelete".into()),
    }
}

/// Records of other versions, and environments that the loader should have refused, give no node;
/// good ones give a rank that attaches to both ABIs.
pub fn opens_its_own_records_only() -> Outcome {
    let open = load()?;
    refused(open, "a foreign node record", |node, _| node.magic += 1)?;
    refused(open, "a newer node record", |node, _| node.version += 1)?;
    refused(open, "no rank", |node, _| node.node_ranks = 0)?;
    refused(open, "no rank records", |node, _| node.ranks = null())?;
    refused(open, "a foreign rank record", |_, rank| rank.magic += 1)?;
    refused(open, "a newer rank record", |_, rank| rank.version += 1)?;
    refused(open, "a misnumbered rank", |_, rank| rank.local_rank = 7)?;

    let (node, rank) = records();
    let (api, handle) = call(open, node).ok_or("good records are refused")?;
    if api.version != VERSION {
        return Err(format!("version {}", api.version));
    }
    // SAFETY: the record is leaked; no rank uses it yet.
    unsafe { (*rank).node = handle };
    // SAFETY: a complete record of the node that was opened; this test plays the rank.
    let attach = |abi| unsafe { (api.attach)(rank, abi, null(), null()) };
    let mpich = attach(AbiId::Mpich as u32);
    let again = attach(AbiId::Mpich as u32);
    let mpi5 = attach(AbiId::Mpi5 as u32);
    let other = attach(41);
    if mpich.rank.is_null() || mpich.rank != again.rank || mpich.rank != mpi5.rank {
        return Err("attaching gives the rank different addresses".into());
    }
    if mpich.table.is_null() || mpich.table != again.table || mpich.table == mpi5.table {
        return Err("attaching gives the wrong table".into());
    }
    if !other.rank.is_null() || !other.table.is_null() {
        return Err("an unknown ABI is attached".into());
    }
    Ok(())
}

fn load() -> Result<NodeOpen, String> {
    let path = place::built_file(NODE_IMAGE)?;
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    let name = CString::new(NODE_OPEN).map_err(|error| error.to_string())?;
    // SAFETY: C strings; the image has no initialisers of its own.
    let symbol = unsafe {
        let library = dlopen(path.as_ptr(), RTLD_NOW);
        if library.is_null() {
            return Err("the node image cannot be loaded".into());
        }
        dlsym(library, name.as_ptr())
    };
    if symbol.is_null() {
        return Err(format!("the node image has no {NODE_OPEN}"));
    }
    // SAFETY: the image exports this name with this type.
    Ok(unsafe { std::mem::transmute::<*mut c_void, NodeOpen>(symbol) })
}

/// Complete records of a node with one rank and no environment; the node image keeps them, so
/// they are leaked.
fn records() -> (*mut NodeBoot, *mut RankBoot) {
    let rank = Box::into_raw(Box::new(RankBoot::new()));
    let node = Box::into_raw(Box::new(NodeBoot::new(rank, 1)));
    (node, rank)
}

/// What the node image makes of a record.
fn call(open: NodeOpen, node: *mut NodeBoot) -> Option<(&'static NodeApi, *mut c_void)> {
    let mut handle = null_mut();
    // SAFETY: leaked records, as complete as the image needs to see that it must refuse them; the
    // API is a static of the image, which is never unloaded.
    unsafe { open(node, &mut handle).as_ref().map(|api| (api, handle)) }
}

/// Spoils good records and expects that no node is made of them.
fn refused(open: NodeOpen, what: &str, spoil: impl FnOnce(&mut NodeBoot, &mut RankBoot)) -> Outcome {
    let (node, rank) = records();
    // SAFETY: both are leaked and used by nobody else.
    unsafe { spoil(&mut *node, &mut *rank) };
    match call(open, node) {
        None => Ok(()),
        Some(_) => Err(format!("{what} is accepted")),
    }
}
