//! What a trial is, and what belongs to one while it runs: a folder of its own, the time that its commands took, and
//! whether a time limit passed.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

/// Result of a trial: the error is the text shown to the person who reads the log.
pub type Outcome = Result<(), String>;

/// A named trial. Its body may run twice: see [`crate::queue`].
pub struct Trial {
    /// What filters look at.
    pub name: String,
    /// Whether nothing else runs beside it.
    pub alone: bool,
    /// Whether it is one of the long list, of which each run takes a part.
    pub long: bool,
    body: Box<dyn Fn() -> Outcome + Send + Sync>,
}

impl Trial {
    /// A trial that runs beside others, each time.
    pub fn new(name: String, body: impl Fn() -> Outcome + Send + Sync + 'static) -> Self {
        Self { name, alone: false, long: false, body: Box::new(body) }
    }

    /// The same, with nothing beside it.
    #[must_use]
    pub fn alone(mut self, alone: bool) -> Self {
        self.alone = alone;
        self
    }

    /// The same, as one of the long list.
    #[must_use]
    pub fn long(mut self, long: bool) -> Self {
        self.long = long;
        self
    }

    /// Runs the body on this thread, with a folder that nobody else has.
    pub fn run(&self, folder: PathBuf) -> Ran {
        CURRENT.set(Some(Current { folder: folder.clone(), late: Vec::new(), cpu: Duration::ZERO }));
        let body = std::panic::AssertUnwindSafe(|| (self.body)());
        let outcome = std::panic::catch_unwind(body).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.into()));
            Err(format!("the trial panicked: {}", text.unwrap_or_default()))
        });
        let current = CURRENT.take();
        let (late, cpu) = current.map_or_else(Default::default, |current| (current.late, current.cpu));
        let is_late = |error: &String| late.iter().any(|text| error.contains(text));
        if outcome.is_ok() {
            let _ = std::fs::remove_dir_all(folder);
        }
        Ran { is_late: outcome.as_ref().is_err_and(is_late), outcome, cpu }
    }
}

/// A trial that has run.
pub struct Ran {
    /// What it says.
    pub outcome: Outcome,
    /// Whether it failed since a time limit passed, and for no other reason.
    pub is_late: bool,
    /// What its commands computed.
    pub cpu: Duration,
}

struct Current {
    folder: PathBuf,
    late: Vec<String>,
    cpu: Duration,
}

thread_local! {
    /// The trial that this thread runs.
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// The folder of the trial that this thread runs; made when it is not there, removed when the trial passes.
///
/// # Errors
/// When it cannot be made, or no trial runs on this thread.
pub fn scratch() -> Result<PathBuf, String> {
    let folder = CURRENT.with_borrow(|current| Some(current.as_ref()?.folder.clone()));
    let folder = folder.ok_or("no trial runs on this thread")?;
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// Notes that a time limit passed, and gives the text back for the error. A trial whose error holds that text failed
/// for this reason only.
pub fn late(text: String) -> String {
    CURRENT.with_borrow_mut(|current| {
        if let Some(current) = current {
            current.late.push(text.clone());
        }
    });
    text
}

/// Adds what a command of the trial computed.
pub fn add_cpu(time: Duration) {
    CURRENT.with_borrow_mut(|current| {
        if let Some(current) = current {
            current.cpu += time;
        }
    });
}
