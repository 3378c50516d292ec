//! The events of the load, put together from prepared pieces: honest ones of healthy guards.

use std::fmt::Write as _;

use super::SERVICE;
use crate::outcome::format_us;

/// Players that a connection's settlements go round, so that no two of one player meet.
const PLAYERS: u64 = 2_000;
/// Events of one player in a game: immediate, final, and a copy of the final.
const EVENTS_OF_A_GAME: u64 = 3;

/// The parts of an event that stay the same.
pub(super) struct Pieces {
    pub(super) index: u64,
    source: String,
    boot: String,
    session: String,
}

impl Pieces {
    pub(super) fn new(index: u64, started_us: i64) -> Self {
        Self {
            index,
            source: format!("load-{index}"),
            boot: format_us(started_us),
            session: format!("load-{started_us}"),
        }
    }

    /// The source and its run.
    pub(super) fn name(&self) -> (&str, &str) {
        (&self.source, &self.boot)
    }

    /// The events of this range, counted from 0, as a JSON array. All have one stamp: their order
    /// is that of their numbers.
    pub(super) fn batch(&self, range: std::ops::Range<u64>, now_us: i64) -> String {
        let head = format!(
            concat!(
                r#"{{"service":"{}","env":"prod","source":"{}","boot":"{}","occurred_at":"{}","#,
                r#""guard":"signature_window","guard_mode":"local","check_us":12,"#,
                r#""response_us":1800"#
            ),
            SERVICE,
            self.source,
            self.boot,
            format_us(now_us),
        );
        let mut body = String::from("[");
        for number in range {
            if body.len() > 1 {
                body.push(',');
            }
            body.push_str(&head);
            // Writing to a string does not fail.
            let _ = self.write_event(&mut body, number);
        }
        body.push(']');
        body
    }

    fn write_event(&self, body: &mut String, number: u64) -> std::fmt::Result {
        let (player, turn) = (number % PLAYERS, number / PLAYERS);
        let (game, step) = (turn / EVENTS_OF_A_GAME, turn % EVENTS_OF_A_GAME);
        let accepted = game * 2 + step.min(1) + 1;
        let (seq, len) = (number + 1, accepted.min(4));
        write!(body, r#","seq":{seq},"player":"p-{}-{player}","signature":"#, self.index)?;
        self.write_signature(body, player, game, step)?;
        let outcome = if step == 2 { "replay_blocked" } else { "processed" };
        write!(body, r#","outcome":"{outcome}","window":{{"len":{len},"cap":4}}"#)?;
        if step < 2 && game >= 2 {
            body.push_str(r#","evicted":["#);
            self.write_signature(body, player, game - 2, step)?;
            body.push(']');
        }
        write!(body, r#","trace_id":"{:016x}{seq:016x}"}}"#, self.index)
    }

    fn write_signature(
        &self,
        body: &mut String,
        player: u64,
        game: u64,
        step: u64,
    ) -> std::fmt::Result {
        let (session, room) = (&self.session, player % 100);
        let (net, last) = if step == 0 { ("-250", "false") } else { ("400", "true") };
        write!(
            body,
            concat!(r#"{{"session":"{}","room":"r-{}","round":"{}","net":"{}","final":{}}}"#),
            session, room, game, net, last
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::guard::{SignatureWindow, Verdict};
    use crate::outcome::{Event, Outcome};

    #[test]
    fn the_events_are_those_of_a_real_guard() {
        let pieces = Pieces::new(3, 1_800_000_000_000_000);
        let count = PLAYERS * EVENTS_OF_A_GAME * 4;
        let text = pieces.batch(0..count, 1_800_000_000_000_001);
        let events: Vec<Event> = serde_json::from_str(&text).unwrap();
        assert_eq!(events.len() as u64, count);
        let mut windows: BTreeMap<_, SignatureWindow> = BTreeMap::new();
        for (seq, event) in (1..).zip(events) {
            assert_eq!(event.seq, Some(seq));
            let window = windows.entry(event.player.clone()).or_default();
            let decision = window.check(&event.signature);
            assert_eq!(Outcome::from(decision.verdict), event.outcome);
            assert_eq!(Some(decision.window), event.window);
            assert_eq!(decision.evicted, event.evicted);
            assert_ne!(decision.verdict, Verdict::LateAccepted);
        }
    }

    #[test]
    fn batches_go_on_where_the_last_one_ended() {
        let pieces = Pieces::new(0, 0);
        let seqs = |range| {
            let events: Vec<Event> = serde_json::from_str(&pieces.batch(range, 1)).unwrap();
            events.iter().filter_map(|event| event.seq).collect::<Vec<_>>()
        };
        assert_eq!(seqs(0..3), [1, 2, 3]);
        assert_eq!(seqs(3..5), [4, 5]);
        assert_eq!(seqs(5..5), [] as [u64; 0]);
    }
}
