//! The pages of the dashboard, embedded: files, their media types, their tags, and their compressed forms.
//!
//! No build step: browsers load the modules of `assets` as they are. Libraries of others are below `assets/vendor`, each
//! with its licence.

mod files;

use std::{io::Write, sync::LazyLock};

use flate2::{Compression, write::GzEncoder};

use files::FILES;

/// Page for every address of the dashboard that names no file.
pub const PAGE: &str = "index.html";
/// Content security policy: pages may use only files and answers of their own scheduler, and no inline scripts.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
/// Number of hexadecimal digits of a tag.
const TAG_CHARS: usize = 32;

/// A file of the pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asset {
    /// Path below `assets`, with slashes.
    pub path: &'static str,
    /// Media type, with the character set of text.
    pub media_type: &'static str,
    /// Uncompressed bytes.
    pub bytes: &'static [u8],
    /// Bytes compressed by gzip.
    pub gzip: Vec<u8>,
    /// Entity tag with quotes: a hash of `bytes`.
    pub tag: String,
}

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let assets = FILES.iter().map(|(path, bytes)| Asset {
        path,
        media_type: media_type_of(path),
        bytes,
        gzip: gzip(bytes),
        tag: format!("\"{}\"", &blake3::hash(bytes).to_hex()[..TAG_CHARS]),
    });
    assets.collect()
});

/// Returns the file at a path below `assets`. `None`: no such file.
pub fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}

/// Returns all files.
pub fn all() -> &'static [Asset] {
    &ASSETS
}

/// Compresses bytes by gzip. A failed compression would give an empty result, but never happens in memory.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}

fn media_type_of(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    fn list(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.file_type().unwrap().is_dir() {
                list(&entry.path(), &format!("{name}/"), found);
            } else {
                found.insert(name);
            }
        }
    }

    #[test]
    fn every_file_is_embedded_once() {
        let mut there = BTreeSet::new();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        list(&folder, "", &mut there);
        let embedded: Vec<_> = all().iter().map(|asset| asset.path.to_owned()).collect();
        assert_eq!(embedded.iter().cloned().collect::<BTreeSet<_>>(), there);
        assert_eq!(embedded.len(), there.len(), "a file is listed twice");
    }

    #[test]
    fn files_are_small_and_have_types() {
        for asset in all() {
            assert!(!asset.gzip.is_empty(), "{}", asset.path);
            assert!(asset.bytes.len() < 256 << 10, "{}", asset.path);
        }
        let page = find(PAGE).unwrap();
        assert_eq!(page.media_type, "text/html; charset=utf-8");
        assert!(find("../Cargo.toml").is_none());
    }

    #[test]
    fn the_page_has_no_inline_script_or_style() {
        let page = String::from_utf8_lossy(find(PAGE).unwrap().bytes).into_owned();
        for part in page.split("<script").skip(1) {
            let (head, rest) = part.split_once('>').unwrap();
            let body = rest.split("</script").next().unwrap_or_default();
            assert!(head.contains("src=") && body.trim().is_empty(), "{head}");
        }
        assert!(!page.contains("<style") && !page.contains(" style="));
    }
}
