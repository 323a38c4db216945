//! Random numbers, for unique ids and for waits that differ between writers.

use std::sync::{Mutex, PoisonError};

use uuid::Uuid;

/// A source of random numbers: the operating system, or a seed that makes a test repeatable.
#[derive(Debug, Default)]
pub struct RandomSource(Option<Mutex<u64>>);

impl RandomSource {
    /// Creates a source whose numbers depend on `seed` alone.
    pub fn seeded(seed: u64) -> Self {
        Self(Some(Mutex::new(seed)))
    }

    /// Returns 64 random bits.
    pub fn random_number(&self) -> u64 {
        let Some(state) = &self.0 else {
            let (high, low) = (Uuid::new_v4().as_u128(), Uuid::new_v4().as_u128());
            // A version 4 UUID has fixed bits, but none among its last 48.
            let bits = (high << 16) ^ (low & 0xffff_ffff);
            return (bits & u128::from(u64::MAX)) as u64;
        };
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Creates an independent source; its seed comes from this source if this one has a seed.
    pub fn fork_source(&self) -> Self {
        if self.0.is_some() { Self::seeded(self.random_number()) } else { Self::default() }
    }

    /// Returns an id of 96 random bits as 24 hex digits.
    pub fn random_id(&self) -> String {
        let (high, low) = (self.random_number(), self.random_number());
        format!("{high:016x}{:08x}", low >> 32)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::RandomSource;

    #[test]
    fn ids_differ_and_a_seed_gives_the_same_ones() {
        let system = RandomSource::default();
        let ids: HashSet<String> = (0..1000).map(|_| system.random_id()).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(|id| id.len() == 24));
        assert_eq!(RandomSource::seeded(7).random_id(), RandomSource::seeded(7).random_id());
        assert_ne!(RandomSource::seeded(7).random_id(), RandomSource::seeded(8).random_id());
    }

    #[test]
    fn every_bit_comes_both_ways() {
        let system = RandomSource::default();
        let (mut any, mut all) = (0, u64::MAX);
        for _ in 0..200 {
            let number = system.random_number();
            any |= number;
            all &= number;
        }
        assert_eq!((any, all), (u64::MAX, 0));
    }
}
