//! A set of columns of a layout, by position.

/// The maximum number of columns in a layout: a position fits one byte.
pub(crate) const MAX_COLUMNS: usize = 255;

/// A set of positions below 256, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ColumnSet([u64; 4]);

impl ColumnSet {
    /// Returns the set of the first `count` positions.
    pub(crate) fn first(count: usize) -> Self {
        (0..count).fold(Self::default(), |set, position| set.with(position))
    }

    /// Reads the set from its bits: the lowest bit of the first byte is position 0.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let mut words = [0; 4];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks(8)) {
            let mut all = [0; 8];
            all.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            *word = u64::from_le_bytes(all);
        }
        Self(words)
    }

    /// Appends the bits of the first `count` positions in whole bytes.
    pub(crate) fn put_bytes(self, count: usize, out: &mut Vec<u8>) {
        out.extend(self.0.iter().flat_map(|word| word.to_le_bytes()).take(count.div_ceil(8)));
    }

    #[must_use]
    pub(crate) fn with(mut self, position: usize) -> Self {
        if let Some(word) = self.0.get_mut(position / 64) {
            *word |= 1 << (position % 64);
        }
        self
    }

    /// Returns the set without `position`, or `None` if `position` is not in it.
    pub(crate) fn without(mut self, position: usize) -> Option<Self> {
        let word = self.0.get_mut(position / 64)?;
        let bit = 1 << (position % 64);
        (*word & bit != 0).then_some(())?;
        *word &= !bit;
        Some(self)
    }

    #[inline]
    pub(crate) fn contains(self, position: usize) -> bool {
        self.0.get(position / 64).is_some_and(|word| word >> (position % 64) & 1 == 1)
    }

    /// Returns the positions in the set, in ascending order.
    pub(crate) const fn iter(self) -> Positions {
        Positions { words: self.0, at: 0 }
    }

    /// Returns the positions that both sets contain.
    #[must_use]
    pub(crate) fn intersection(self, other: Self) -> Self {
        let mut both = self;
        both.0.iter_mut().zip(other.0).for_each(|(word, other)| *word &= other);
        both
    }

    pub(crate) fn is_subset_of(self, other: Self) -> bool {
        self.intersection(other) == self
    }

    pub(crate) fn len(self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
}

/// The positions in a [`ColumnSet`].
pub(crate) struct Positions {
    /// The bits that are not yet returned.
    words: [u64; 4],
    at: usize,
}

impl Iterator for Positions {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        loop {
            let word = self.words.get_mut(self.at)?;
            if *word != 0 {
                let bit = word.trailing_zeros() as usize;
                *word &= *word - 1;
                return Some(64 * self.at + bit);
            }
            self.at += 1;
        }
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
            let mut bytes = Vec::new();
            set.put_bytes(count, &mut bytes);
            assert_eq!(bytes.len(), count.div_ceil(8));
            assert_eq!(ColumnSet::from_bytes(&bytes), set, "{count}");
            assert!(set.is_subset_of(ColumnSet::first(count)));
            let positions: Vec<_> = (0..256).filter(|at| set.contains(*at)).collect();
            assert_eq!((set.iter().collect(), set.len()), (positions.clone(), positions.len()));
        }
    }
}
