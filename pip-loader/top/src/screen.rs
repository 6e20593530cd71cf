//! How the screen looks.

use crate::app::App;
use pip_insight::control::top::{self, Row};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

/// Draws all of it.
pub fn draw(frame: &mut Frame<'_>, app: &mut App) {
    let rows = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ]);
    let [title, summary, head, body, foot] = rows.areas(frame.area());
    let bold = Style::new().add_modifier(Modifier::BOLD);
    line(frame, title, app.title.clone(), bold);
    line(frame, summary, app.view.summary(), Style::new());
    let reversed = Style::new().add_modifier(Modifier::REVERSED);
    if app.is_detailed {
        line(frame, head, format!("RANK {}", app.selected), reversed);
        details(frame, body, app);
    } else {
        let width = usize::from(head.width);
        line(frame, head, format!("{:<width$}", top::head()), reversed);
        table(frame, body, app);
    }
    line(frame, foot, keys(app), Style::new().fg(Color::Cyan));
}

fn line(frame: &mut Frame<'_>, area: Rect, text: String, style: Style) {
    frame.render_widget(Paragraph::new(text).style(style), area);
}

/// The rows that fit, the marked one among them.
fn table(frame: &mut Frame<'_>, area: Rect, app: &mut App) {
    let (position, height) = (app.position(), usize::from(area.height).max(1));
    let first = position.saturating_sub(height - 1);
    app.offset = app.offset.clamp(first, position);
    let rows = app.rows();
    let lines: Vec<Line<'_>> = (app.offset..)
        .zip(rows.iter().skip(app.offset).take(height))
        .map(|(index, row)| {
            let style = match index == position {
                true => style_of(row).add_modifier(Modifier::REVERSED),
                false => style_of(row),
            };
            Line::styled(row.line(), style)
        })
        .collect();
    let empty = match app.view.rows.is_empty() {
        true => "the first numbers come in a moment",
        false => "no rank has that in its row",
    };
    match lines.is_empty() {
        true => line(frame, area, empty.to_owned(), Style::new()),
        false => frame.render_widget(Paragraph::new(lines), area),
    }
}

/// Ranks that compute stand out from those that wait.
fn style_of(row: &Row) -> Style {
    match &*row.state {
        "computes" => Style::new().fg(Color::Green),
        "ended" | "stopped" => Style::new().fg(Color::Red),
        _ => Style::new(),
    }
}

fn details(frame: &mut Frame<'_>, area: Rect, app: &App) {
    let mut rows = app.view.rows.iter();
    let row = rows.find(|row| row.rank == app.selected);
    let lines = row.map(Row::details).unwrap_or_default();
    let lines: Vec<Line<'_>> = lines.into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn keys(app: &App) -> String {
    if app.is_typing {
        return format!("rows with: {}_   Enter: keep  Esc: all rows", app.filter);
    }
    let sort = app.sort.name();
    let filter = match &*app.filter {
        "" => String::new(),
        filter => format!("; rows with \"{filter}\""),
    };
    format!("q quit  s sort ({sort})  / filter  arrows choose  Enter one rank  Esc back{filter}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pip_insight::ask::Sort;
    use pip_insight::control::top::View;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::termion::event::Key;

    fn app() -> App {
        let mut app = App::new("job 17: ./heat 100".into(), Sort::Rank);
        let row =
            |rank| Row { rank, pid: 100 + rank, state: "computes".into(), helped: vec![(9, 3)], ..Row::default() };
        app.update(View { rows: (0..30).map(row).collect(), ..View::default() });
        app
    }

    fn drawn(app: &mut App) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(100, 12)).expect("a screen");
        terminal.draw(|frame| draw(frame, app)).expect("no error");
        let buffer = terminal.backend().buffer().clone();
        let cells = buffer.content.chunks(100);
        cells
            .map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>())
            .map(|row: String| row.trim_end().to_owned())
            .collect()
    }

    #[test]
    fn a_screen_has_its_parts() {
        let mut app = app();
        let screen = drawn(&mut app);
        assert_eq!(screen[0], "job 17: ./heat 100");
        assert!(screen[1].starts_with("30 ranks"), "{screen:?}");
        assert!(screen[2].contains("%MPI"), "{screen:?}");
        assert!(screen[3].trim_start().starts_with("0    0      100 computes"));
        assert!(screen[3].ends_with("9:3"), "{screen:?}");
        assert!(screen[11].starts_with("q quit"), "{screen:?}");
    }

    #[test]
    fn the_marked_row_is_always_seen() {
        let mut app = app();
        app.press(Key::End);
        let screen = drawn(&mut app);
        assert!(screen[10].trim_start().starts_with("29 "), "{screen:?}");
        app.press(Key::Up);
        let screen = drawn(&mut app);
        assert!(screen[10].trim_start().starts_with("29 "), "{screen:?}");
        app.press(Key::Home);
        let screen = drawn(&mut app);
        assert!(screen[3].trim_start().starts_with("0 "), "{screen:?}");
    }

    #[test]
    fn one_rank_fills_the_screen() {
        let mut app = app();
        app.press(Key::Down);
        app.press(Key::Char('\n'));
        let screen = drawn(&mut app);
        assert_eq!(screen[2], "RANK 1");
        assert!(screen.iter().any(|line| line == "process                   101"));
        let mut empty = App::new(String::new(), Sort::Rank);
        assert!(drawn(&mut empty)[3].contains("in a moment"));
    }
}
