//! Sets of columns, by position.

/// The maximum number of columns that rows share: a position fits one byte.
pub const MAX_COLUMNS: usize = 255;

/// A set of positions below 256, one bit each.
///
/// ```
/// use entable_core::row::ColumnSet;
///
/// let set = ColumnSet::default().with(1).with(70);
/// assert_eq!((set.len(), set.contains(70), set.contains(0)), (2, true, false));
/// assert_eq!(set.iter().collect::<Vec<_>>(), [1, 70]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ColumnSet([u64; 4]);

impl ColumnSet {
    /// Returns the set of the first `count` positions.
    pub fn first(count: usize) -> Self {
        (0..count).fold(Self::default(), |set, position| set.with(position))
    }

    /// Reads the set from its bits: the lowest bit of the first byte is position 0.
    #[inline]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut set = Self::default();
        for (word, bytes) in set.0.iter_mut().zip(bytes.chunks(8)) {
            // Not copied into an array: most sets have one or two bytes, and a call would take longer.
            *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        }
        set
    }

    /// Returns the bits of the set, as [`from_bytes`](Self::from_bytes) reads them.
    ///
    /// ```
    /// # use entable_core::row::ColumnSet;
    /// assert_eq!(ColumnSet::default().with(9).to_bytes()[..3], [0, 0b10, 0]);
    /// ```
    #[inline]
    pub fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (to, word) in bytes.chunks_mut(8).zip(self.0) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Returns the set with `position`, too. Positions from 256 are ignored.
    #[must_use]
    pub fn with(mut self, position: usize) -> Self {
        if let Some(word) = self.0.get_mut(position / 64) {
            *word |= 1 << (position % 64);
        }
        self
    }

    /// Returns the set without `position`, or `None` if `position` is not in it.
    pub fn without(mut self, position: usize) -> Option<Self> {
        let word = self.0.get_mut(position / 64)?;
        let bit = 1 << (position % 64);
        (*word & bit != 0).then_some(())?;
        *word &= !bit;
        Some(self)
    }

    /// Returns whether `position` is in the set.
    #[inline]
    pub fn contains(self, position: usize) -> bool {
        self.0.get(position / 64).is_some_and(|word| word >> (position % 64) & 1 == 1)
    }

    /// Returns the positions in the set, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self;
        std::iter::from_fn(move || {
            let position = left.first_position()?;
            left = left.without(position)?;
            Some(position)
        })
    }

    /// Returns the positions that both sets contain.
    #[must_use]
    #[inline]
    pub fn intersection(self, other: Self) -> Self {
        let mut both = self;
        both.0.iter_mut().zip(other.0).for_each(|(word, other)| *word &= other);
        both
    }

    /// Returns whether the other set has all positions of this one.
    #[inline]
    pub fn is_subset_of(self, other: Self) -> bool {
        self.intersection(other) == self
    }

    /// Returns the first position, or `None` if the set is empty.
    #[inline]
    pub fn first_position(self) -> Option<usize> {
        let mut words = self.0.iter().enumerate();
        let (at, word) = words.find(|(_, word)| **word != 0)?;
        Some(64 * at + word.trailing_zeros() as usize)
    }

    /// Returns whether no position is in the set.
    #[inline]
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Returns the number of positions in the set.
    pub fn len(self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_comes_back_from_its_bytes() {
        for count in [0, 1, 7, 8, 9, 63, 64, 65, 200, MAX_COLUMNS] {
            let set = (0..count).filter(|at| at % 3 == 1 || *at + 1 == count);
            let set = set.fold(ColumnSet::default(), ColumnSet::with);
            let bytes = set.to_bytes();
            let (bytes, unused) = bytes.split_at(count.div_ceil(8));
            assert_eq!((ColumnSet::from_bytes(bytes), unused.iter().max()), (set, unused.first()));
            assert!(set.is_subset_of(ColumnSet::first(count)));
            let positions: Vec<_> = (0..256).filter(|at| set.contains(*at)).collect();
            assert_eq!((set.iter().collect(), set.len()), (positions.clone(), positions.len()));
        }
    }
}
