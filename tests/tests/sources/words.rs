//! Checks the words that people read: pages, module headers, help texts and comments have short sentences with a plain
//! subject.

use std::path::Path;

use fairlead_tests::sources::sources;

/// Longest sentence, in words. A colon and a semicolon end one, too.
const WORDS_MAX: usize = 25;
/// Words that make a clause the subject, as in "what is kept again". Questions may begin with them.
const CLAUSES: [&str; 6] = ["What", "Who", "Whom", "Whose", "Whoever", "Whichever"];
/// Folders whose `///` comments keep the rule. A folder joins when its comments are rewritten. The list only grows.
const KEPT: &[&str] = &[
    "src/base/",
    "src/cases/",
    "src/chart/",
    "src/cli/",
    "src/content/src/",
    "src/crash/",
    "src/dashboard/",
    "src/dispatch/src/",
    "src/job/src/",
    "src/known/",
    "src/lifecycle/",
    "src/reaper/",
    "src/replay/",
    "src/scaler/",
    "src/scheduler/src/peers/",
    "src/scheduler/src/testing/",
    "src/store/src/",
    "testbox-client/",
    "tests/",
];

/// Returns whether a line holds a link and nothing else: an address, a definition, or a name with or without a target.
fn is_link(line: &str) -> bool {
    let line = line.trim();
    let is_one_word = |text: &str| !text.contains(' ');
    let is_address = line.starts_with('<') && line.ends_with('>') && is_one_word(line);
    let after = line.strip_prefix('[').and_then(|it| it.split_once(']'));
    let is_named = after.is_some_and(|(_, after)| {
        let target = after.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
        let target = target.or(after.strip_prefix(": "));
        after.is_empty() || target.is_some_and(is_one_word)
    });
    is_address || is_named
}

/// Lines of a page or of comments that are prose: no code, tables, headings or mere links.
fn prose(page: &str) -> Vec<&str> {
    let mut is_code = false;
    let lines = page.lines().map(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        let is_item = line.trim_start().starts_with("- ");
        let indented = line.starts_with("    ") && !is_item;
        let is_other = indented || is_link(line) || line.starts_with(['|', '#', '!']);
        let is_prose = !(is_code || is_fence || is_other);
        if is_prose { line.trim() } else { "" }
    });
    lines.collect()
}

/// Returns the text of a source's comments: its header, and its `///` lines if it has options of a command or is in a
/// folder of [`KEPT`]. An empty line is where there is code.
fn comments(path: &str, source: &str) -> String {
    let header = source.lines().map_while(|line| line.strip_prefix("//!"));
    let is_kept = KEPT.iter().any(|folder| path.starts_with(folder));
    let is_read = is_kept || source.contains("#[arg(");
    let docs = source.lines().filter(|_| is_read).map(|line| {
        let text = line.trim_start().strip_prefix("///");
        text.filter(|text| !text.starts_with('/'))
            .unwrap_or_default()
    });
    let lines = header.chain([""]).chain(docs);
    let lines: Vec<&str> = lines
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    lines.join("\n")
}

/// Paragraphs and items of lists, each in one line and with a word for each piece of code.
fn paragraphs(lines: &[&str]) -> Vec<String> {
    let mut found = vec![String::new()];
    for line in lines {
        let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let item = line.strip_prefix("- ").or(number.strip_prefix(". "));
        if line.is_empty() || item.is_some() {
            found.push(String::new());
        }
        let last = found.last_mut().expect("there is one");
        last.push_str(item.unwrap_or(line));
        last.push(' ');
    }
    let plain = |text: String| {
        let pieces = text.split('`').enumerate();
        let pieces = pieces.map(|(nth, piece)| if nth % 2 == 0 { piece } else { "code" });
        pieces.collect::<String>()
    };
    found.into_iter().map(plain).collect()
}

fn sentences(paragraph: &str) -> Vec<String> {
    let mut found = vec![Vec::new()];
    for word in paragraph.split_whitespace() {
        let last = found.last_mut().expect("there is one");
        last.push(word);
        if word
            .trim_end_matches(['*', ')', '"'])
            .ends_with(['.', '!', '?', ':', ';'])
        {
            found.push(Vec::new());
        }
    }
    found.into_iter().map(|words| words.join(" ")).collect()
}

/// All sentences of a page or of comments.
fn sentences_of(text: &str) -> Vec<String> {
    let all = paragraphs(&prose(text));
    let all = all.iter().flat_map(|paragraph| sentences(paragraph));
    all.filter(|sentence| !sentence.is_empty()).collect()
}

/// The fault of a sentence, if it has one.
fn fault(sentence: &str) -> Option<String> {
    let words = sentence
        .split(' ')
        .filter(|word| word.contains(char::is_alphanumeric));
    let many = words.clone().count();
    let first = words.clone().next().unwrap_or_default();
    if many > WORDS_MAX {
        return Some(format!("{many} words, at most {WORDS_MAX}"));
    }
    let is_clause = CLAUSES.contains(&first) && !sentence.ends_with('?');
    is_clause.then(|| format!("'{first}' makes a clause the subject"))
}

#[test]
fn sentences_are_short_and_have_a_plain_subject() {
    let mut problems = Vec::new();
    for source in sources(&[".rs", ".md"]) {
        let name = &source.path;
        let is_page = Path::new(name).extension().is_some_and(|end| end == "md");
        let text = if is_page {
            source.text.clone()
        } else {
            comments(name, &source.text)
        };
        for sentence in sentences_of(&text) {
            if let Some(fault) = fault(&sentence) {
                problems.push(format!("{name}: {fault}: {sentence}"));
            }
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn each_folder_of_the_list_has_sources() {
    let all = sources(&[".rs"]);
    for folder in KEPT {
        let has_some = all.iter().any(|source| source.path.starts_with(folder));
        assert!(folder.ends_with('/') && has_some, "{folder}");
    }
}

#[test]
fn long_sentences_and_clauses_are_found() {
    let page = "# What is kept\n\nA page.\n\n- What is `kept` again.\n- Who waits?\n\n```\nWhat is code.\n```\n";
    let all = sentences_of(page);
    let faults: Vec<_> = all.iter().filter_map(|text| fault(text)).collect();
    assert_eq!(faults, ["'What' makes a clause the subject"]);
    assert!(fault(&"word ".repeat(WORDS_MAX)).is_none());
    assert!(fault(&"word ".repeat(WORDS_MAX + 1)).is_some());
}

#[test]
fn comments_are_read_but_for_code_tables_headings_and_links() {
    let header = "//! A header.\n//! | a | table |\n\n";
    let docs = [
        "/// Returns a.",
        "///",
        "/// # Errors",
        "/// [`A::b`]: whose it is.",
        "/// ```",
        "/// What is code.",
        "/// ```",
        "/// | a | table |",
        "/// [Who reads](a.md)",
        "/// [who]: https://a.example",
        "//// No comment.",
        "fn a() {}",
        "    /// Whose b.",
    ]
    .join("\n");
    let source = format!("{header}{docs}\n");
    let kept = format!("{}a.rs", KEPT[0]);
    let all = sentences_of(&comments(&kept, &source));
    assert_eq!(
        all,
        [
            "A header.",
            "Returns a.",
            "[code]:",
            "whose it is.",
            "Whose b."
        ]
    );
    let faults: Vec<_> = all.iter().filter_map(|text| fault(text)).collect();
    assert_eq!(faults, ["'Whose' makes a clause the subject"]);
    // Others are not rewritten yet. Help texts are read everywhere.
    let other = "src/none/a.rs";
    assert_eq!(sentences_of(&comments(other, &source)), ["A header."]);
    let help = format!("{source}#[arg(long)]\n");
    assert_eq!(sentences_of(&comments(other, &help)), all);
}
