//! The picture: time from left to right, a row for each thread of each rank.

use super::file::{Timeline, Track};
use super::states::{Activity, at_pixels, runs};
use super::zoom::busiest;
use pip_ground::caption::Caption;
use std::fmt::Write;

/// Pixels from left to right in which time passes, and those beside it.
const WIDTH: usize = 1000;
const LEFT: usize = 130;
const RIGHT: usize = 20;

/// Pixels above the rows: of a title and a legend, of each line about the job, and of an axis that lies above.
const HEAD: usize = 74;
const LINE: usize = 16;
const AXIS: usize = 20;

/// Pixels between the whole and what is enlarged.
const BETWEEN: usize = 56;

/// Letters of a line about the job, and lines of its command at most: the file has all of it.
const LETTERS: usize = 150;
const COMMAND_LINES: usize = 12;

/// The picture is not longer, if it can be helped: bytes.
const LONGEST: usize = 180_000;

/// Arrows at most: those of the longest pieces.
const ARROWS: usize = 300;

/// The colour of a state: their brightness differs, so that they are told apart without colours too.
fn colour(state: Activity) -> &'static str {
    match state {
        Activity::Unknown => "#ffffff",
        Activity::Computes => "#f4eed8",
        Activity::InMpi => "#a9c9ea",
        Activity::Copies => "#5fae7b",
        Activity::Helps => "#d1400f",
        Activity::Sleeps => "#22304f",
    }
}

fn letter(state: Activity) -> char {
    match state {
        Activity::Unknown => 'u',
        Activity::Computes => 'c',
        Activity::InMpi => 'm',
        Activity::Copies => 'o',
        Activity::Helps => 'h',
        Activity::Sleeps => 's',
    }
}

fn words(state: Activity) -> &'static str {
    match state {
        Activity::Unknown => "not known",
        Activity::Computes => "computes",
        Activity::InMpi => "in MPI",
        Activity::Copies => "moves its own messages",
        Activity::Helps => "works for another rank",
        Activity::Sleeps => "sleeps in MPI",
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
            rows.push(Row { track, others: None });
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
    rest: Activity,
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
    let about = about(&timeline.caption);
    let zoom = busiest(timeline);
    // The lines to what is enlarged begin below the rows, where no label may be then.
    let axis_above = if zoom.is_some() { AXIS } else { 0 };
    let whole = Panel {
        top: HEAD + about.len() * LINE + axis_above,
        step,
        span: timeline.span(),
        pixels,
        rest: match timeline.lost {
            0 => Activity::Computes,
            _ => Activity::Unknown,
        },
    };
    let bottom = whole.top + rows.len() * step;
    let zoom = zoom.map(|(span, count)| {
        let top = bottom + BETWEEN;
        (Panel { top, span, ..whole }, count)
    });
    let last = zoom.map_or(bottom, |(zoom, _)| zoom.top + rows.len() * step);
    let (width, all) = (LEFT + WIDTH + RIGHT, last + 40);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {all}\" width=\"{width}\" height=\"{all}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<style>"
    );
    for state in Activity::SHOWN {
        put(&mut out, format_args!(".{}{{fill:{}}}", letter(state), colour(state)));
    }
    out += ".a{stroke:#d1400f;stroke-width:1.2;opacity:.8}.g{stroke:#888;stroke-width:.5}\
            .z{fill:none;stroke:#000;stroke-width:1}</style>\n";
    put(&mut out, format_args!("<rect width=\"{width}\" height=\"{all}\" fill=\"#fff\"/>\n"));
    let title = title(timeline, rows, whole.span);
    put(&mut out, format_args!("<text x=\"10\" y=\"20\" font-size=\"14\">{title}</text>\n"));
    for (line, y) in about.iter().zip((20 + LINE..).step_by(LINE)) {
        let line = escaped(line);
        put(&mut out, format_args!("<text x=\"10\" y=\"{y}\">{line}</text>\n"));
    }
    legend(&mut out, about.len() * LINE);
    whole.draw(&mut out, rows);
    let is_below = zoom.is_none();
    axis(&mut out, whole.span, (whole.top, bottom), is_below);
    if let Some((zoom, count)) = zoom {
        enlarge(&mut out, &whole, (&zoom, count), bottom);
        zoom.draw(&mut out, rows);
        axis(&mut out, zoom.span, (zoom.top, last), true);
    }
    out + "</svg>\n"
}

/// Says what the second panel shows, and where that is in the first, which ends at `bottom`.
fn enlarge(out: &mut String, whole: &Panel, (zoom, count): (&Panel, usize), bottom: usize) {
    let (from, to) = zoom.span;
    let (x, width) = (whole.x(from), (whole.x(to) - whole.x(from)).max(1.0));
    let (top, high) = (whole.top - 3, bottom - whole.top + 6);
    put(out, format_args!("<rect class=\"z\" x=\"{x:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{high}\"/>"));
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
    let ranks = rows.iter().filter(|row| !row.track.name.contains(':')).count();
    let lost = match timeline.lost {
        0 => String::new(),
        lost => format!("; the oldest {lost} events are missing"),
    };
    let program = match timeline.caption.program.as_str() {
        "" => String::new(),
        name => format!("{}: ", escaped(name)),
    };
    format!("{program}{ranks} ranks, {}{lost}", time(to - from))
}

/// The lines about the job: its command, and where and when it was.
fn about(caption: &Caption) -> Vec<String> {
    let mut lines = folded(&caption.command);
    if lines.len() > COMMAND_LINES {
        let rest: usize = lines.drain(COMMAND_LINES..).map(|line| line.chars().count()).sum();
        lines.push(format!("... and {rest} more letters"));
    }
    lines.extend(Some(caption.place_and_time()).filter(|line| !line.is_empty()));
    lines
}

/// A text in lines, which end between words where they can.
fn folded(text: &str) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split_inclusive(' ') {
        let mut letters: Vec<char> = word.chars().collect();
        if line.chars().count() + letters.len() > LETTERS && !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        while letters.len() > LETTERS {
            lines.push(letters.drain(..LETTERS).collect());
        }
        line.extend(letters);
    }
    lines.extend(Some(line).filter(|line| !line.is_empty()));
    lines
}

/// So many pixels below its place without lines about the job.
fn legend(out: &mut String, below: usize) {
    let mut x = 10;
    let (box_top, baseline, second) = (32 + below, 42 + below, 60 + below);
    for state in Activity::SHOWN {
        put(
            out,
            format_args!(
                "<rect class=\"{}\" x=\"{x}\" y=\"{box_top}\" width=\"16\" height=\"12\" stroke=\"#555\" \
                 stroke-width=\".5\"/>\
                 <text x=\"{}\" y=\"{baseline}\">{}</text>\n",
                letter(state),
                x + 21,
                words(state)
            ),
        );
        x += 44 + 7 * words(state).len();
    }
    put(
        out,
        format_args!(
            "<text x=\"10\" y=\"{second}\" fill=\"#444\">The strip at the bottom of a row: others did the rank's \
             communication. Lines lead from who worked to whom it was for.</text>\n"
        ),
    );
}

fn draw_row(out: &mut String, row: &Row<'_>, y: usize, panel: &Panel) {
    let Panel { step, span, pixels, rest, .. } = *panel;
    let bar = step - step / 6;
    if step >= 10 || row.track.name.ends_with('0') {
        let name = escaped(&row.track.name);
        let line = y + (bar + 9) / 2;
        put(out, format_args!("<text x=\"{}\" y=\"{line}\" text-anchor=\"end\">{name}</text>", LEFT - 6));
    }
    let states = at_pixels(&row.track.pieces, span, pixels, rest);
    // All of a row's pieces that are alike are one path.
    for state in Activity::SHOWN {
        path(out, &states, state, pixels, (y, bar));
    }
    if let Some(others) = row.others {
        let strip = (bar / 3).max(1);
        let states = at_pixels(&others.pieces, span, pixels, Activity::Unknown);
        path(out, &states, Activity::Helps, pixels, (y + bar - strip, strip));
    }
    out.push('\n');
}

fn path(out: &mut String, states: &[Activity], state: Activity, pixels: usize, (y, height): (usize, usize)) {
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
        put(out, format_args!("<path class=\"a\" d=\"M{x:.0} {}V{}\"/>", y(thief), y(owner)));
    }
    out.push('\n');
}

/// Lines at round times, counted from the panel's beginning, in one unit, with labels below or above the panel.
fn axis(out: &mut String, (from, to): (f64, f64), (top, bottom): (usize, usize), is_below: bool) {
    let (first, last, baseline) = match is_below {
        true => (top, bottom + 4, bottom + 18),
        false => (top - 5, bottom, top - 8),
    };
    let least = (to - from) / 10.0;
    let power = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let step = steps.into_iter().find(|&step| step >= least).unwrap_or(least);
    let unit = unit(to - from);
    let mut at = 0.0;
    while at <= to - from {
        let x = LEFT as f64 + at / (to - from) * WIDTH as f64;
        put(
            out,
            format_args!(
                "<path class=\"g\" d=\"M{x:.1} {first}V{last}\"/>\
                 <text x=\"{x:.1}\" y=\"{baseline}\" text-anchor=\"middle\">{}</text>\n",
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

/// A text within an element of XML or HTML. Letters that XML does not allow are replaced.
fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for letter in text.chars() {
        match letter {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            letter if letter.is_control() => safe.push('\u{fffd}'),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests;
