//! A timeline in the trace event format of Chrome, which Perfetto and others read.
//!
//! Each node is a process there, each track a thread. Pieces are complete events (`X`), and arrows are their
//! `bind_id` with `flow_out` and `flow_in`. Times are microseconds since the job's start on the clock of the
//! node that writes the file, which `otherData` names.

use super::timeline::{Fact, Piece, RankLine, Timeline, Track};
use pip_ground::caption::Caption;
use std::fmt::Write as _;
use std::io::{self, Write};

/// What is said of the file.
#[derive(Debug)]
pub struct About<'a> {
    /// Number of the node that writes it.
    pub node: u32,
    /// How many the job has.
    pub nodes: u32,
    /// Its name.
    pub host: &'a str,
    /// Nodes that should be in the file and are not.
    pub missing: &'a [u32],
    /// What the job was.
    pub caption: &'a Caption,
}

/// Writes a file.
///
/// # Errors
/// The output fails.
pub fn write(mut out: impl Write, timeline: &Timeline, about: &About<'_>) -> io::Result<()> {
    write_about(&mut out, timeline, about)?;
    let mut separator = "";
    for facts in &timeline.nodes {
        let process = match about.nodes {
            1 => format!("Cohort on {}", facts.host),
            _ => format!("node {} ({})", facts.node, facts.host),
        };
        let named = named(facts.node + 1, 0, "process_name", &process);
        write!(out, "{separator}{named}")?;
        separator = ",\n";
    }
    let pid_of = |rank: &RankLine| timeline.nodes[rank.node].node + 1;
    for rank in &timeline.ranks {
        let pid = pid_of(rank);
        for track in &rank.tracks {
            let name = named(pid, track.number, "thread_name", &track.name);
            write!(out, ",\n{name}")?;
            write!(
                out,
                ",\n{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{0},\"name\":\"thread_sort_index\",\
                 \"args\":{{\"sort_index\":{0}}}}}",
                track.number
            )?;
        }
    }
    for rank in &timeline.ranks {
        for track in &rank.tracks {
            write_track(&mut out, pid_of(rank), about.node, track)?;
        }
    }
    writeln!(out, "\n]}}")?;
    out.flush()
}

fn write_about(out: &mut impl Write, timeline: &Timeline, about: &About<'_>) -> io::Result<()> {
    writeln!(out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{")?;
    writeln!(out, "\"version\":{},", quoted(concat!("Cohort ", env!("CARGO_PKG_VERSION"))))?;
    writeln!(
        out,
        "\"node\":{},\"nodes\":{},\"host\":{},\"start_ns\":\"{}\",",
        about.node,
        about.nodes,
        quoted(about.host),
        timeline.start
    )?;
    writeln!(out, "\"job\":{},", serde_json::to_string(about.caption)?)?;
    let clocks = timeline.nodes.iter().map(|it| {
        format!(
            "{{\"node\":{},\"host\":{},\"offset_ns\":{},\"drift_ppb\":{},\"error_ns\":{}}}",
            it.node,
            quoted(&it.host),
            it.offset,
            it.drift,
            it.error
        )
    });
    writeln!(out, "\"clocks\":[{}],\n\"missing\":{:?},", clocks.collect::<Vec<_>>().join(","), about.missing)?;
    let ranks = timeline
        .ranks
        .iter()
        .map(|rank| format!("{{\"rank\":{},\"events\":{},\"lost\":{}}}", rank.number, rank.noted, rank.lost));
    let ranks = ranks.collect::<Vec<_>>().join(",");
    writeln!(out, "\"ranks\":[{ranks}]}},\n\"traceEvents\":[")
}

fn write_track(out: &mut impl Write, pid: u32, file: u32, track: &Track) -> io::Result<()> {
    for piece in &track.pieces {
        write!(out, ",\n{}", event(pid, file, track.number, piece))?;
    }
    Ok(())
}

fn named(pid: u32, tid: u64, what: &str, name: &str) -> String {
    let name = quoted(name);
    format!("{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"name\":\"{what}\",\"args\":{{\"name\":{name}}}}}")
}

fn event(pid: u32, file: u32, tid: u64, piece: &Piece) -> String {
    let us = |ns: u64| format!("{}.{:03}", ns / 1000, ns % 1000);
    let mut line = format!(
        "{{\"ph\":\"X\",\"pid\":{pid},\"tid\":{tid},\"ts\":{},\"dur\":{},\"cat\":\"{}\",\"name\":{}",
        us(piece.begin),
        us(piece.end - piece.begin),
        piece.category,
        quoted(&piece.name)
    );
    // Writing to a string does not fail.
    for (arrow, flag) in [(piece.leaves, "flow_out"), (piece.comes, "flow_in")] {
        if let Some(arrow) = arrow {
            let number = u64::from(file + 1) << 40 | arrow;
            let _ = write!(line, ",\"bind_id\":\"0x{number:x}\",\"{flag}\":true");
        }
    }
    let facts = piece.facts.iter().map(|(name, fact)| match fact {
        Fact::Number(number) => format!("\"{name}\":{number}"),
        Fact::True => format!("\"{name}\":true"),
    });
    let facts = facts.collect::<Vec<_>>().join(",");
    if !facts.is_empty() {
        let _ = write!(line, ",\"args\":{{{facts}}}");
    }
    line + "}"
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}
