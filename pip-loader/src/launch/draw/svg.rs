//! The picture: time from left to right, a row for each thread of each rank.

use super::file::{Timeline, Track};
use super::states::{State, at_pixels, runs};
use super::zoom::busiest;
use std::fmt::Write;

/// Pixels from left to right in which time passes, and those beside it.
const WIDTH: usize = 1000;
const LEFT: usize = 130;
const RIGHT: usize = 20;
const TOP: usize = 74;

/// Pixels between the whole and what is enlarged.
const BETWEEN: usize = 64;

/// The picture is not longer, if it can be helped: bytes.
const LONGEST: usize = 180_000;

/// Arrows at most: those of the longest pieces.
const ARROWS: usize = 300;

/// The colour of a state: their brightness differs, so that they are told apart without colours too.
fn colour(state: State) -> &'static str {
    match state {
        State::Unknown => "#ffffff",
        State::Computes => "#f4eed8",
        State::InMpi => "#a9c9ea",
        State::Copies => "#5fae7b",
        State::Helps => "#d1400f",
        State::Sleeps => "#22304f",
    }
}

fn letter(state: State) -> char {
    match state {
        State::Unknown => 'u',
        State::Computes => 'c',
        State::InMpi => 'm',
        State::Copies => 'o',
        State::Helps => 'h',
        State::Sleeps => 's',
    }
}

fn words(state: State) -> &'static str {
    match state {
        State::Unknown => "not known",
        State::Computes => "computes",
        State::InMpi => "in MPI",
        State::Copies => "moves its own messages",
        State::Helps => "works for another rank",
        State::Sleeps => "sleeps in MPI",
    }
}

/// A row, and what others did for its rank.
struct Row<'a> {
    track: &'a Track,
    others: Option<&'a Track>,
}

/// The rows: tracks of what others did are strips of their ranks' first rows.
fn rows(timeline: &Timeline) -> Vec<Row<'_>> {
    let is_others = |track: &&Track| track.name.ends_with(": done by others");
    let mut rows: Vec<Row<'_>> = Vec::new();
    for track in &timeline.tracks {
        if is_others(&track) {
            let of = track.name.split(':').next();
            if let Some(row) = rows.iter_mut().find(|row| Some(&*row.track.name) == of) {
                row.others = Some(track);
            }
        } else {
            rows.push(Row {
                track,
                others: None,
            });
        }
    }
    rows
}

/// Draws a picture.
#[must_use]
pub fn draw(timeline: &Timeline) -> String {
    let rows = rows(timeline);
    // What is smaller than a pixel is merged, and more if that is not enough.
    let mut pixels = WIDTH;
    loop {
        let picture = draw_at(timeline, &rows, pixels);
        if picture.len() <= LONGEST || pixels <= WIDTH / 64 {
            return picture;
        }
        pixels /= 2;
    }
}

/// Height of a row.
fn height(rows: usize) -> usize {
    (960 / rows.max(1)).clamp(4, 26)
}

/// Rows of one stretch of time.
#[derive(Clone, Copy)]
struct Panel {
    top: usize,
    step: usize,
    span: (f64, f64),
    pixels: usize,
    /// What a rank does where no piece is.
    rest: State,
}

impl Panel {
    fn x(&self, time: f64) -> f64 {
        let (from, to) = self.span;
        LEFT as f64 + (time - from) / (to - from) * WIDTH as f64
    }

    fn draw(&self, out: &mut String, rows: &[Row<'_>]) {
        for (place, row) in rows.iter().enumerate() {
            draw_row(out, row, self.top + place * self.step, self);
        }
        arrows(out, rows, self);
    }
}

fn draw_at(timeline: &Timeline, rows: &[Row<'_>], pixels: usize) -> String {
    let step = height(rows.len());
    let whole = Panel {
        top: TOP,
        step,
        span: timeline.span(),
        pixels,
        rest: match timeline.lost {
            0 => State::Computes,
            _ => State::Unknown,
        },
    };
    let bottom = TOP + rows.len() * step;
    let zoom = busiest(timeline).map(|(span, count)| {
        let top = bottom + BETWEEN;
        (Panel { top, span, ..whole }, count)
    });
    let last = zoom.map_or(bottom, |(zoom, _)| zoom.top + rows.len() * step);
    let (width, all) = (LEFT + WIDTH + RIGHT, last + 40);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {all}\" width=\"{width}\" height=\"{all}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<style>"
    );
    for state in State::SHOWN {
        put(
            &mut out,
            format_args!(".{}{{fill:{}}}", letter(state), colour(state)),
        );
    }
    out += ".a{stroke:#d1400f;stroke-width:1.2;opacity:.8}.g{stroke:#888;stroke-width:.5}\
            .z{fill:none;stroke:#000;stroke-width:1}</style>\n";
    put(
        &mut out,
        format_args!("<rect width=\"{width}\" height=\"{all}\" fill=\"#fff\"/>\n"),
    );
    let title = title(timeline, rows, whole.span);
    put(
        &mut out,
        format_args!("<text x=\"10\" y=\"20\" font-size=\"14\">{title}</text>\n"),
    );
    legend(&mut out);
    whole.draw(&mut out, rows);
    axis(&mut out, whole.span, (TOP, bottom));
    if let Some((zoom, count)) = zoom {
        enlarge(&mut out, &whole, (&zoom, count), bottom);
        zoom.draw(&mut out, rows);
        axis(&mut out, zoom.span, (zoom.top, last));
    }
    out + "</svg>\n"
}

/// Says what the second panel shows, and where that is in the first, which ends at `bottom`.
fn enlarge(out: &mut String, whole: &Panel, (zoom, count): (&Panel, usize), bottom: usize) {
    let (from, to) = zoom.span;
    let (x, width) = (whole.x(from), (whole.x(to) - whole.x(from)).max(1.0));
    let (top, high) = (whole.top - 3, bottom - whole.top + 6);
    put(
        out,
        format_args!(
            "<rect class=\"z\" x=\"{x:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{high}\"/>"
        ),
    );
    // Above the words.
    let (low, upper) = (zoom.top - 28, bottom + 3);
    put(
        out,
        format_args!(
            "<path class=\"z\" d=\"M{x:.1} {upper}L{LEFT} {low}M{:.1} {upper}L{} {low}\"/>\n",
            x + width,
            LEFT + WIDTH
        ),
    );
    put(
        out,
        format_args!(
            "<text x=\"10\" y=\"{}\" font-size=\"14\" stroke=\"#fff\" stroke-width=\"5\" paint-order=\"stroke\">\
             {} of it, from {} on, enlarged {:.0} times: {count} {} of stolen work</text>\n",
            zoom.top - 12,
            time(to - from),
            time(from - whole.span.0),
            (whole.span.1 - whole.span.0) / (to - from),
            if count == 1 { "piece" } else { "pieces" }
        ),
    );
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = out.write_fmt(text);
}

fn title(timeline: &Timeline, rows: &[Row<'_>], (from, to): (f64, f64)) -> String {
    let ranks = rows
        .iter()
        .filter(|row| !row.track.name.contains(':'))
        .count();
    let lost = match timeline.lost {
        0 => String::new(),
        lost => format!("; the oldest {lost} events are missing"),
    };
    format!("{ranks} ranks, {}{lost}", time(to - from))
}

fn legend(out: &mut String) {
    let mut x = 10;
    for state in State::SHOWN {
        put(
            out,
            format_args!(
                "<rect class=\"{}\" x=\"{x}\" y=\"32\" width=\"16\" height=\"12\" stroke=\"#555\" stroke-width=\".5\"/>\
                 <text x=\"{}\" y=\"42\">{}</text>\n",
                letter(state),
                x + 21,
                words(state)
            ),
        );
        x += 44 + 7 * words(state).len();
    }
    *out += "<text x=\"10\" y=\"60\" fill=\"#444\">The strip at the bottom of a row: others did the rank's \
             communication. Lines lead from who worked to whom it was for.</text>\n";
}

fn draw_row(out: &mut String, row: &Row<'_>, y: usize, panel: &Panel) {
    let Panel {
        step,
        span,
        pixels,
        rest,
        ..
    } = *panel;
    let bar = step - step / 6;
    if step >= 10 || row.track.name.ends_with('0') {
        let name = escaped(&row.track.name);
        let line = y + (bar + 9) / 2;
        put(
            out,
            format_args!(
                "<text x=\"{}\" y=\"{line}\" text-anchor=\"end\">{name}</text>",
                LEFT - 6
            ),
        );
    }
    let states = at_pixels(&row.track.pieces, span, pixels, rest);
    // All of a row's pieces that are alike are one path.
    for state in State::SHOWN {
        path(out, &states, state, pixels, (y, bar));
    }
    if let Some(others) = row.others {
        let strip = (bar / 3).max(1);
        let states = at_pixels(&others.pieces, span, pixels, State::Unknown);
        path(out, &states, State::Helps, pixels, (y + bar - strip, strip));
    }
    out.push('\n');
}

fn path(
    out: &mut String,
    states: &[State],
    state: State,
    pixels: usize,
    (y, height): (usize, usize),
) {
    let scale = WIDTH / pixels;
    let mut pieces = runs(states).filter(|run| run.2 == state).peekable();
    if pieces.peek().is_none() {
        return;
    }
    put(out, format_args!("<path class=\"{}\" d=\"", letter(state)));
    for (first, count, _) in pieces {
        let (x, width) = (LEFT + first * scale, count * scale);
        put(out, format_args!("M{x} {y}h{width}v{height}h-{width}z"));
    }
    *out += "\"/>";
}

/// From thieves to owners, of the longest pieces.
fn arrows(out: &mut String, rows: &[Row<'_>], panel: &Panel) {
    let (from, to) = panel.span;
    let place_of = |rank: u32| {
        let name = format!("rank {rank}");
        rows.iter().position(|row| row.track.name == name)
    };
    let mut all: Vec<(f64, f64, usize, usize)> = Vec::new();
    for (thief, row) in rows.iter().enumerate() {
        let stolen = row.track.pieces.iter().filter(|it| it.category == "steal");
        for piece in stolen {
            let middle = (piece.begin + piece.end) / 2.0;
            if let Some(owner) = piece.owner.and_then(place_of)
                && (from..=to).contains(&middle)
            {
                all.push((piece.end - piece.begin, middle, thief, owner));
            }
        }
    }
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    all.truncate(ARROWS);
    for (_, at, thief, owner) in all {
        let x = panel.x(at);
        let y = |place: usize| panel.top + place * panel.step + panel.step / 2;
        put(
            out,
            format_args!(
                "<path class=\"a\" d=\"M{x:.0} {}V{}\"/>",
                y(thief),
                y(owner)
            ),
        );
    }
    out.push('\n');
}

/// Lines at round times, counted from the panel's beginning, in one unit.
fn axis(out: &mut String, (from, to): (f64, f64), (top, bottom): (usize, usize)) {
    let least = (to - from) / 10.0;
    let power = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let step = steps
        .into_iter()
        .find(|&step| step >= least)
        .unwrap_or(least);
    let unit = unit(to - from);
    let mut at = 0.0;
    while at <= to - from {
        let x = LEFT as f64 + at / (to - from) * WIDTH as f64;
        put(
            out,
            format_args!(
                "<path class=\"g\" d=\"M{x:.1} {top}V{}\"/>\
                 <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                bottom + 4,
                bottom + 18,
                time_in(at, unit)
            ),
        );
        at += step;
    }
}

/// A time in words.
fn time(ns: f64) -> String {
    time_in(ns, unit(ns))
}

/// The unit for times of about this length, and its nanoseconds.
fn unit(ns: f64) -> (f64, &'static str) {
    match ns {
        ns if ns >= 1e9 => (1e9, "s"),
        ns if ns >= 1e6 => (1e6, "ms"),
        ns if ns >= 1e3 => (1e3, "µs"),
        _ => (1.0, "ns"),
    }
}

fn time_in(ns: f64, (length, unit): (f64, &str)) -> String {
    let text = format!("{:.3}", ns / length);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} {unit}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests;
