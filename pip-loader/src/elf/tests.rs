use super::{ElfError, parse};

fn own() -> Vec<u8> {
    std::fs::read("/proc/self/exe").expect("the test's own executable is readable")
}

#[test]
fn an_executable_has_an_interpreter_and_needs_libc() {
    let plan = parse(&own()).expect("a test executable is a valid PIE");
    assert!(plan.interpreter.expect("dynamic").contains("ld-"));
    assert!(plan.needed.iter().any(|name| name.starts_with("libc.so")));
    assert!(!plan.executable_stack);
    assert!(
        plan.segments
            .iter()
            .any(|s| s.execute && !s.write && s.covers(plan.entry, 1))
    );
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
    assert_eq!(
        parse(b"\x7fELF"),
        Err(ElfError::Truncated { end: 64, len: 4 })
    );
    assert_eq!(edit(4, 1), ElfError::Bits32);
    assert_eq!(edit(5, 2), ElfError::BigEndian);
    assert_eq!(edit(18, 183), ElfError::Machine(183));
    assert!(edit(18, 183).to_string().contains("AARCH64"));
    assert_eq!(edit(16, 1), ElfError::NotLoadable(1));
}

#[test]
fn fixed_addresses_are_noted() {
    let mut file = own();
    assert!(!parse(&file).expect("valid").fixed_address);
    file[16] = 2;
    assert!(parse(&file).expect("valid").fixed_address);
}

#[test]
fn a_file_cut_anywhere_is_truncated() {
    let file = own();
    let plan = parse(&file).expect("valid");
    let last = plan
        .segments
        .iter()
        .map(|s| s.file_offset + s.file_len)
        .max()
        .expect("has segments");
    for len in [64, 100, 1000, last as usize / 2, last as usize - 1] {
        let result = parse(&file[..len]);
        assert!(
            matches!(result, Err(ElfError::Truncated { .. })),
            "{len}: {result:?}"
        );
    }
}
