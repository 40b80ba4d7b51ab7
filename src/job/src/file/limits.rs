//! The limits on job files, in one place. Each is far above what any real file needs.

/// Jobs that one call may unfold to, unless the caller says otherwise.
pub const JOBS_MAX: usize = 100_000;
/// Bytes, roughly, that the jobs of one call may take in memory together, unless the caller says otherwise.
pub const EXPANDED_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// Bytes of one file, included ones too. A script of this size would be a mistake.
pub const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Levels of maps and lists inside each other. Real files have five; every recursion here is bounded by it.
pub const NESTING_MAX: usize = 32;
/// YAML nodes of one file, before aliases are followed.
pub const NODES_MAX: usize = 250_000;
/// Keys of one map. Putting maps over each other costs the product of their sizes.
pub const KEYS_MAX: usize = 1_000;
/// Top-level keys copied in one call while documents and includes are put over each other.
pub const KEYS_COPIED_MAX: usize = 300_000;
/// Nodes looked at in one call while counting jobs, aliases followed: stops alias bombs.
pub const VISITS_MAX: u64 = 4_000_000;
/// Files that include each other in a row.
pub const INCLUDE_DEPTH_MAX: usize = 16;
/// Files read for one call.
pub const FILES_MAX: usize = 200;
/// Documents of one file, those of its includes too.
pub const DOCUMENTS_MAX: usize = 10_000;
/// Segments of a dotted key such as `fsmark.test_size`.
pub const PATH_SEGMENTS_MAX: usize = 16;
/// Bytes of one `{{ }}`.
pub const TEMPLATE_BYTES_MAX: usize = 8 * 1024;
/// Bytes of a text that a `{{ }}` may look at.
pub const TEMPLATE_OPERAND_BYTES_MAX: usize = 4 * 1024;
/// Bytes that one text with `{{ }}` in it may become.
pub const TEMPLATE_RESULT_BYTES_MAX: usize = 64 * 1024;
/// Bytes that the pattern of one `=~` may take when it is compiled.
pub const PATTERN_BYTES_MAX: usize = 64 * 1024;
/// Patterns of one call, in all its files.
pub const PATTERNS_MAX: usize = 256;
/// Matching of one call: bytes of text, each times the kilobytes of the compiled pattern.
pub const PATTERN_WORK_MAX: u64 = 8_000_000;
/// Levels of groups and repeats inside each other in the pattern of one `=~`.
pub const PATTERN_NESTING_MAX: u32 = 32;
/// Levels of `if`, `case` and `? :` inside each other in one `{{ }}`.
pub const TEMPLATE_NESTING_MAX: usize = 32;
/// Folders looked into below a `jobs/` folder while searching for an included file.
pub const SEARCH_FOLDERS_MAX: usize = 2_000;

const _: () = assert!(PATH_SEGMENTS_MAX < NESTING_MAX);
