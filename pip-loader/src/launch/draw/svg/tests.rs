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
    for state in State::SHOWN {
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
    let mut all = State::SHOWN.map(brightness);
    all.sort_by(f64::total_cmp);
    assert!(
        all.windows(2).all(|pair| pair[1] - pair[0] > 0.12),
        "{all:?}"
    );
}

#[test]
fn what_is_no_timeline_is_refused() {
    for text in [
        "",
        "[]",
        "{\"traceEvents\":[\n]}",
        "{\"otherData\":{},\n\"traceEvents\":[\n]}",
    ] {
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
    axis(&mut out, (8.805e9, 8.805_1e9), (0, 100));
    let labels: Vec<&str> = out
        .split("</text>")
        .filter_map(|text| Some(text.rsplit_once('>')?.1))
        .filter(|label| !label.trim().is_empty())
        .collect();
    assert_eq!(labels.first(), Some(&"0 µs"), "{labels:?}");
    assert_eq!(labels.last(), Some(&"100 µs"), "{labels:?}");
    assert_eq!(labels.len(), 11);
}
