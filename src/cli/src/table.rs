//! Tables for people: their layout, and sanitized cells. Does not know the contents.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use crate::printable::acts;

/// Columns with headings, then rows. Headings that begin with `>` are of numbers: aligned right.
pub(crate) struct Grid {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    pub(crate) fn new(headings: &[&'static str]) -> Self {
        Self {
            headings: headings.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; what is missing stays empty.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| harmless(&cell)).to_vec());
    }

    /// The table as text, no newline at the end. On a terminal, cells wrap to its width; elsewhere
    /// each row stays a line, for `grep` and `awk`.
    pub(crate) fn render(&self, terminal: bool) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_content_arrangement(if terminal {
            ContentArrangement::Dynamic
        } else {
            ContentArrangement::Disabled
        });
        table.set_header(
            self.headings
                .iter()
                .map(|heading| heading.trim_start_matches('>')),
        );
        table.add_rows(self.rows.clone());
        for (index, heading) in self.headings.iter().enumerate() {
            let Some(column) = table.column_mut(index) else {
                continue;
            };
            column.set_padding((0, 2));
            if heading.starts_with('>') {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let lines: Vec<String> = table
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect();
        lines.join("\n")
    }
}

/// `text` without what could move a terminal's cursor, reorder letters or break a row.
pub(crate) fn harmless(text: &str) -> String {
    text.chars()
        .map(|c| if acts(c) { ' ' } else { c })
        .collect()
}

/// `-` for nothing.
pub(crate) fn or_dash(text: &str) -> String {
    if text.is_empty() {
        "-".to_owned()
    } else {
        text.to_owned()
    }
}

/// `text` in at most `chars_max` characters.
pub(crate) fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(chars_max.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_numbers_are_right() {
        let mut grid = Grid::new(&["name", ">n", "note"]);
        grid.row(["a".into(), "5".into(), "x".into()]);
        grid.row(["long name".into(), "12345".into(), String::new()]);
        assert_eq!(
            grid.render(false),
            "name           n  note\na              5  x\nlong name  12345"
        );
    }

    #[test]
    fn a_cell_cannot_break_its_row_or_the_terminal() {
        let mut grid = Grid::new(&["a"]);
        grid.row(["x\n\u{1b}[2Jy\u{202e}z".into()]);
        assert_eq!(grid.render(false), "a\nx  [2Jy z");
    }

    #[test]
    fn without_rows_the_headings_stay() {
        assert_eq!(Grid::new(&["a", "b"]).render(false), "a  b");
    }

    #[test]
    fn a_cut_text_says_so() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
    }
}
