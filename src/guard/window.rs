//! The signature window: the last few settlements of one player, first in, first out.
//!
//! # Why four
//!
//! A game is settled twice: at once when the player is done with it (immediate), and when the
//! room closes it (final). A player stands between at most two games: the room just left, whose
//! final is still on its way, and the room just entered. 2 settlements x 2 games = 4. With 3 the
//! fourth settlement pushes out the protection of the first, while its game is still live.
//!
//! This holds as long as the final of a game comes before the game after next begins, and is
//! then just enough: a final that comes after the next game's own immediate settlement takes a
//! place between live ones. If the two games after it are settled in time again, five would be
//! needed. The audit measures that (`live_eviction`) rather than believing it.
//!
//! # Why it is never cleared
//!
//! A window that is cleared, by a restart, by leaving a room or by time, accepts the next replay.
//! A block does not refresh a signature either: a storm of replays of one settlement would keep
//! it in and so push out the others sooner than they were promised.

use std::collections::VecDeque;
use std::num::NonZeroUsize;

use crate::outcome::{Game, Outcome, Signature, Window, WindowScope};

/// The guard's memory of one player.
///
/// ```
/// use dedupwatch::guard::{SignatureWindow, Verdict};
/// use dedupwatch::outcome::{Game, Id, Net, Signature};
///
/// # fn main() -> Result<(), dedupwatch::outcome::IdError> {
/// let game = Game { session: None, room: Id::parse("r-77")?, round: Id::parse("12")? };
/// let bet = Signature::Settlement { game, net: Net(-250), last: false };
///
/// let mut window = SignatureWindow::default();
/// assert_eq!(window.check(&bet).verdict, Verdict::Processed); // move the money
/// assert_eq!(window.check(&bet).verdict, Verdict::ReplayBlocked); // and never twice
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SignatureWindow {
    capacity: NonZeroUsize,
    /// Oldest first.
    remembered: VecDeque<Signature>,
    /// The game of the newest settlement that came in turn; it may be out of the window already.
    newest: Option<Game>,
}

/// What to do with one delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// New, in turn: move the money.
    Processed,
    /// New, but of an older game than the player's newest: move the money, late must be made
    /// good.
    LateAccepted,
    /// Seen before: move nothing.
    ReplayBlocked,
}

impl Verdict {
    /// Whether the money is to be moved.
    pub fn accepts(self) -> bool {
        self != Self::ReplayBlocked
    }
}

impl From<Verdict> for Outcome {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Processed => Self::Processed,
            Verdict::LateAccepted => Self::LateAccepted,
            Verdict::ReplayBlocked => Self::ReplayBlocked,
        }
    }
}

/// The answer to one delivery, with all that an outcome has to report of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What to do.
    pub verdict: Verdict,
    /// What fell out by it, oldest first: none or one, more only after the capacity was lowered.
    pub evicted: Vec<Signature>,
    /// The window after it.
    pub window: Window,
}

impl Default for SignatureWindow {
    /// A window of [`SignatureWindow::CAPACITY`].
    fn default() -> Self {
        Self::with_capacity(Self::CAPACITY)
    }
}

impl SignatureWindow {
    /// 2 settlements per game x 2 adjacent games; see the module's text.
    pub const CAPACITY: NonZeroUsize = NonZeroUsize::MIN.saturating_add(3);

    /// An empty window that remembers this many signatures.
    pub fn with_capacity(capacity: NonZeroUsize) -> Self {
        Self { capacity, remembered: VecDeque::with_capacity(capacity.get()), newest: None }
    }

    /// Decides one delivery, and remembers it if it is new.
    ///
    /// To be called under the lock of the player's wallet. If the money then can't be moved, the
    /// signature stays remembered: report the outcome with effect `failed`, and retry the booking
    /// itself rather than the delivery.
    pub fn check(&mut self, signature: &Signature) -> Decision {
        if self.remembers(signature) {
            return self.decision(Verdict::ReplayBlocked, Vec::new());
        }
        let verdict =
            if self.is_late(signature) { Verdict::LateAccepted } else { Verdict::Processed };
        if verdict == Verdict::Processed
            && let Some(game) = signature.game()
        {
            self.newest = Some(game.clone());
        }
        let keep = self.capacity.get() - 1;
        let surplus = self.remembered.len().saturating_sub(keep);
        let evicted = self.remembered.drain(..surplus).collect();
        self.remembered.push_back(signature.clone());
        self.decision(verdict, evicted)
    }

    /// Whether a delivery of it would be blocked.
    pub fn remembers(&self, signature: &Signature) -> bool {
        self.remembered.iter().any(|known| same(known, signature))
    }

    /// Changes how much it remembers from the next acceptance on, which also reports what falls
    /// out by it: an eviction that no acceptance accounts for looks like a lost memory.
    pub fn set_capacity(&mut self, capacity: NonZeroUsize) {
        self.capacity = capacity;
    }

    /// Signatures remembered, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Signature> {
        self.remembered.iter()
    }

    /// Signatures remembered.
    pub fn len(&self) -> usize {
        self.remembered.len()
    }

    /// Whether nothing is remembered yet.
    pub fn is_empty(&self) -> bool {
        self.remembered.is_empty()
    }

    /// Most that it can remember.
    pub fn capacity(&self) -> NonZeroUsize {
        self.capacity
    }

    /// Late: its game was settled before, and another has begun since. What is remembered shows
    /// that; where it has been forgotten, a lower round of the newest game's own room does.
    fn is_late(&self, signature: &Signature) -> bool {
        let (Some(game), Some(newest)) = (signature.game(), &self.newest) else { return false };
        game != newest
            && (self.remembered.iter().any(|known| known.game() == Some(game))
                || is_earlier_round(game, newest))
    }

    fn decision(&self, verdict: Verdict, evicted: Vec<Signature>) -> Decision {
        let window = Window {
            len: self.remembered.len() as u64,
            cap: self.capacity.get() as u64,
            scope: WindowScope::Player,
        };
        Decision { verdict, evicted, window }
    }
}

/// Whether both are one settlement. The amount of an opaque key is no part of its identity.
fn same(one: &Signature, other: &Signature) -> bool {
    match (one, other) {
        (Signature::Opaque { key, .. }, Signature::Opaque { key: other, .. }) => key == other,
        _ => one == other,
    }
}

/// Rounds are numbers where they can be read as such; others have no order.
fn is_earlier_round(game: &Game, than: &Game) -> bool {
    let number = |game: &Game| game.round.as_str().parse::<u64>().ok();
    game.session == than.session
        && game.room == than.room
        && number(game).zip(number(than)).is_some_and(|(round, than)| round < than)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::outcome::{Id, Net};

    fn settlement(room: &str, round: u32, net: i64, last: bool) -> Signature {
        let room = Id::parse(room).unwrap();
        let round = Id::parse(&round.to_string()).unwrap();
        Signature::Settlement { game: Game { session: None, room, round }, net: Net(net), last }
    }

    fn immediate(round: u32) -> Signature {
        settlement("a", round, 10, false)
    }

    fn last(round: u32) -> Signature {
        settlement("a", round, 20, true)
    }

    fn key(text: &str, net: i64) -> Signature {
        Signature::Opaque { key: Id::parse(text).unwrap(), net: Net(net) }
    }

    fn window_of(capacity: usize) -> SignatureWindow {
        SignatureWindow::with_capacity(NonZeroUsize::new(capacity).unwrap())
    }

    #[test]
    fn two_games_of_two_settlements_fit() {
        let mut window = SignatureWindow::default();
        let live = [immediate(1), last(1), immediate(2), last(2)];
        for (before, signature) in live.iter().enumerate() {
            let decision = window.check(signature);
            assert_eq!(decision.verdict, Verdict::Processed);
            assert_eq!(decision.evicted, []);
            assert_eq!(decision.window.len, before as u64 + 1);
            assert_eq!(decision.window.cap, 4);
        }
        for signature in &live {
            assert_eq!(window.check(signature).verdict, Verdict::ReplayBlocked);
        }
    }

    #[test]
    fn a_window_of_three_lets_go_of_a_live_settlement() {
        let mut window = window_of(3);
        for signature in [immediate(1), last(1), immediate(2)] {
            window.check(&signature);
        }
        assert_eq!(window.check(&last(2)).evicted, [immediate(1)]);
        assert!(window.check(&immediate(1)).verdict.accepts(), "the replay gets through");
    }

    #[test]
    fn each_part_of_a_signature_tells_settlements_apart() {
        let mut window = window_of(8);
        for signature in [
            settlement("a", 1, 10, false),
            settlement("b", 1, 10, false),
            settlement("a", 2, 10, false),
            settlement("a", 1, 11, false),
            settlement("a", 1, 10, true),
            settlement("A", 1, 10, false),
        ] {
            assert!(window.check(&signature).verdict.accepts(), "{signature:?}");
        }
    }

    #[test]
    fn the_amount_of_an_opaque_key_is_no_part_of_it() {
        let mut window = SignatureWindow::default();
        assert_eq!(window.check(&key("k", 5)).verdict, Verdict::Processed);
        assert_eq!(window.check(&key("k", 6)).verdict, Verdict::ReplayBlocked);
        assert_eq!(window.check(&key("other", 5)).verdict, Verdict::Processed);
    }

    #[test]
    fn a_block_does_not_refresh() {
        let mut window = window_of(2);
        window.check(&immediate(1));
        window.check(&last(1));
        window.check(&immediate(1));
        assert_eq!(window.check(&immediate(2)).evicted, [immediate(1)]);
    }

    #[test]
    fn the_final_of_the_room_just_left_is_late() {
        let mut window = SignatureWindow::default();
        window.check(&settlement("a", 7, 10, false));
        window.check(&settlement("b", 1, 10, false));
        let late = window.check(&settlement("a", 7, 20, true));
        assert_eq!(late.verdict, Verdict::LateAccepted);
        let in_turn = window.check(&settlement("b", 1, 20, true));
        assert_eq!(in_turn.verdict, Verdict::Processed, "a late one does not become the newest");
    }

    #[test]
    fn a_forgotten_game_is_late_by_its_round() {
        let mut window = window_of(1);
        window.check(&immediate(1));
        window.check(&immediate(2));
        assert_eq!(window.check(&last(1)).verdict, Verdict::LateAccepted);
        let elsewhere = window.check(&settlement("b", 1, 20, true));
        assert_eq!(elsewhere.verdict, Verdict::Processed, "rooms have no order");
    }

    #[test]
    fn rounds_that_are_no_numbers_have_no_order() {
        let game = |round: &str| Game {
            session: None,
            room: Id::parse("a").unwrap(),
            round: Id::parse(round).unwrap(),
        };
        assert!(is_earlier_round(&game("9"), &game("10")));
        assert!(!is_earlier_round(&game("noon"), &game("one")));
        assert!(!is_earlier_round(&game("1"), &game("one")));
    }

    #[test]
    fn a_lower_capacity_is_told_by_the_next_acceptance() {
        let mut window = SignatureWindow::default();
        for signature in [immediate(1), last(1), immediate(2), last(2)] {
            window.check(&signature);
        }
        window.set_capacity(NonZeroUsize::new(3).unwrap());
        let blocked = window.check(&immediate(1));
        assert_eq!((blocked.evicted, blocked.window.len, blocked.window.cap), (vec![], 4, 3));
        let accepted = window.check(&immediate(3));
        assert_eq!(accepted.evicted, [immediate(1), last(1)]);
        assert_eq!(accepted.window.len, 3);
    }

    #[test]
    fn a_copy_is_the_memory_that_survives_a_restart() {
        let mut window = SignatureWindow::default();
        window.check(&immediate(1));
        let mut restored = window.clone();
        assert_eq!(restored.check(&immediate(1)).verdict, Verdict::ReplayBlocked);
    }

    fn any_signature() -> impl Strategy<Value = Signature> {
        (0..2u8, 0..4u32, -1..2i64, any::<bool>()).prop_map(|(room, round, net, last)| {
            settlement(if room == 0 { "a" } else { "b" }, round, net, last)
        })
    }

    proptest! {
        /// The definition, written the other way round: blocked if and only if it is among the
        /// last `capacity` acceptances; each acceptance beyond pushes out the oldest.
        #[test]
        fn it_blocks_the_last_acceptances_and_nothing_else(
            capacity in 1..6usize,
            deliveries in prop::collection::vec(any_signature(), 0..60),
        ) {
            let mut window = window_of(capacity);
            let mut accepted: Vec<Signature> = Vec::new();
            for signature in &deliveries {
                let from = accepted.len().saturating_sub(capacity);
                let known = accepted[from..].contains(signature);
                let decision = window.check(signature);
                prop_assert_eq!(decision.verdict.accepts(), !known);
                if known {
                    prop_assert_eq!(&decision.evicted, &[]);
                } else {
                    let oldest = accepted.len().checked_sub(capacity).map(|at| &accepted[at]);
                    prop_assert_eq!(decision.evicted.first(), oldest);
                    prop_assert!(decision.evicted.len() <= 1);
                    accepted.push(signature.clone());
                }
                let len = accepted.len().min(capacity);
                prop_assert_eq!(decision.window.len, len as u64);
                prop_assert_eq!(window.len(), len);
                prop_assert!(window.iter().eq(&accepted[accepted.len() - len..]));
            }
        }

        /// Late is never said of the first game, nor twice in a row about what is newest.
        #[test]
        fn what_is_late_has_a_newer_game(
            deliveries in prop::collection::vec(any_signature(), 0..60),
        ) {
            let mut window = SignatureWindow::default();
            let mut newest: Option<Game> = None;
            for signature in &deliveries {
                let game = signature.game().cloned();
                match window.check(signature).verdict {
                    Verdict::Processed => newest = game,
                    Verdict::LateAccepted => {
                        prop_assert!(newest.is_some() && game != newest);
                    }
                    Verdict::ReplayBlocked => {}
                }
            }
        }

        /// A healthy player: each final before the next game settles. No live one is pushed out.
        #[test]
        fn four_are_enough_for_punctual_finals(games in 1..30u32, replays in any::<u64>()) {
            let mut window = SignatureWindow::default();
            for round in 0..games {
                for signature in [immediate(round), last(round)] {
                    let evicted = window.check(&signature).evicted;
                    let live = [immediate(round), last(round)].into_iter().chain(
                        round.checked_sub(1).into_iter().flat_map(|r| [immediate(r), last(r)]),
                    );
                    for live in live {
                        prop_assert!(!evicted.contains(&live));
                    }
                    if (replays >> (round % 64)) & 1 == 1 {
                        prop_assert_eq!(window.check(&signature).verdict, Verdict::ReplayBlocked);
                    }
                }
            }
        }
    }
}
