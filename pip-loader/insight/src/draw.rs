//! `pip-exec --draw`: a picture of a timeline, for eyes without another tool.

mod file;
mod states;
mod svg;
mod zoom;

use file::Timeline;
use pip_ground::Refusal;
use std::fs;
use std::path::{Path, PathBuf};

/// Draws the timelines of a job's nodes, in one picture, into a file, and says what that is called. Without a name it
/// has that of the first timeline and the ending `.svg`; one that ends in `.html` is a page.
///
/// # Errors
/// One is no timeline, or the picture cannot be written.
pub fn draw(timelines: &[PathBuf], picture: Option<&Path>) -> Result<String, Refusal> {
    let mut whole = Timeline::default();
    for path in timelines {
        let refused =
            |reason: &dyn std::fmt::Display| Refusal::new(format!("cannot draw {}: {reason}", path.display()));
        let text = fs::read_to_string(path).map_err(|error| refused(&error))?;
        whole.add(&text).map_err(|reason| refused(&reason))?;
    }
    let mut name = timelines.first().cloned().unwrap_or_default();
    name.as_mut_os_string().push(".svg");
    let name = picture.map_or(name, Path::to_owned);
    let drawn = svg::draw(&whole);
    let is_page = name.extension().is_some_and(|ending| ending == "html");
    let content = match is_page {
        true => page(&drawn),
        false => drawn,
    };
    fs::write(&name, content).map_err(|error| Refusal::new(format!("cannot write {}: {error}", name.display())))?;
    Ok(format!("{}\n", name.display()))
}

fn page(picture: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Timeline of a job</title></head>\n\
         <body style=\"margin:1em\">\n{picture}</body></html>\n"
    )
}
