//! Makes the interface as an OpenAPI 3.1 document and as a page, from the table of endpoints and the types of the wire.
//!
//! It is compiled for tests alone. They compare what it makes with the two files, so programs need no schemas.

pub(crate) mod content;
mod document;
mod parameters;
mod reference;

use std::{
    env, fs,
    io::{self, Write as _},
    path::Path,
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};

/// With this variable the files are written, not only compared.
const WRITE: &str = "FAIRLEAD_WRITE_DOCS";
/// The file of [`crate::OPENAPI_GZIP`], below this crate.
const DOCUMENT: &str = "openapi.json.gz";
/// The page for people, below this crate.
const PAGE: &str = "../../docs/api-reference.md";

/// Checks that a file is what is made, or writes it.
fn check_made(file: &str, made: &[u8], read: fn(&[u8]) -> Vec<u8>, written: fn(&[u8]) -> Vec<u8>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let is_made = || read(&fs::read(&path).unwrap_or_default()) == made;
    if env::var_os(WRITE).is_some() && !is_made() {
        fs::write(&path, written(made)).unwrap();
    }
    assert!(
        is_made(),
        "{file} differs from the table of endpoints; {WRITE}=1 writes it"
    );
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    // A file that is not compressed differs, too.
    _ = io::copy(&mut GzDecoder::new(bytes), &mut text);
    text
}

#[test]
fn the_description_of_the_interface_is_in_the_documentation() {
    let document = document::document().to_string();
    check_made(DOCUMENT, document.as_bytes(), unpacked, packed);
    let page = reference::reference();
    check_made(PAGE, page.as_bytes(), <[u8]>::to_vec, <[u8]>::to_vec);
}
