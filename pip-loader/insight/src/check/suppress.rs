//! Findings that the user does not want to be told, by patterns of a file.

use super::{Finding, Place};
use cohort_base::check::{About, MISTAKES};

/// One line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The number of the line.
    pub line: usize,
    /// The line.
    pub text: String,
    kind: Option<&'static About>,
    function: Option<String>,
    place: Option<String>,
    call: Option<String>,
}

impl Pattern {
    /// Reads the lines of a file. Empty ones and comments say nothing.
    ///
    /// # Errors
    /// The number of a line that is no pattern, and why.
    pub fn read(text: &str) -> Result<Vec<Self>, (usize, String)> {
        let lines = text.lines().map(str::trim).enumerate().map(|(index, line)| (index + 1, line));
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        lines.map(|(number, line)| Self::of(number, line).map_err(|why| (number, why))).collect()
    }

    fn of(line: usize, text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or_default();
        let kind = match first {
            "*" => None,
            name => Some(
                MISTAKES
                    .iter()
                    .find(|about| about.name == name)
                    .ok_or(format!("{name:?} is no kind; --check=list has them, and * is any"))?,
            ),
        };
        let mut this = Self { line, text: text.to_owned(), kind, function: None, place: None, call: None };
        while let Some(word) = words.next() {
            let part = match word {
                "in" => &mut this.function,
                "at" => &mut this.place,
                "call" => &mut this.call,
                _ => return Err(format!("{word:?} is none of in, at and call")),
            };
            *part = Some(words.next().ok_or(format!("there is nothing behind {word:?}"))?.to_owned());
        }
        Ok(this)
    }

    /// Whether a finding is one of those.
    pub fn fits(&self, finding: &Finding) -> bool {
        self.kind.is_none_or(|kind| kind.mistake == finding.about.mistake)
            && finding.places.iter().any(|place| self.fits_place(place))
    }

    fn fits_place(&self, place: &Place) -> bool {
        let is = |pattern: &Option<String>, text: &str| pattern.as_ref().is_none_or(|pattern| matches(pattern, text));
        let code = &place.code;
        let full = format!("{}:{}", if code.path.is_empty() { code.file() } else { &code.path }, code.line);
        // A name alone, or with any of the folders that it is in.
        let ends = full.match_indices('/').map(|(at, _)| &full[at + 1..]).chain([full.as_str()]);
        is(&self.function, code.function())
            && is(&self.call, &place.function)
            && self.place.as_ref().is_none_or(|pattern| ends.into_iter().any(|end| matches(pattern, end)))
    }
}

/// Whether a text is what a pattern with `*` for any letters and `?` for one stands for.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut from, mut star) = (0, 0, None);
    while from < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(&letter) if letter == '?' || letter == text[from] => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((place, taken)) = star else {
                    return false;
                };
                star = Some((place, taken + 1));
                (at, from) = (place + 1, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|&letter| letter == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_like_those_of_shells() {
        for (pattern, text) in [("a*c", "abc"), ("*", ""), ("MPI_?send", "MPI_Isend"), ("*.c:1?", "x.c.c:12")] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a*c", "abd"), ("?", ""), ("MPI_Send", "MPI_Isend"), ("*a", "ab")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_told_with_its_line() {
        let (line, why) = Pattern::read("# mine\n\nleaks in setup_*\ntypes on a.c").expect_err("no word");
        assert_eq!((line, why.as_str()), (4, "\"on\" is none of in, at and call"));
        assert_eq!(Pattern::read("leak").expect_err("no kind").0, 1);
        assert_eq!(Pattern::read("* at").expect_err("no end").0, 1);
        assert_eq!(Pattern::read("* at a.c:* in f call MPI_Send\n").expect("valid").len(), 1);
    }
}
