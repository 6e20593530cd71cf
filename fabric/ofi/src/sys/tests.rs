//! Compares the declarations with libfabric's headers.

use super::{NUMBERS, records};
use cohort_fabric_host::address;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;

/// A record as it is declared here.
pub struct Record {
    pub header: &'static str,
    pub is_ours: bool,
    pub size: usize,
    pub fields: Vec<Field>,
}

/// One of its fields.
pub struct Field {
    pub name: &'static str,
    pub offset: usize,
    pub size: usize,
}

/// An expression of the headers, and what it must be.
struct Expected {
    expression: String,
    value: i128,
    /// It may be more.
    is_least: bool,
}

fn equal(expression: String, value: impl TryInto<i128>) -> Expected {
    let value = value.try_into().unwrap_or_else(|_| panic!("{expression}"));
    Expected { expression, value, is_least: false }
}

/// What the headers must say of a record.
fn of_record(record: &Record) -> Vec<Expected> {
    let name = record.header;
    let mut all = vec![Expected { is_least: !record.is_ours, ..equal(format!("sizeof(struct {name})"), record.size) }];
    for Field { name: field, offset, size } in &record.fields {
        all.push(equal(format!("offsetof(struct {name}, {field})"), *offset));
        all.push(equal(format!("sizeof(((struct {name} *)0)->{field})"), *size));
    }
    all
}

/// What the headers of this machine say.
fn values(expected: &[Expected]) -> Vec<i128> {
    let mut program = String::from(
        "#include <stddef.h>\n#include <stdio.h>\n#include <rdma/fabric.h>\n#include <rdma/fi_cm.h>\n\
         #include <rdma/fi_domain.h>\n#include <rdma/fi_endpoint.h>\n#include <rdma/fi_eq.h>\n\
         #include <rdma/fi_errno.h>\n#include <rdma/fi_rma.h>\n#include <rdma/fi_tagged.h>\nint main(void) {\n",
    );
    for Expected { expression, value, .. } in expected {
        let (format, kind) = match *value < 0 {
            true => ("%lld", "long long"),
            false => ("%llu", "unsigned long long"),
        };
        writeln!(program, "printf(\"{format}\\n\", ({kind})({expression}));").unwrap();
    }
    program.push_str("return 0; }\n");
    let folder = PathBuf::from(std::env::var_os("CARGO_TARGET_TMPDIR").unwrap_or_else(|| std::env::temp_dir().into()));
    let base = folder.join(format!("headers-{}", std::process::id()));
    let source = base.with_extension("c");
    std::fs::write(&source, program).unwrap();
    let built = Command::new("cc").args(["-w", "-o"]).arg(&base).arg(&source).status();
    assert!(
        built.unwrap().success(),
        "the headers of libfabric are needed: install libfabric-dev (tools/cache.sh judges)"
    );
    let output = Command::new(&base).output().unwrap();
    std::fs::remove_file(source).unwrap();
    std::fs::remove_file(base).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn declarations_are_those_of_the_headers() {
    let mut expected: Vec<Expected> = records().iter().flat_map(of_record).collect();
    let number = |&(expression, value): &(&str, i128)| equal(expression.into(), value);
    expected.extend(NUMBERS.iter().map(number));
    // Nodes exchange these numbers, whatever their transport.
    expected.push(equal("FI_SOCKADDR".into(), address::FORMAT_SOCKADDR));
    expected.push(equal("FI_SOCKADDR_IN".into(), address::FORMAT_SOCKADDR_IN));
    let found = values(&expected);
    assert_eq!(found.len(), expected.len());
    let mut wrong = Vec::new();
    for (Expected { expression, value, is_least }, found) in expected.iter().zip(found) {
        if found != *value && !(*is_least && found > *value) {
            wrong.push(format!("{expression} is {found}, not {value}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(expected.len() > 300, "only {} comparisons", expected.len());
}
