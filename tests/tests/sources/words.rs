//! Checks the words that people read: pages, module headers and help texts have short sentences with a plain subject.

use std::path::Path;

use fairlead_tests::sources::sources;

/// Maximum length of a sentence, in words. A colon and a semicolon end a sentence, too.
const WORDS_MAX: usize = 25;
/// Words that make a clause the subject, as in "what is kept again". Questions may begin with them.
const CLAUSES: [&str; 6] = ["What", "Who", "Whom", "Whose", "Whoever", "Whichever"];

/// Returns the lines of a page that are prose, without code, tables and headings.
fn prose(page: &str) -> Vec<&str> {
    let mut is_code = false;
    let lines = page.lines().map(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        let is_item = line.trim_start().starts_with("- ");
        let indented = line.starts_with("    ") && !is_item;
        let is_prose = !(is_code || is_fence || indented || line.starts_with(['|', '#', '!']));
        if is_prose { line.trim() } else { "" }
    });
    lines.collect()
}

/// Returns the header of a source, and the help texts if it has options of a command.
fn comments(source: &str) -> Vec<&str> {
    let header = source.lines().map_while(|line| line.strip_prefix("//!"));
    let header = header.filter(|line| !line.trim_start().starts_with(['|', '#']));
    let has_help = source.contains("#[arg(");
    let help = source
        .lines()
        .filter(|_| has_help)
        .map(|line| line.trim().strip_prefix("///").unwrap_or_default());
    header.chain([""]).chain(help).map(str::trim).collect()
}

/// Returns paragraphs and list items, each as one line with a word for each piece of code.
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

/// Returns the fault of a sentence, if it has one.
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
        let lines = if is_page {
            prose(&source.text)
        } else {
            comments(&source.text)
        };
        for sentence in paragraphs(&lines).iter().flat_map(|text| sentences(text)) {
            if let Some(fault) = fault(&sentence) {
                problems.push(format!("{name}: {fault}: {sentence}"));
            }
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn long_sentences_and_clauses_are_found() {
    let page = "# What is kept\n\nA page.\n\n- What is `kept` again.\n- Who waits?\n\n```\nWhat is code.\n```\n";
    let lines = prose(page);
    let all = paragraphs(&lines);
    let faults: Vec<String> = all.iter().flat_map(|text| sentences(text)).collect();
    let faults: Vec<_> = faults.iter().filter_map(|text| fault(text)).collect();
    assert_eq!(faults, ["'What' makes a clause the subject"]);
    assert!(fault(&"word ".repeat(WORDS_MAX)).is_none());
    assert!(fault(&"word ".repeat(WORDS_MAX + 1)).is_some());
    let source = "//! A header.\n//! | a | table |\n\n#[arg(long)]\n/// Help.\nfn a() {}\n";
    assert_eq!(
        paragraphs(&comments(source))
            .concat()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "),
        "A header. Help."
    );
}
