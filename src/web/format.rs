//! How amounts, counts and times read on a page. Exact to the last digit: a rounded amount in a
//! postmortem is a wrong one.

use crate::limits::{DAY_US, MINUTE_US, SECOND_US};
use crate::outcome::format_us;

/// Narrow and not breaking: groups digits without being taken for a decimal sign.
const SEPARATOR: char = '\u{202f}';
/// A true minus, as wide as a plus.
const MINUS: char = '\u{2212}';

/// A whole number with its digits in groups of three.
pub(super) fn number(value: impl Into<i128>) -> String {
    let value = value.into();
    let digits = value.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() * 2);
    if value < 0 {
        text.push(MINUS);
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(SEPARATOR);
        }
        text.push(digit);
    }
    text
}

/// A moment for `<time>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// For machines.
    pub(super) rfc3339: String,
    /// `2026-11-30 12:00:05`.
    pub(super) text: String,
    /// `12:00:05`.
    pub(super) clock: String,
    /// `12:00:05.123456`.
    pub(super) exact: String,
    /// `5 min ago`.
    pub(super) ago: String,
}

impl Moment {
    /// The moment as seen at `now_us`.
    pub(super) fn new(at_us: i64, now_us: i64) -> Self {
        let rfc3339 = format_us(at_us);
        let part =
            |range: std::ops::Range<usize>| rfc3339.get(range).unwrap_or_default().to_owned();
        let (day, clock, exact) = (part(0..10), part(11..19), part(11..26));
        Self { text: format!("{day} {clock}"), clock, exact, ago: ago(now_us - at_us), rfc3339 }
    }
}

/// How long ago; a moment ahead is told as such, since it means that a clock is wrong.
fn ago(passed_us: i64) -> String {
    if passed_us < -SECOND_US {
        return format!("in {}", span(-passed_us));
    }
    if passed_us < SECOND_US {
        return "now".into();
    }
    format!("{} ago", span(passed_us))
}

/// A length of time, in its largest fitting unit.
pub(super) fn span(length_us: i64) -> String {
    const HOUR_US: i64 = 60 * MINUTE_US;
    match length_us {
        ..1_000 => format!("{length_us} µs"),
        1_000..SECOND_US => format!("{} ms", length_us / 1_000),
        SECOND_US..MINUTE_US => format!("{} s", length_us / SECOND_US),
        MINUTE_US..HOUR_US => format!("{} min", length_us / MINUTE_US),
        HOUR_US..DAY_US => format!("{} h", length_us / HOUR_US),
        _ => format!("{} d", length_us / DAY_US),
    }
}

/// One thing or several: `1 source`, `2 sources`.
pub(super) fn several(count: impl Into<i128>, one: &str, many: &str) -> String {
    let count = count.into();
    format!("{} {}", number(count), if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_grouped_and_exact() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(-1_000), "\u{2212}1\u{202f}000");
        let big = number(i128::from(i64::MAX) * 1_000);
        assert_eq!(big.replace('\u{202f}', ""), "9223372036854775807000");
    }

    #[test]
    fn times_say_how_long_ago() {
        let moment = Moment::new(1_796_040_005_123_456, 1_796_040_305_123_456);
        assert_eq!(moment.text, "2026-11-30 12:00:05");
        assert_eq!(moment.exact, "12:00:05.123456");
        assert_eq!(moment.ago, "5 min ago");
        assert_eq!(Moment::new(0, 10).ago, "now");
        assert_eq!(Moment::new(10 * SECOND_US, 0).ago, "in 10 s");
        assert_eq!([span(5), span(5_000), span(3 * DAY_US)], ["5 µs", "5 ms", "3 d"]);
    }
}
