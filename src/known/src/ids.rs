//! Ids of documents that are found by several texts.

/// Returns 64 hexadecimal digits for a list of texts. Different lists give different input to the hash.
pub fn id_of_texts(texts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        hasher.update(&u64::try_from(text.len()).unwrap_or(u64::MAX).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}
