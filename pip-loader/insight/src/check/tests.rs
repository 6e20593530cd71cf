use super::*;

const TOLD: &str = "0\u{1f}1\u{1f}a send\u{1f}1\u{1f}started\u{1f}MPI_Isend\u{1f}a0\u{1f}\u{1e}\
    10\u{1f}2\u{1f}a group\u{1f}0\u{1f}made\u{1f}MPI_Comm_group\u{1f}b0\u{1f}\u{1e}\
    0\u{1f}2\u{1f}a send\u{1f}0\u{1f}started\u{1f}MPI_Isend\u{1f}a1\u{1f}\u{1e}\
    note\u{1f}it is \"full\"\u{1f}\u{1e}";

fn report() -> Report {
    Report::read(TOLD, &mut |address| format!("main at a.c:{}", address >> 4))
}

#[test]
fn equal_findings_of_ranks_are_one() {
    let report = report();
    assert_eq!(report.errors(), 1);
    assert_eq!(report.findings.len(), 2);
    let text = report.text();
    for part in [
        "error[requests]: an operation is never completed\n  --> ranks 0-1: MPI_Isend in main at a.c:10 (started)\n",
        "   | found 3 times\n",
        "hint[leaks]: ",
        "check: it is \"full\"\ncheck: 1 error, 1 hint\n",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn json_has_files_and_lines() {
    let json = report().json();
    for part in [
        "{\"errors\":1,\"hints\":1,\"notes\":[\"it is \\\"full\\\"\"],",
        "\"ranks\":[0,1],\"call\":\"MPI_Isend\",\"did\":\"started\",\
         \"function\":\"main\",\"file\":\"a.c\",\"line\":10}",
    ] {
        assert!(json.contains(part), "{json}");
    }
}

#[test]
fn values_ask_for_reports() {
    let read = |value: &str| Wanted::read(Some(OsStr::new(value)), 0, 1).expect("no file");
    assert_eq!(read("on"), None);
    assert!(read("all,warn").is_some_and(|wanted| wanted.only_warns));
    assert!(Wanted::read(Some(OsStr::new("all,json:/nonexistent/a")), 0, 1).is_err());
}
