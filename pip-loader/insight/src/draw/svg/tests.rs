use super::*;

/// A timeline of so many ranks that each have `pieces` pieces, of all kinds in turn.
fn text(ranks: u64, pieces: u64) -> String {
    let about = r#"{"otherData":{"node":0,"start_ns":"5","ranks":[{"lost":0}]},"#;
    let mut text = format!("{about}\n\"traceEvents\":[\n");
    for rank in 0..ranks {
        let tid = 100 * (rank + 1);
        text += &format!(
            "{{\"ph\":\"M\",\"pid\":1,\"tid\":{tid},\"name\":\"thread_name\",\"args\":{{\"name\":\"rank {rank}\"}}}},\n"
        );
        for piece in 0..pieces {
            let category = ["mpi", "steal", "sleep", "copy"][(piece + rank) as usize % 4];
            let (ts, owner) = (piece * 3 + rank, (rank + 1) % ranks);
            text += &format!(
                "{{\"ph\":\"X\",\"pid\":1,\"tid\":{tid},\"ts\":{ts}.5,\"dur\":2.000,\
                 \"cat\":\"{category}\",\"name\":\"x\",\
                 \"args\":{{\"owner\":{owner}}}}},\n"
            );
        }
    }
    text + "{\"ph\":\"M\",\"pid\":1,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"here\"}}\n]}\n"
}

fn drawn(text: &str) -> String {
    let mut timeline = Timeline::default();
    timeline.add(text).expect("a timeline");
    draw(&timeline)
}

#[test]
fn every_rank_has_a_row_and_every_state_its_words() {
    let picture = drawn(&text(3, 40));
    for rank in 0..3 {
        assert!(picture.contains(&format!(">rank {rank}</text>")));
    }
    for state in Activity::SHOWN {
        assert!(picture.contains(words(state)));
        assert!(picture.contains(&format!("<path class=\"{}\"", letter(state))));
    }
    assert!(picture.contains(">3 ranks, "));
    assert!(picture.contains("<path class=\"a\""));
}

#[test]
fn a_long_job_of_many_ranks_is_still_a_short_file() {
    let picture = drawn(&text(200, 500));
    assert!(picture.len() < 200_000, "{} bytes", picture.len());
    assert!(picture.contains(">200 ranks, "));
}

#[test]
fn states_are_told_apart_by_their_brightness() {
    let brightness = |state| {
        let number = u32::from_str_radix(&colour(state)[1..], 16).expect("a colour");
        let part = |shift: u32, weight: f64| f64::from(number >> shift & 255) / 255.0 * weight;
        part(16, 0.299) + part(8, 0.587) + part(0, 0.114)
    };
    let mut all = Activity::SHOWN.map(brightness);
    all.sort_by(f64::total_cmp);
    assert!(all.windows(2).all(|pair| pair[1] - pair[0] > 0.12), "{all:?}");
}

#[test]
fn what_is_no_timeline_is_refused() {
    for text in ["", "[]", "{\"traceEvents\":[\n]}", "{\"otherData\":{},\n\"traceEvents\":[\n]}"] {
        assert!(Timeline::default().add(text).is_err(), "{text}");
    }
}

#[test]
fn times_are_in_units_that_people_read() {
    assert_eq!(time(1_500_000.0), "1.5 ms");
    assert_eq!(time(20_000.0), "20 µs");
    assert_eq!(time(3e9), "3 s");
}

#[test]
fn an_axis_begins_with_its_panel_and_has_one_unit() {
    let mut out = String::new();
    // A tenth of a millisecond, late in a long run.
    axis(&mut out, (8.805e9, 8.805_1e9), (0, 100), true);
    let labels: Vec<&str> = out
        .split("</text>")
        .filter_map(|text| Some(text.rsplit_once('>')?.1))
        .filter(|label| !label.trim().is_empty())
        .collect();
    assert_eq!(labels.first(), Some(&"0 µs"), "{labels:?}");
    assert_eq!(labels.last(), Some(&"100 µs"), "{labels:?}");
    assert_eq!(labels.len(), 11);
}

#[test]
fn a_picture_says_what_job_it_shows_and_nothing_in_its_words_is_markup() {
    let job = r#""job":{"program":"a<b>","command":"pip-exec -n 3 './a<b>' '&amp;' $'\\033'",
        "started":"2026-11-25 10:00:00 +0100","ranks":3,"hosts":[["here",2],["there",1]],"version":"Cohort 1"},"#;
    let text = text(3, 40).replacen("{\"node\":0,", &format!("{{\"node\":0,{job}"), 1);
    let picture = drawn(&text);
    for words in [
        ">a&lt;b&gt;: 3 ranks, ",
        ">pip-exec -n 3 './a&lt;b&gt;' '&amp;amp;' $'\\033'</text>",
        ">on 2 nodes: here (2), there (1); 2026-11-25 10:00:00 +0100; Cohort 1</text>",
    ] {
        assert!(picture.contains(words), "{words} is not in {picture}");
    }
    assert_eq!(escaped("a\u{1}\u{ffff}"), "a\u{fffd}\u{fffd}");
}

#[test]
fn a_long_command_takes_several_lines() {
    assert_eq!(folded("a bc"), ["a bc"]);
    let long = format!("pip-exec {} {}", "x".repeat(400), "y ".repeat(2000));
    let lines = folded(&long);
    assert_eq!(lines.concat(), long);
    assert!(lines.iter().all(|line| line.chars().count() <= LETTERS));
    let caption = Caption { command: long, ..Caption::default() };
    let shown = about(&caption);
    assert_eq!(shown.len(), COMMAND_LINES + 1);
    assert!(shown[COMMAND_LINES].ends_with(" more letters"));
}

/// Where a picture has an element of this class or tag: the numbers of its coordinates.
fn numbers(element: &str) -> Vec<f64> {
    let digits = |letter: char| !letter.is_ascii_digit() && letter != '.';
    element.split(digits).filter_map(|it| it.parse().ok()).collect()
}

#[test]
fn lines_to_what_is_enlarged_cross_no_words() {
    // Long work of one rank, and within it a few short pieces that others do.
    let about = r#"{"otherData":{"node":0,"start_ns":"5","ranks":[{"lost":0}]},"#;
    let mut text = format!("{about}\n\"traceEvents\":[\n");
    text += "{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"rank 0\"}},\n";
    for (category, begin, length) in [("mpi", 0, 10_000), ("steal", 700, 5), ("steal", 8000, 5)] {
        text += &format!(
            "{{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":{begin},\"dur\":{length},\"cat\":\"{category}\",\
             \"name\":\"x\"}},\n"
        );
    }
    let picture = drawn(&text);
    let (_, lines) = picture.split_once("<path class=\"z\" d=\"").expect("enlarged");
    let lines = numbers(lines.split_once('"').expect("ends").0);
    let (upper, lower) = (lines[1], lines[3]);
    assert!(upper < lower, "{lines:?}");
    // From the tops of letters to what hangs below.
    for word in picture.split("<text ").skip(1) {
        let baseline = word.split_once("y=\"").expect("a place").1;
        let y = numbers(baseline.split_once('"').expect("ends").0)[0];
        assert!(y + 4.0 <= upper || y - 14.0 >= lower, "{y} in {upper}..{lower}: {word}");
    }
}
