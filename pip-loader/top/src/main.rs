//! `pip-top`: shows a running job on the screen. `pip-exec --top` executes it, so that starting a job needs none of
//! what a screen takes.

mod app;
mod screen;

use app::{App, Reaction};
use pip_loader::launch::Refusal;
use pip_loader::launch::control::top::{Sort, Wanted, Watched};
use ratatui::crossterm::event::{self, Event, KeyEventKind};
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
    Some(Wanted {
        pid,
        delay,
        sort,
        ..Wanted::default()
    })
}

/// Shows the job until the user has seen enough; whether it ended before.
fn run(wanted: &Wanted) -> Result<bool, Box<dyn std::error::Error>> {
    let watched = Watched::begin(wanted.pid).map_err(|refusal: Refusal| refusal.to_string())?;
    let app = App::new(watched.title(), wanted.sort);
    let mut terminal = ratatui::try_init()?;
    let result = watch(watched, app, &mut terminal, wanted.delay);
    ratatui::restore();
    Ok(result?)
}

fn watch(
    mut watched: Watched,
    mut app: App,
    terminal: &mut ratatui::DefaultTerminal,
    delay: Duration,
) -> std::io::Result<bool> {
    // The first numbers come soon; a second later there are better ones.
    let mut next = Instant::now() + delay.min(Duration::from_millis(500));
    loop {
        terminal.draw(|frame| screen::draw(frame, &mut app))?;
        let left = next.saturating_duration_since(Instant::now());
        if event::poll(left)? {
            let reaction = match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Press => app.press(key),
                _ => Reaction::Draw,
            };
            if reaction == Reaction::Quit {
                return Ok(false);
            }
        } else {
            next = Instant::now() + delay;
            match watched.ask() {
                Some(view) => app.update(view),
                None => return Ok(true),
            }
        }
    }
}
