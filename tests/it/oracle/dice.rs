//! A seeded stream of choices.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;

/// Choices that are the same for the same seed.
pub struct Dice(ChaCha12Rng);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(ChaCha12Rng::seed_from_u64(seed))
    }

    /// From 0 to `n - 1`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0.random_range(0..n)
    }

    /// From `first` to `last`.
    pub fn between(&mut self, first: i64, last: i64) -> i64 {
        self.0.random_range(first..=last)
    }

    /// In so many of 100 cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.index(of.len())]
    }

    pub fn index(&mut self, len: usize) -> usize {
        self.0.random_range(0..len)
    }
}
