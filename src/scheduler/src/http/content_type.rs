//! Content types of files that jobs wrote. A browser is told of no page and no script, whatever a file is called.

use std::{ffi::OsStr, path::Path};

pub(super) const TEXT: &str = "text/plain; charset=utf-8";
pub(super) const BYTES: &str = "application/octet-stream";

/// By its name if it is an image or JSON, else by its first bytes: text, or some bytes.
pub(super) fn type_of(path: &str, first: &[u8]) -> &'static str {
    let extension = Path::new(path).extension().and_then(OsStr::to_str);
    match extension.map(str::to_ascii_lowercase).as_deref() {
        Some("json") => "application/json",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("webp") => "image/webp",
        _ if is_text(first) => TEXT,
        _ => BYTES,
    }
}

/// Whether the first bytes of a file are text. The last character may be cut.
fn is_text(first: &[u8]) -> bool {
    let is_utf8 = match std::str::from_utf8(first) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    is_utf8 && !first.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_text_and_nothing_is_a_script() {
        for (path, first, kind) in [
            ("s/1/index.html", &b"<script>"[..], TEXT),
            ("s/1/x.svg", b"<svg/>", TEXT),
            ("s/1/dmesg", b"[0.0] Linux", TEXT),
            ("s/1/results.JSON", b"{}", "application/json"),
            ("s/1/a.png", b"\x89PNG", "image/png"),
            ("s/1/vmlinuz", b"MZ\0", BYTES),
            ("s/1/cut.txt", b"gr\xc3", TEXT),
            ("s/1/latin", b"gr\xfc\xdf", BYTES),
            ("s/1/empty", b"", TEXT),
        ] {
            assert_eq!(type_of(path, first), kind, "{path}");
        }
    }
}
