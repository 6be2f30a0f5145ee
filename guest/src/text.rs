//! What counts as nothing said, and names that are safe as file names.

/// Characters that leave no mark: without one that does, a text is blank.
fn leaves_no_mark(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns whether a reader would see nothing.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(leaves_no_mark)
}

/// Spellings, in lower case, by which callers say that there is nothing.
const ABSENT: &[&str] = &["", "n/a", "na", "none", "null", "nil", "-", "undefined"];

/// Returns whether the text stands for an absent value.
pub fn is_absent(text: &str) -> bool {
    let trimmed = text.trim_matches(leaves_no_mark);
    // The longest spelling has nine letters; longer text needs no folding.
    trimmed.len() <= 9 && ABSENT.contains(&trimmed.to_ascii_lowercase().as_str())
}

/// Returns the value unless it is absent, in whatever spelling.
pub fn present(text: Option<String>) -> Option<String> {
    text.filter(|t| !is_absent(t))
}

/// Returns whether Windows keeps the name for a device, with or without an
/// extension.
pub fn is_reserved_on_windows(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).to_ascii_lowercase();
    match stem.as_str() {
        "con" | "prn" | "aux" | "nul" | "conin$" | "conout$" => true,
        _ => ["com", "lpt"].iter().any(|device| {
            stem.strip_prefix(device)
                .is_some_and(|n| matches!(n, "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9"))
        }),
    }
}

/// The longest slug and the longest task id, in bytes (both are ASCII).
pub const NAME_MAX: usize = 64;

/// What a slug has to look like, for refusals and the schema.
pub const SLUG_RULE: &str =
    "1 to 64 characters: words of a-z and 0-9 joined by single hyphens, and no device name of Windows";

/// Returns whether the text can be a loop's slug.
pub fn is_slug(text: &str) -> bool {
    text.len() <= NAME_MAX
        && text.split('-').all(|word| {
            !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        })
        && !is_reserved_on_windows(text)
}

/// What a task id has to look like, for refusals and the schema.
pub const TASKID_RULE: &str = "1 to 64 characters: a letter or digit, then letters, digits, `.`, `_` or `-`, \
     no dot at the end, and no device name of Windows";

/// Returns whether the text can be a task's id.
pub fn is_taskid(text: &str) -> bool {
    text.len() <= NAME_MAX
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
        && !text.ends_with('.')
        && !is_reserved_on_windows(text)
}

/// Returns the candidates that a misspelt word most likely meant, nearest first.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let fold = |s: &str| -> String {
        s.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
    };
    // Beyond this no one misspells; and the comparison costs the square of it.
    if word.len() > 2 * NAME_MAX {
        return Vec::new();
    }
    let folded = fold(word);
    let mut near: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter_map(|c| {
            let other = fold(c);
            let distance = strsim::osa_distance(&folded, &other);
            (distance <= other.chars().count().min(folded.chars().count()) / 3).then_some((distance, c))
        })
        .collect();
    near.sort();
    near.into_iter().map(|(_, c)| c).take(3).collect()
}
