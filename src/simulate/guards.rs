//! The guards: a real [`SignatureWindow`] for each player, and what a mistake makes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use super::fault::FaultKind;
use super::world::Delivery;
use crate::guard::{Decision, SignatureWindow, Verdict};
use crate::outcome::{GuardMode, Outcome, Reason, Signature, Window, WindowScope};

/// The capacity of the fault `window-of-3`.
const CAPACITY_OF_3: NonZeroUsize = NonZeroUsize::MIN.saturating_add(2);
/// The capacity of the fault `lower-capacity`.
const CAPACITY_LOWERED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1);

/// The faults that a delivery meets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Met(u32);

impl Met {
    pub(super) fn add(&mut self, kind: FaultKind) {
        self.0 |= 1 << kind as u32;
    }

    pub(super) fn has(self, kind: FaultKind) -> bool {
        self.0 & (1 << kind as u32) != 0
    }

    fn capacity(self) -> NonZeroUsize {
        if self.has(FaultKind::LowerCapacity) {
            CAPACITY_LOWERED
        } else if self.has(FaultKind::WindowOf3) {
            CAPACITY_OF_3
        } else {
            SignatureWindow::CAPACITY
        }
    }
}

/// What a guard says of a delivery.
pub(super) struct Said {
    pub(super) outcome: Outcome,
    pub(super) reason: Option<Reason>,
    pub(super) guard: &'static str,
    pub(super) mode: GuardMode,
    /// None where it is off, or has no window.
    pub(super) window: Option<Window>,
    pub(super) evicted: Vec<Signature>,
    /// The length of the window before it.
    pub(super) before: u64,
}

/// The memory of one source.
#[derive(Default)]
pub(super) struct Memory {
    windows: BTreeMap<usize, SignatureWindow>,
    /// Of players whose guard goes by the ref: what was booked.
    booked: BTreeMap<usize, BTreeSet<(Signature, u128)>>,
    /// The newest round of anybody.
    counter: u64,
}

impl Memory {
    /// By the ref: each is booked once, and nothing is ever forgotten.
    pub(super) fn check_ref(&mut self, delivery: &Delivery) -> Said {
        let booked = self.booked.entry(delivery.player).or_default();
        let is_new = booked.insert((delivery.signature.clone(), delivery.trace));
        let outcome = if is_new { Outcome::Processed } else { Outcome::ReplayBlocked };
        Said {
            outcome,
            reason: (!is_new).then_some(Reason::Replay),
            guard: "ref_set",
            mode: GuardMode::Local,
            window: None,
            evicted: Vec::new(),
            before: 0,
        }
    }

    /// By the window, with the mistakes that the delivery meets.
    pub(super) fn check(&mut self, delivery: &Delivery, met: Met) -> Said {
        let window = self.windows.entry(delivery.player).or_default();
        window.set_capacity(met.capacity());
        let before = window.len() as u64;
        let signature = &delivery.signature;
        if met.has(FaultKind::GuardOff) {
            let off = said(Outcome::Processed, None, window);
            return Said { mode: GuardMode::Off, window: None, ..off };
        }
        if met.has(FaultKind::OneCounter) {
            let round = round(signature);
            if round < self.counter {
                return said(Outcome::ReplayBlocked, Some(Reason::Replay), window);
            }
            self.counter = round;
        }
        if met.has(FaultKind::OrderMark)
            && window.clone().check(signature).verdict == Verdict::LateAccepted
        {
            return said(Outcome::ReplayBlocked, Some(Reason::Stale), window);
        }
        let Decision { verdict, evicted, .. } = window.check(signature);
        let is_block = verdict == Verdict::ReplayBlocked;
        if is_block && met.has(FaultKind::RefreshOnBlock) {
            let others = window.iter().filter(|held| *held != signature);
            let order: Vec<_> = others.chain([signature]).cloned().collect();
            *window = remembering(window.capacity(), &order);
        }
        let reason = is_block.then_some(Reason::Replay);
        Said { evicted, before, ..said(verdict.into(), reason, window) }
    }

    /// What a guard says that can't decide: it remembers nothing of it.
    pub(super) fn unsure(&mut self, delivery: &Delivery, reason: Option<Reason>, met: Met) -> Said {
        let window = self.windows.entry(delivery.player).or_default();
        window.set_capacity(met.capacity());
        said(Outcome::Unknown, reason, window)
    }

    /// A booking was taken back, and its place with it.
    pub(super) fn give_back(&mut self, delivery: &Delivery) {
        if let Some(window) = self.windows.get_mut(&delivery.player) {
            let others: Vec<_> =
                window.iter().filter(|held| **held != delivery.signature).cloned().collect();
            *window = remembering(window.capacity(), &others);
        }
    }

    /// A restart that loses the windows of these players.
    pub(super) fn forget(&mut self, is_hit: impl Fn(usize) -> bool) {
        self.windows.retain(|player, _| !is_hit(*player));
    }

    /// A restart with another capacity: what does not fit is not read back.
    pub(super) fn cut(&mut self, is_hit: impl Fn(usize) -> bool) {
        for (_, window) in self.windows.iter_mut().filter(|(player, _)| is_hit(**player)) {
            let surplus = window.len().saturating_sub(CAPACITY_LOWERED.get());
            let newest: Vec<_> = window.iter().skip(surplus).cloned().collect();
            *window = remembering(CAPACITY_LOWERED, &newest);
        }
    }
}

fn said(outcome: Outcome, reason: Option<Reason>, window: &SignatureWindow) -> Said {
    let len = window.len() as u64;
    let cap = window.capacity().get() as u64;
    Said {
        outcome,
        reason,
        guard: "signature_window",
        mode: GuardMode::Local,
        window: Some(Window { len, cap, scope: WindowScope::Player }),
        evicted: Vec::new(),
        before: len,
    }
}

/// A window that holds these, oldest first.
fn remembering(capacity: NonZeroUsize, signatures: &[Signature]) -> SignatureWindow {
    let mut window = SignatureWindow::with_capacity(capacity);
    for signature in signatures {
        window.check(signature);
    }
    window
}

fn round(signature: &Signature) -> u64 {
    signature.game().and_then(|game| game.round.as_str().parse().ok()).unwrap_or(0)
}
