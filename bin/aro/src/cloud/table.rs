//! Tables of text.

use serde_json::Value;

/// Columns as wide as their widest cell.
pub fn render(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let rows: Vec<Vec<String>> = rows.collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        let head = head.get(column).map_or(0, |cell| cell.len());
        cells.max().unwrap_or(0).max(head)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut lines = vec![row(head, &widths)];
    for cells in &rows {
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        lines.push(row(&cells, &widths));
    }
    lines.join("\n")
}

/// One line.
pub fn row(cells: &[&str], widths: &[usize]) -> String {
    let padded: Vec<String> =
        cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}", width = *width)).collect();
    padded.join("  ").trim_end().to_owned()
}

/// A JSON value in a cell.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_have_no_blanks_at_their_end() {
        let rows = [["a", "long cell"], ["bb", ""]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(render(&["X", "Y"], rows.into_iter()), "X   Y\na   long cell\nbb");
    }
}
