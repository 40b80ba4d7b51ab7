//! Which files of `assets` are embedded.

/// Their paths below `assets`, and their bytes.
pub(crate) const FILES: &[(&str, &[u8])] = &[
    ("index.html", include_bytes!("../assets/index.html")),
    ("app.js", include_bytes!("../assets/app.js")),
    ("style.css", include_bytes!("../assets/style.css")),
];
