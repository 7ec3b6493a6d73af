//! Sets of completion indexes, as the API writes them: `0,2-5,7`.

use std::fmt;

/// Indexes as ordered ranges that do not touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Indexes(Vec<(u32, u32)>);

impl Indexes {
    /// Reads what is below `completions`; what makes no sense is left out.
    pub fn parse(text: &str, completions: u32) -> Self {
        let mut all = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else { continue };
            if first < completions && first <= last {
                all.add(first, last.min(completions - 1));
            }
        }
        all
    }

    pub fn insert(&mut self, index: u32) {
        self.add(index, index);
    }

    fn add(&mut self, first: u32, last: u32) {
        // Everything that overlaps or touches becomes one range.
        let before = self.0.partition_point(|range| range.1.saturating_add(1) < first);
        let after = self.0.partition_point(|range| range.0 <= last.saturating_add(1));
        let merged = self.0[before..after.max(before)]
            .iter()
            .fold((first, last), |all, range| (all.0.min(range.0), all.1.max(range.1)));
        self.0.splice(before..after.max(before), [merged]);
    }

    pub fn extend(&mut self, other: &Self) {
        for (first, last) in &other.0 {
            self.add(*first, *last);
        }
    }

    pub fn contains(&self, index: u32) -> bool {
        let at = self.0.partition_point(|range| range.1 < index);
        self.0.get(at).is_some_and(|range| range.0 <= index)
    }

    pub fn len(&self) -> u32 {
        self.0.iter().map(|(first, last)| last - first + 1).fold(0, u32::saturating_add)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many of these are in the other, too.
    pub fn shared(&self, other: &Self) -> u32 {
        let overlap = |(a, b): &(u32, u32)| {
            other.0.iter().map(|(c, d)| (b.min(d) + 1).saturating_sub(*a.max(c))).fold(0, u32::saturating_add)
        };
        self.0.iter().map(overlap).fold(0, u32::saturating_add)
    }

    /// The first indexes below `completions` that are not in here.
    pub fn missing(&self, count: usize, completions: u32) -> Vec<u32> {
        let mut found = Vec::new();
        let mut next = 0;
        let ends = self.0.iter().copied().chain([(completions, completions)]);
        for (first, last) in ends {
            let room = count - found.len();
            found.extend((next..first.min(completions)).take(room));
            next = last.saturating_add(1);
            if found.len() == count {
                break;
            }
        }
        found
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (first, last)) in self.0.iter().enumerate() {
            let comma = if position > 0 { "," } else { "" };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_read_as_upstream_writes_them() {
        for text in ["", "0", "0,1", "0-2", "0,2-5,7", "1,3,5,6"] {
            assert_eq!(Indexes::parse(text, 100).to_string(), text);
        }
        assert_eq!(Indexes::parse("0-9,20-30", 5).to_string(), "0-4");
        assert_eq!(Indexes::parse("x,3-1,2,-", 5).to_string(), "2");
        assert_eq!(Indexes::parse("0-2,5", 10).missing(4, 8), [3, 4, 6, 7]);
        assert_eq!(Indexes::default().missing(2, 8), [0, 1]);
        assert_eq!(Indexes::parse("0-2,5-9", 10).shared(&Indexes::parse("2-6", 10)), 3);
    }

    proptest! {
        #[test]
        fn they_are_sets(numbers in prop::collection::vec(0_u32..60, 0..80), count in 0_usize..70) {
            let set: BTreeSet<u32> = numbers.iter().copied().collect();
            let mut all = Indexes::default();
            for number in &numbers {
                all.insert(*number);
            }
            prop_assert_eq!(all.len() as usize, set.len());
            prop_assert!((0..70).all(|number| all.contains(number) == set.contains(&number)));
            prop_assert_eq!(Indexes::parse(&all.to_string(), 60), all.clone());
            let missing: Vec<u32> = (0..60).filter(|number| !set.contains(number)).take(count).collect();
            prop_assert_eq!(all.missing(count, 60), missing);
        }
    }
}
