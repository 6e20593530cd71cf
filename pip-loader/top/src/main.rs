//! `pip-top`: shows a running job on the screen. `pip-exec --top` executes it, so that starting a job needs none of
//! what a screen takes.

mod app;
mod keys;
mod screen;

use app::{App, Reaction};
use pip_ground::Refusal;
use pip_insight::ask::{Sort, Wanted};
use pip_insight::control::top::Watched;
use ratatui::Terminal;
use ratatui::backend::TermionBackend;
use ratatui::termion::raw::IntoRawMode;
use ratatui::termion::screen::IntoAlternateScreen;
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Exit status of a refusal, as of `pip-exec`.
const REFUSED: u8 = 2;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(wanted) = wanted(&words) else {
        eprintln!("pip-top: pip-exec --top starts this program");
        return ExitCode::from(REFUSED);
    };
    match run(&wanted) {
        Ok(ended) => {
            if ended {
                println!("pip-exec: the job has ended");
            }
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("pip-exec: {problem}");
            ExitCode::from(REFUSED)
        }
    }
}

/// The arguments: the delay in seconds, the order of ranks, and the job's process if the user has named one.
fn wanted(words: &[String]) -> Option<Wanted> {
    let (delay, sort, pid) = match words {
        [delay, sort] => (delay, sort, None),
        [delay, sort, pid] => (delay, sort, Some(pid.parse().ok()?)),
        _ => return None,
    };
    let sort = Sort::ALL.iter().find(|(name, _)| name == sort)?.1;
    let delay = Duration::try_from_secs_f64(delay.parse().ok()?).ok()?;
    Some(Wanted { pid, delay, sort, ..Wanted::default() })
}

/// Shows the job until the user has seen enough; whether it ended before.
fn run(wanted: &Wanted) -> Result<bool, Box<dyn std::error::Error>> {
    let watched = Watched::begin(wanted.pid).map_err(|refusal: Refusal| refusal.to_string())?;
    let app = App::new(watched.title(), wanted.sort);
    // The terminal is as it was when these have been dropped.
    let output = std::io::stdout().into_raw_mode()?;
    let output = output.into_alternate_screen()?;
    let mut terminal = Terminal::new(TermionBackend::new(output))?;
    terminal.hide_cursor()?;
    let ended = watch(watched, app, &mut terminal, wanted.delay);
    terminal.show_cursor()?;
    Ok(ended?)
}

fn watch<W: Write>(
    mut watched: Watched,
    mut app: App,
    terminal: &mut Terminal<TermionBackend<W>>,
    delay: Duration,
) -> std::io::Result<bool> {
    // The first numbers come soon; an interval later there are better ones.
    let mut next = Instant::now() + delay.min(Duration::from_millis(500));
    loop {
        terminal.draw(|frame| screen::draw(frame, &mut app))?;
        let left = next.saturating_duration_since(Instant::now());
        if left.is_zero() {
            next = Instant::now() + delay;
            match watched.ask().map_err(|refusal| std::io::Error::other(refusal.to_string()))? {
                Some(view) => app.update(view),
                None => return Ok(true),
            }
        } else {
            for key in keys::read(left)? {
                if app.press(key) == Reaction::Quit {
                    return Ok(false);
                }
            }
        }
    }
}
