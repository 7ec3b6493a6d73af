//! Reproducible random numbers.

/// A seeded generator (splitmix64).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xd134_2543_de82_ef95))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below another.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// Some of these, in a random order.
    pub fn choose<T: Clone>(&mut self, from: &[T], count: usize) -> Vec<T> {
        let mut left = from.to_vec();
        let mut chosen = Vec::new();
        while chosen.len() < count && !left.is_empty() {
            let at = usize::try_from(self.below(left.len() as u64)).unwrap_or(0);
            chosen.push(left.swap_remove(at));
        }
        chosen
    }
}
