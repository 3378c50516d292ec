//! Small simulations for the tests here.

use super::{Step, Stream, StreamSettings};

/// Five minutes of 12 players a service.
pub(super) fn settings(seed: u64, faults: &[&str]) -> StreamSettings {
    StreamSettings {
        seed,
        start_us: 1_800_000_000_000_000,
        length_us: 300_000_000,
        players: 12,
        tag: None,
        faults: faults.iter().map(|fault| fault.parse().unwrap()).collect(),
    }
}

/// All steps of a simulation.
pub(super) fn steps(settings: &StreamSettings) -> Vec<Step> {
    let mut stream = Stream::new(settings.clone()).unwrap();
    std::iter::from_fn(|| stream.next_step().unwrap()).collect()
}
