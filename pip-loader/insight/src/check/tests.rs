use super::*;

const TOLD: &str = "0\u{1f}1\u{1f}a send\u{1f}1\u{1f}started\u{1f}MPI_Isend\u{1f}a0\u{1f}\u{1e}\
    10\u{1f}2\u{1f}a group\u{1f}0\u{1f}made\u{1f}MPI_Comm_group\u{1f}b0\u{1f}\u{1e}\
    0\u{1f}2\u{1f}a send\u{1f}0\u{1f}started\u{1f}MPI_Isend\u{1f}a1\u{1f}\u{1e}\
    note\u{1f}it is \"full\"\u{1f}\u{1e}";

fn report() -> Report {
    Report::read(TOLD, &mut |address| {
        let line = address as u32 >> 4;
        CallPlace { text: format!("main at a.c:{line}"), path: "/home/me/src/a.c".into(), line }
    })
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
    let json: serde_json::Value = serde_json::from_str(&report().json()).expect("is JSON");
    assert_eq!((&json["errors"], &json["hints"]), (&1.into(), &1.into()));
    assert_eq!(json["notes"][0], "it is \"full\"");
    let place = &json["findings"][0]["places"][0];
    assert_eq!((&place["ranks"][1], &place["function"], &place["line"]), (&1.into(), &"main".into(), &10.into()));
    assert_eq!(place["file"], "a.c");
}

#[test]
fn sarif_has_places_below_the_folder() {
    let text = report().sarif(Path::new("/home/me"));
    let sarif: serde_json::Value = serde_json::from_str(&text).expect("is JSON");
    let run = &sarif["runs"][0];
    let result = &run["results"][0];
    assert_eq!((&sarif["version"], &result["level"]), (&"2.1.0".into(), &"error".into()));
    let rule = result["ruleIndex"].as_u64().expect("a number") as usize;
    assert_eq!(run["tool"]["driver"]["rules"][rule]["id"], result["ruleId"]);
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "src/a.c");
    assert_eq!(place["region"]["startLine"], 10);
    let elsewhere = report().sarif(Path::new("/home/you"));
    assert!(elsewhere.contains("\"file:///home/me/src/a.c\""), "{elsewhere}");
}

#[test]
fn junit_has_a_test_for_each_finding_and_each_silent_kind() {
    let text = report().junit(Kinds::ALL);
    let all = MISTAKES.len();
    for part in [
        format!("tests=\"{all}\" failures=\"1\""),
        "<testcase classname=\"check.requests\" name=\"MPI_Isend in main at a.c:10\">\n   <failure ".into(),
        "<system-out>hint[leaks]: ".into(),
        "<testcase classname=\"check.types\" name=".into(),
        "--&gt; ranks 0-1".into(),
    ] {
        assert!(text.contains(&part), "{part} in {text}");
    }
}

#[test]
fn patterns_take_findings_away() {
    let told = |patterns: &str| {
        let mut report = report();
        let wanted = Wanted {
            only_warns: false,
            kinds: Kinds::ALL,
            files: Vec::new(),
            suppressed: Pattern::read(patterns).expect("valid"),
            suppressing: "mine".into(),
            nodes: 1,
        };
        wanted.suppress(&mut report);
        (report.findings.len(), report.suppressed, report.notes.pop())
    };
    assert_eq!(told("requests\nleaks in ma*").0, 0);
    assert_eq!(told("* at me/src/a.c:10").1, 1);
    assert_eq!(told("* at src/*:* call MPI_Isend").1, 1);
    assert_eq!(told("* at b.c:*").2.as_deref(), Some("line 1 of mine suppresses nothing: * at b.c:*"));
}

#[test]
fn values_ask_for_reports() {
    let read = |value: &str| Wanted::read(Some(OsStr::new(value)), 0, 1).expect("no file");
    assert_eq!(read("on"), None);
    assert!(read("all,warn").is_some_and(|wanted| wanted.only_warns));
    assert!(Wanted::read(Some(OsStr::new("all,json:/nonexistent/a")), 0, 1).is_err());
}
