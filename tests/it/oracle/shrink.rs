//! The smallest stream that still shows a difference.

use std::cell::Cell;

use dedupwatch::outcome::{Boot, Event, Outcome, SourceName};

use super::stream::{Entry, Said, Stream};

/// So often it is tried.
const TRIES_MAX: u32 = 2_000;

/// Takes away what is not needed: entries first, then fields.
pub fn smallest(mut stream: Stream, shows: &impl Fn(&Stream) -> bool) -> Stream {
    let tries = Cell::new(0);
    let shows = |stream: &Stream| {
        tries.set(tries.get() + 1);
        tries.get() <= TRIES_MAX && shows(stream)
    };
    loop {
        let before = (stream.len(), fields(&stream));
        stream = fewer(stream, &shows);
        stream = plainer(stream, &shows);
        if (stream.len(), fields(&stream)) == before {
            return stream;
        }
    }
}

fn fewer(mut stream: Stream, shows: &impl Fn(&Stream) -> bool) -> Stream {
    let mut size = stream.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        while at < stream.len() {
            let mut without = stream.clone();
            let gone: Stream = without.drain(at..(at + size).min(stream.len())).collect();
            let mut renumbered = without.clone();
            gone.iter().rev().for_each(|entry| close_up(&mut renumbered, entry));
            if shows(&renumbered) {
                stream = renumbered;
            } else if shows(&without) {
                stream = without;
            } else {
                at += size;
            }
        }
        if size == 1 {
            return stream;
        }
        size = size.div_ceil(2);
    }
}

/// Counts as if an event had never been.
fn close_up(stream: &mut Stream, gone: &Entry) {
    let Said::Event(gone) = &gone.said else { return };
    let Some((boot, seq)) = gone.sequence() else { return };
    let of_run = |from: &SourceName, other: Boot| *from == gone.from && other == boot;
    let down = |n: &mut u64| *n -= u64::from(*n > seq);
    for entry in stream {
        match &mut entry.said {
            Said::Event(event) if event.boot.is_some_and(|boot| of_run(&event.from, boot)) => {
                event.seq.as_mut().map(down);
            }
            Said::Heartbeat(heartbeat) if of_run(&heartbeat.from, heartbeat.boot) => {
                heartbeat.last_seq -= u64::from(heartbeat.last_seq >= seq);
            }
            Said::Bad(from, boot, other) if of_run(from, *boot) => down(other),
            _ => {}
        }
    }
}

/// Ways to make an event say less.
const PLAINER: [fn(&mut Event); 11] = [
    |event| event.window = None,
    |event| event.evicted.clear(),
    |event| event.guard_mode = None,
    |event| event.reason = None,
    |event| event.reference = None,
    |event| event.reversal_of = None,
    |event| event.effect = event.effect.filter(|_| event.outcome == Outcome::EffectReported),
    |event| event.message_id = None,
    |event| event.booked_room = None,
    |event| event.state_hash = None,
    |event| event.state_version = None,
];

fn plainer(mut stream: Stream, shows: &impl Fn(&Stream) -> bool) -> Stream {
    for at in 0..stream.len() {
        for plain in PLAINER {
            let mut other = stream.clone();
            if let Said::Event(event) = &mut other[at].said {
                plain(event);
            }
            if shows(&other) {
                stream = other;
            }
        }
    }
    stream
}

fn fields(stream: &Stream) -> usize {
    let texts = stream.iter().map(|entry| match &entry.said {
        Said::Event(event) => serde_json::to_string(event).unwrap().len(),
        _ => 0,
    });
    texts.sum()
}
