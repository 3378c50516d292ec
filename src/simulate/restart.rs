//! When sources restart, and what that costs them.

use super::fault::FaultKind;
use super::source::{Source, first_source};
use super::stream::StreamSettings;

/// How long a source is away when it restarts.
const RESTART_US: i64 = 1_000_000;

/// One restart of a source.
#[derive(Clone, Copy)]
pub(super) struct Restart {
    pub(super) down_us: i64,
    pub(super) source: usize,
    pub(super) goodbye: bool,
    pub(super) loss: Loss,
}

/// What a restart loses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    None,
    /// The windows of those who are hit.
    All,
    /// What does not fit the lower capacity.
    Surplus,
}

impl Restart {
    pub(super) fn up_us(self) -> i64 {
        self.down_us + RESTART_US
    }
}

/// All restarts that the faults bring, latest first.
pub(super) fn restarts(settings: &StreamSettings, sources: &[Source]) -> Vec<Restart> {
    let mut restarts = Vec::new();
    for fault in &settings.faults {
        let source = first_source(sources, fault.service);
        let start_us = settings.start_us + fault.start_us;
        let end_us = start_us + fault.length_us;
        let down = |down_us| Restart { down_us, source, goodbye: true, loss: Loss::None };
        match fault.kind {
            FaultKind::RestartEmpty => {
                let mut down_us = start_us;
                while down_us < end_us {
                    restarts.push(Restart { loss: Loss::All, ..down(down_us) });
                    down_us += FaultKind::RESTART_EVERY_US;
                }
            }
            FaultKind::Crash => restarts.push(Restart { goodbye: false, ..down(end_us) }),
            FaultKind::LowerCapacity => {
                let of_service = |(_, source): &(usize, &Source)| source.service == fault.service;
                for (source, _) in sources.iter().enumerate().filter(of_service) {
                    for down_us in [start_us, end_us] {
                        restarts.push(Restart { source, loss: Loss::Surplus, ..down(down_us) });
                    }
                }
            }
            _ => {}
        }
    }
    restarts.sort_by_key(|restart| std::cmp::Reverse(restart.down_us));
    restarts
}
