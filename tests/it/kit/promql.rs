//! As much of Prometheus's language as the tests of the kit need.

use std::collections::BTreeSet;

/// What stands between operands and is no metric.
const WORDS: [&str; 6] = ["or", "and", "unless", "bool", "offset", "inf"];
/// What lists labels.
const LISTS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];

/// The metrics that an expression reads.
pub(super) fn metrics(expression: &str) -> BTreeSet<String> {
    let without_texts: String = expression.split('"').step_by(2).collect();
    let (text, mut found) =
        (without(&without(&without_texts, '{', '}'), '[', ']'), BTreeSet::new());
    let mut rest = text.as_str();
    while let Some(start) = rest.find(is_part) {
        rest = &rest[start..];
        let (word, after) = rest.split_at(rest.find(|c| !is_part(c)).unwrap_or(rest.len()));
        let list = after.trim_start().strip_prefix('(');
        rest = match list {
            Some(list) if LISTS.contains(&word) => list.split_once(')').unwrap().1,
            _ => after,
        };
        let is_number = word.starts_with(|c: char| c.is_ascii_digit());
        let sums_up = ["by ", "without "].iter().any(|word| after.trim_start().starts_with(word));
        if !is_number && !sums_up && list.is_none() && !WORDS.contains(&word) {
            found.insert(word.to_owned());
        }
    }
    found
}

fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == ':'
}

/// A text without what stands between two signs.
fn without(text: &str, open: char, close: char) -> String {
    let mut parts = text.split(open);
    let mut kept = parts.next().unwrap().to_owned();
    for part in parts {
        kept.push(' ');
        kept.push_str(part.split_once(close).unwrap().1);
    }
    kept
}

#[test]
fn metrics_are_told_from_functions_words_and_labels() {
    let expression = "sum by (a, b) (rate(x_total{c=\"d }\", e=~\"f|g\"}[5m])) / on (a)\n\
                      group_left (h) max without (i) (j:k:l) * 1e3 unless y > bool 0 or absent(z)";
    let found: Vec<String> = metrics(expression).into_iter().collect();
    assert_eq!(found, ["j:k:l", "x_total", "y", "z"]);
}
