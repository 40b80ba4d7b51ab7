//! Tables for people: their layout, and sanitized cells. Does not know the contents.
//!
//! On a terminal each row is one line that fits: long cells are cut, then the least important columns go. The first
//! column, which names the row, is always whole. Elsewhere all is shown, for `grep` and `awk`.

use unicode_width::UnicodeWidthStr;

use crate::printable::{Hue, acts, hued, is_mark};

/// Minimum width to which a cell is cut, columns.
const CUT_MIN: usize = 12;
/// Gap between two columns.
const GAP: usize = 2;

/// Medium of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paper {
    /// Width of the terminal, columns. `None`: not a terminal.
    pub(crate) width: Option<usize>,
}

impl Paper {
    /// Pipe or file.
    #[cfg(test)]
    pub(crate) const PIPE: Self = Self { width: None };

    /// Returns true if it is a person's terminal.
    pub(crate) fn is_terminal(self) -> bool {
        self.width.is_some()
    }
}

/// Function that returns the colour of a cell.
type Colour = fn(&str) -> Option<Hue>;

/// Columns with headings, then rows. Headings that begin with `>` mark numbers, which are right-aligned.
pub(crate) struct Grid {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    /// Columns from the most to the least important.
    order: Vec<usize>,
    colours: Vec<(usize, Colour)>,
}

impl Grid {
    pub(crate) fn new(headings: &[&'static str]) -> Self {
        Self {
            headings: headings.to_vec(),
            rows: Vec::new(),
            order: (0..headings.len()).collect(),
            colours: Vec::new(),
        }
    }

    /// Sets the most important columns after the first one. The importance of the others falls from left to right.
    pub(crate) fn keep(mut self, names: &[&str]) -> Self {
        let place = |n: &usize| {
            let heading = self.heading(*n);
            let kept = names.iter().position(|name| *name == heading);
            (*n > 0, kept.unwrap_or(usize::MAX), *n)
        };
        let mut order: Vec<usize> = (0..self.headings.len()).collect();
        order.sort_by_key(place);
        self.order = order;
        self
    }

    /// Sets the colours of a column's cells.
    pub(crate) fn colour(mut self, name: &str, colour: Colour) -> Self {
        let column = (0..self.headings.len()).find(|n| self.heading(*n) == name);
        self.colours.extend(column.map(|n| (n, colour)));
        self
    }

    fn heading(&self, n: usize) -> &'static str {
        self.headings
            .get(n)
            .map_or("", |heading| heading.trim_start_matches('>'))
    }

    fn is_right(&self, n: usize) -> bool {
        self.headings
            .get(n)
            .is_some_and(|heading| heading.starts_with('>'))
    }

    /// Adds a row. Missing cells are empty.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells = cells.into_iter().map(|cell| harmless(&cell));
        self.rows.push(cells.collect());
    }

    /// Returns the width of a column's widest cell.
    fn width(&self, n: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(n));
        let widest = cells.map(|cell| cell.width()).max().unwrap_or(0);
        widest.max(self.heading(n).width())
    }

    /// Returns the visible columns from left to right, each with its width.
    fn layout(&self, paper: Paper) -> Vec<(usize, usize)> {
        let mut shown: Vec<(usize, usize)> =
            self.order.iter().map(|n| (*n, self.width(*n))).collect();
        if let Some(most) = paper.width {
            while total(&shown) > most && shown.len() > 1 {
                if !shrink(&mut shown, most) {
                    shown.pop();
                    // Columns that were cut to make room get their width back.
                    for (n, width) in &mut shown {
                        *width = self.width(*n);
                    }
                }
            }
        }
        shown.sort_unstable();
        shown
    }

    /// Returns the table as text, without a final newline.
    pub(crate) fn render(&self, paper: Paper) -> String {
        let layout = self.layout(paper);
        let headings = layout
            .iter()
            .map(|(n, width)| pad(self.heading(*n), *width, self.is_right(*n)));
        let mut lines = vec![join(headings)];
        for row in &self.rows {
            let cells = layout.iter().map(|(n, width)| {
                let text = row.get(*n).map_or("", String::as_str);
                let text = pad(&cut(text, *width), *width, self.is_right(*n));
                let colour = self.colours.iter().find(|(column, _)| column == n);
                match colour.and_then(|(_, colour)| colour(text.trim())) {
                    Some(hue) if paper.is_terminal() => hued(hue, &text),
                    _ => text,
                }
            });
            lines.push(join(cells));
        }
        lines.join("\n")
    }
}

fn total(shown: &[(usize, usize)]) -> usize {
    let widths: usize = shown.iter().map(|(_, width)| width).sum();
    widths + GAP * shown.len().saturating_sub(1)
}

/// Narrows the widest columns, except the first of the table, until all fit. Returns false if they cannot fit.
fn shrink(shown: &mut [(usize, usize)], most: usize) -> bool {
    let before: Vec<usize> = shown.iter().map(|(_, width)| *width).collect();
    while total(shown) > most {
        let widest = shown.iter_mut().filter(|(n, _)| *n > 0);
        let Some((_, width)) = widest
            .max_by_key(|(_, width)| *width)
            .filter(|(_, width)| *width > CUT_MIN)
        else {
            for ((_, width), old) in shown.iter_mut().zip(before) {
                *width = old;
            }
            return false;
        };
        *width -= 1;
    }
    true
}

fn pad(text: &str, width: usize, is_right: bool) -> String {
    let blanks = " ".repeat(width.saturating_sub(text.width()));
    if is_right {
        format!("{blanks}{text}")
    } else {
        format!("{text}{blanks}")
    }
}

fn join(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.collect();
    cells.join(&" ".repeat(GAP)).trim_end().to_owned()
}

/// Returns `text` without characters that could move a terminal's cursor, reorder letters or break a row.
pub(crate) fn harmless(text: &str) -> String {
    text.chars()
        .map(|c| if acts(c) || is_mark(c) { ' ' } else { c })
        .collect()
}

/// Returns `-` for an empty text.
pub(crate) fn or_dash(text: &str) -> String {
    if text.is_empty() {
        "-".to_owned()
    } else {
        text.to_owned()
    }
}

/// Cuts `text` to at most `width` columns.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    for letter in text.chars() {
        if short.width() + letter.to_string().width() >= width {
            break;
        }
        short.push(letter);
    }
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn wide(width: usize) -> Paper {
        Paper { width: Some(width) }
    }

    fn jobs() -> Grid {
        let grid = Grid::new(&["job", "stage", "parameters", ">took"]);
        let mut grid = grid.keep(&["stage", "parameters"]);
        grid.row([
            "2611280101234567890".into(),
            "finish".into(),
            "nr_threads=4 mode=process size=4096k".into(),
            "3s".into(),
        ]);
        grid
    }

    #[test]
    fn columns_line_up_and_numbers_are_right() {
        let mut grid = Grid::new(&["name", ">n", "note"]);
        grid.row(["a".into(), "5".into(), "x".into()]);
        grid.row(["long name".into(), "12345".into(), String::new()]);
        assert_eq!(
            grid.render(Paper::PIPE),
            "name           n  note\na              5  x\nlong name  12345"
        );
    }

    #[test]
    fn a_narrow_terminal_cuts_cells_and_then_drops_columns_but_never_the_first() {
        let grid = jobs();
        for width in [200, 72, 60, 50, 40, 30, 10, 1] {
            let text = grid.render(wide(width));
            assert_eq!(text.lines().count(), 2, "a row is one line: {text}");
            assert!(text.contains("2611280101234567890"), "{width}: {text}");
            if width >= 19 {
                let widest = text.lines().map(UnicodeWidthStr::width).max();
                assert!(widest <= Some(width), "{width}: {text}");
            }
        }
        assert!(grid.render(wide(200)).contains("size=4096k"));
        let narrow = grid.render(wide(60));
        assert!(
            narrow.contains("nr_threads=4") && narrow.contains('…'),
            "{narrow}"
        );
        assert!(
            !narrow.contains("size=4096k") && narrow.contains("took"),
            "{narrow}"
        );
        let narrower = grid.render(wide(42));
        assert!(
            !narrower.contains("took") && narrower.contains("nr_thread"),
            "{narrower}"
        );
        assert!(grid.render(wide(30)).contains("finish"));
    }

    #[test]
    fn a_cell_cannot_break_its_row_or_the_terminal() {
        let mut grid = Grid::new(&["a"]);
        grid.row(["x\n\u{1b}[2Jy\u{202e}z\u{e001}".into()]);
        assert_eq!(grid.render(Paper::PIPE), "a\nx  [2Jy z");
    }

    #[test]
    fn colours_are_for_terminals() {
        let red = |text: &str| (text == "fail").then_some(Hue::Bad);
        let grid = || {
            let mut grid = Grid::new(&["job", "health"]).colour("health", red);
            grid.row(["1".into(), "fail".into()]);
            grid
        };
        assert_eq!(grid().render(Paper::PIPE), "job  health\n1    fail");
        assert!(grid().render(wide(80)).chars().any(is_mark));
    }

    #[test]
    fn without_rows_the_headings_stay() {
        assert_eq!(Grid::new(&["a", "b"]).render(Paper::PIPE), "a  b");
    }

    #[test]
    fn a_cut_text_says_so() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
        assert_eq!(cut("漢字漢字", 5), "漢字…");
    }
}
