//! What the user has chosen to see, and what the keys do.

use pip_insight::ask::Sort;
use pip_insight::control::top::{Row, View};
use ratatui::termion::event::Key;

/// Longest filter.
const FILTER_MAX: usize = 40;

/// What a key leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// The screen is drawn again.
    Draw,
    /// The program ends.
    Quit,
}

/// The state of the screen.
#[derive(Debug)]
pub struct App {
    /// Which job this is.
    pub title: String,
    /// What happened in the last interval.
    pub view: View,
    /// The order of the rows.
    pub sort: Sort,
    /// What rows must have in them.
    pub filter: String,
    /// The user types the filter.
    pub is_typing: bool,
    /// The rank that is marked.
    pub selected: u64,
    /// All about that rank is shown.
    pub is_detailed: bool,
    /// Rows above the first that is seen.
    pub offset: usize,
}

impl App {
    /// Nothing is known yet.
    pub fn new(title: String, sort: Sort) -> Self {
        Self {
            title,
            view: View::default(),
            sort,
            filter: String::new(),
            is_typing: false,
            selected: 0,
            is_detailed: false,
            offset: 0,
        }
    }

    /// Shows another interval.
    pub fn update(&mut self, view: View) {
        self.view = view;
    }

    /// The rows that are shown.
    pub fn rows(&self) -> Vec<&Row> {
        self.view.rows(self.sort, &self.filter)
    }

    /// Where the marked rank is among them; the first row if it is not.
    pub fn position(&self) -> usize {
        let rows = self.rows();
        let found = rows.iter().position(|row| row.rank == self.selected);
        found.unwrap_or(0)
    }

    /// The user has pressed a key.
    pub fn press(&mut self, key: Key) -> Reaction {
        match key {
            Key::Ctrl('c') => return Reaction::Quit,
            _ if self.is_typing => self.type_filter(key),
            Key::Char('q') => return Reaction::Quit,
            Key::Char('s') => self.sort = self.sort.next(),
            Key::Char('/') => {
                self.filter.clear();
                self.is_typing = true;
            }
            Key::Down | Key::Char('j') => self.step(1),
            Key::Up | Key::Char('k') => self.step(-1),
            Key::PageDown => self.step(10),
            Key::PageUp => self.step(-10),
            Key::Home => self.step(isize::MIN),
            Key::End => self.step(isize::MAX),
            Key::Char('\n') => {
                self.step(0);
                self.is_detailed = !self.is_detailed;
            }
            Key::Esc => {
                self.is_detailed = false;
                self.filter.clear();
            }
            _ => {}
        }
        Reaction::Draw
    }

    fn type_filter(&mut self, key: Key) {
        match key {
            Key::Char('\n') => self.is_typing = false,
            Key::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            Key::Backspace => {
                self.filter.pop();
            }
            Key::Char(letter) if self.filter.len() < FILTER_MAX => self.filter.push(letter),
            _ => {}
        }
    }

    /// Marks the rank so many rows further down.
    fn step(&mut self, rows: isize) {
        let ranks: Vec<u64> = self.rows().iter().map(|row| row.rank).collect();
        let last = ranks.len().saturating_sub(1);
        let position = self.position().saturating_add_signed(rows).min(last);
        if let Some(&rank) = ranks.get(position) {
            self.selected = rank;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app() -> App {
        let mut app = App::new("job 1: ./a".into(), Sort::Rank);
        let row = |rank| Row {
            rank,
            state: if rank == 2 { "asleep" } else { "computes" }.into(),
            cpu: rank as f64,
            ..Row::default()
        };
        app.update(View { rows: (0..4).map(row).collect(), ..View::default() });
        app
    }

    fn press(app: &mut App, keys: &str) {
        for letter in keys.chars() {
            let key = match letter {
                '\x1b' => Key::Esc,
                letter => Key::Char(letter),
            };
            assert_eq!(app.press(key), Reaction::Draw);
        }
    }

    #[test]
    fn the_marked_rank_stays_marked_in_another_order() {
        let mut app = app();
        press(&mut app, "jj");
        assert_eq!((app.selected, app.position()), (2, 2));
        press(&mut app, "ss");
        assert_eq!((app.sort, app.position()), (Sort::Cpu, 1));
        press(&mut app, "jjjjj");
        assert_eq!(app.selected, 0);
        press(&mut app, "k\n");
        assert!(app.is_detailed && app.selected == 1);
    }

    #[test]
    fn a_filter_is_typed_and_taken_back() {
        let mut app = app();
        press(&mut app, "/asleepq\x1b");
        assert_eq!(app.rows().len(), 4);
        press(&mut app, "/asleep\n");
        assert_eq!(app.rows().len(), 1);
        press(&mut app, "\n");
        assert!(app.is_detailed && app.selected == 2);
        press(&mut app, "\x1b");
        assert_eq!(app.rows().len(), 4);
        assert_eq!(app.press(Key::Char('q')), Reaction::Quit);
    }

    #[test]
    fn nothing_is_marked_where_nothing_is() {
        let mut app = App::new(String::new(), Sort::Rank);
        press(&mut app, "jk\n");
        assert_eq!(app.position(), 0);
    }
}
