//! What an answer of the collector means for a batch, and how long to wait for the next try.

use std::time::Duration;

use serde::Deserialize;

/// Longest pause that the collector may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// What to do with a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It is on disk, but for what was rejected.
    Answered(Answer),
    /// It can't be taken as a whole: send it in parts, until the one at fault is alone.
    Split,
    /// Not now.
    Retry {
        /// The pause that the collector asked for.
        after: Option<Duration>,
    },
}

/// The collector's account of one batch.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Answer {
    pub(super) written: u64,
    pub(super) repeated: u64,
    pub(super) rejected: u64,
    #[serde(default)]
    pub(super) errors: Vec<Rejected>,
}

/// One event that was not taken.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Rejected {
    pub(super) index: usize,
    pub(super) code: String,
    pub(super) message: String,
}

/// Reads an answer. Whatever is not understood (a proxy's page, a wrong address) is no
/// acknowledgement, and is tried again: a repeat is harmless, a lost outcome is not.
pub(super) fn meaning(status: u16, retry_after: Option<&str>, body: &[u8]) -> Meaning {
    let retry = || Meaning::Retry { after: retry_after.and_then(seconds) };
    match status {
        200 | 207 | 422 => match serde_json::from_slice(body) {
            Ok(answer) => Meaning::Answered(answer),
            Err(_) => retry(),
        },
        400 | 413 => Meaning::Split,
        _ => retry(),
    }
}

fn seconds(text: &str) -> Option<Duration> {
    let seconds = text.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(RETRY_AFTER_MAX))
}

/// Pauses between tries: doubling, up to a bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    min: Duration,
    max: Duration,
    next: Duration,
}

impl Backoff {
    pub(super) fn new(min: Duration, max: Duration) -> Self {
        Self { min, max, next: min }
    }

    /// The pause before the next try: never shorter than the collector asked for.
    pub(super) fn pause(&mut self, asked: Option<Duration>) -> Duration {
        let pause = self.next.max(asked.unwrap_or_default());
        self.next = (self.next * 2).min(self.max);
        pause
    }

    /// It went well.
    pub(super) fn reset(&mut self) {
        self.next = self.min;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_settles_a_batch_whatever_was_rejected() {
        let body = br#"{"written":1,"repeated":2,"rejected":1,
            "errors":[{"index":3,"code":"bad_net","message":"no"}]}"#;
        for status in [200, 207, 422] {
            let Meaning::Answered(answer) = meaning(status, None, body) else {
                panic!("{status} settles a batch");
            };
            assert_eq!((answer.written, answer.repeated, answer.rejected), (1, 2, 1));
            assert_eq!(answer.errors[0].index, 3);
        }
    }

    #[test]
    fn what_is_not_understood_is_no_acknowledgement() {
        for status in [200, 204, 302, 401, 404, 408, 500, 502] {
            let meaning = meaning(status, None, b"<html>");
            assert_eq!(meaning, Meaning::Retry { after: None }, "{status}");
        }
    }

    #[test]
    fn the_collector_says_how_long_to_wait() {
        for status in [429, 503] {
            let after = |text| match meaning(status, text, b"") {
                Meaning::Retry { after } => after,
                other => panic!("{other:?}"),
            };
            assert_eq!(after(Some("2")), Some(Duration::from_secs(2)));
            assert_eq!(after(Some("999999")), Some(RETRY_AFTER_MAX));
            assert_eq!(after(Some("Wed, 21 Oct 2026 07:28:00 GMT")), None);
            assert_eq!(after(None), None);
        }
    }

    #[test]
    fn a_batch_that_is_refused_as_a_whole_is_split() {
        assert_eq!(meaning(400, None, b"{}"), Meaning::Split);
        assert_eq!(meaning(413, None, b"{}"), Meaning::Split);
    }

    #[test]
    fn pauses_double_up_to_the_bound() {
        let ms = Duration::from_millis;
        let mut backoff = Backoff::new(ms(100), ms(350));
        let pauses = [None, None, Some(ms(5000)), None].map(|asked| backoff.pause(asked));
        assert_eq!(pauses, [ms(100), ms(200), ms(5000), ms(350)]);
        backoff.reset();
        assert_eq!(backoff.pause(None), ms(100));
    }
}
