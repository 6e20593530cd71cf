//! Calls of the TCP network are made without a seat, so nothing that they reach may use thread-local data: the thread
//! pointer is that of another C library's thread.
//!
//! What is reached is read from the machine code of the release build: calls and jumps to known places, also through
//! the table of addresses that the loader fills (GOT), from the methods that tasks call. Calls through other pointers
//! are not followed; what ends the process (panics) may do as it likes.

use super::{image, outcome};
use crate::command::Program;
use crate::{Outcome, place};
use goblin::elf::reloc::R_X86_64_RELATIVE;
use std::collections::{BTreeMap, BTreeSet};

/// What ends the process.
const ENDS: [&str; 6] =
    ["panic", "unwrap_failed", "expect_failed", "handle_error", "handle_alloc_error", "capacity_overflow"];

/// Methods of the network that are called while the node starts and ends, by the root.
const BY_THE_ROOT: [&str; 4] = ["::open", "drop_in_place", "Debug>", "NodeNetwork>"];

/// The canary of functions that guard their stacks; every thread has one at this place.
const CANARY: &str = "%fs:0x28";

/// A function of a listing.
#[derive(Debug, Default)]
struct Function {
    name: String,
    /// Where it calls or jumps to.
    calls: BTreeSet<u64>,
    uses_thread_data: bool,
}

/// The functions of a listing of `objdump -d -C --no-show-raw-insn`, by their addresses; `slots` are the places that
/// hold addresses.
fn functions(listing: &str, slots: &BTreeMap<u64, u64>) -> BTreeMap<u64, Function> {
    let mut all = BTreeMap::new();
    let mut current: Option<(u64, Function)> = None;
    for line in listing.lines() {
        if let Some((address, name)) = heading(line) {
            all.extend(current.take());
            let name = name.to_owned();
            current = Some((address, Function { name, ..Function::default() }));
        } else if let Some((_, function)) = &mut current {
            function.calls.extend(target(line, slots));
            let other_data = line.contains("%fs:") && !line.contains(CANARY);
            function.uses_thread_data |= other_data || line.contains("__tls_get_addr");
        }
    }
    all.extend(current);
    all
}

/// The line before a function's first instruction: its address and name.
fn heading(line: &str) -> Option<(u64, &str)> {
    let (address, name) = line.strip_suffix(">:")?.split_once(" <")?;
    Some((u64::from_str_radix(address, 16).ok()?, name))
}

/// Where an instruction goes, if it is a call or a jump to a known place.
fn target(line: &str, slots: &BTreeMap<u64, u64>) -> Option<u64> {
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let (_, instruction) = line.split_once(":\t")?;
    let mut words = instruction.split_whitespace();
    let verb = words.next()?;
    let place = words.next()?;
    if verb != "call" && !verb.starts_with('j') {
        return None;
    }
    if !place.starts_with('*') {
        return number(place);
    }
    let (_, slot) = instruction.split_once("# ")?;
    slots.get(&number(slot.split(' ').next()?)?).copied()
}

/// Each function that uses thread-local data and is reached from a root, with the way to it.
fn reached(all: &BTreeMap<u64, Function>, is_root: impl Fn(&str) -> bool) -> Vec<String> {
    let mut ways: BTreeMap<u64, Option<u64>> = BTreeMap::new();
    let mut open: Vec<(u64, Option<u64>)> =
        all.iter().filter(|(_, function)| is_root(&function.name)).map(|(&address, _)| (address, None)).collect();
    let mut found = Vec::new();
    while let Some((address, from)) = open.pop() {
        let Some(function) = all.get(&address) else {
            continue;
        };
        let ends = ENDS.iter().any(|end| function.name.contains(end));
        if ends || ways.contains_key(&address) {
            continue;
        }
        ways.insert(address, from);
        if function.uses_thread_data {
            let back = |address: &u64| ways.get(address).copied().flatten();
            let way = std::iter::successors(Some(address), back);
            let names: Vec<&str> = way.map(|step| all[&step].name.as_str()).collect();
            found.push(names.join(", called by "));
        }
        let next = function.calls.iter();
        open.extend(next.map(|&to| (to, Some(address))));
    }
    found
}

/// No method of the TCP network that a task calls reaches thread-local data.
pub fn no_thread_data() -> Outcome {
    let library = place::built_file("libcohort_network.so")?;
    let listing =
        Program::new("objdump").args(["-d", "-C", "--no-show-raw-insn"]).arg(library).run()?.expect_code(0)?;
    let slots = image::with_elf("libcohort_network.so", |elf| {
        let relocations = elf.dynrelas.iter();
        let relative = relocations.filter(|one| one.r_type == R_X86_64_RELATIVE);
        let held = relative.map(|one| (one.r_offset, one.r_addend.unwrap_or(0) as u64));
        Ok(held.collect())
    })?;
    let all = functions(&listing.stdout, &slots);
    let is_root = |name: &str| name.contains("TcpNetwork") && !BY_THE_ROOT.iter().any(|part| name.contains(part));
    let roots = all.values().filter(|function| is_root(&function.name));
    if roots.count() < 4 {
        return Err("the methods of the TCP network are not found by their names".into());
    }
    outcome(reached(&all, is_root))
}

/// A use behind two calls is seen; one that nobody reaches, one behind a panic and the canary are not.
pub fn uses_are_seen() -> Outcome {
    const SAMPLE: &str = "\
0000000000001000 <net::TcpNetwork::send>:
    1000:\tcall   *0x10(%rip)        # 7000 <_DYNAMIC+0x8>
    1005:\tcall   4000 <core::panicking::panic>
    100a:\tmov    %fs:0x28,%rax
0000000000002000 <helper>:
    2000:\tjmp    3000 <std::print>
0000000000003000 <std::print>:
    3000:\tcall   9000 <__tls_get_addr@plt>
0000000000004000 <core::panicking::panic>:
    4000:\tmov    %fs:0x0,%rax
0000000000005000 <nobody>:
    5000:\tmov    %fs:0x0,%rax
";
    let slots = BTreeMap::from([(0x7000, 0x2000)]);
    let found = reached(&functions(SAMPLE, &slots), |name| name.contains("TcpNetwork"));
    let expected = ["std::print, called by helper, called by net::TcpNetwork::send"];
    if found == expected { Ok(()) } else { Err(format!("found {found:?}")) }
}
