//! Shortens text.

/// The beginning of a text, at most so many bytes, cut between characters.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    text.get(..end).unwrap_or_default()
}
