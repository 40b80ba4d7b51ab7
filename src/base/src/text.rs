//! Shortens text.

/// Returns the beginning of a text, at most this many bytes, cut between characters.
pub fn cut(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    text.get(..end).unwrap_or_default()
}

/// Returns an address without its path and query, which may be secret.
pub fn without_path(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let more = if rest.len() > host.len() { "/…" } else { "" };
    format!("{scheme}://{host}{more}")
}

/// Joins two remarks.
pub fn joined(before: Option<String>, words: String) -> String {
    match before {
        Some(before) => format!("{before}; {words}"),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_shows_only_its_host() {
        for (url, shown) in [
            (
                "https://chat.example.com/hooks/T1?key=7",
                "https://chat.example.com/…",
            ),
            ("http://ci:8080?key=7", "http://ci:8080/…"),
            ("http://ci:8080", "http://ci:8080"),
        ] {
            assert_eq!(without_path(url), shown);
        }
    }
}
