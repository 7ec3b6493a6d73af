//! How deep the tree of an expression gets, estimated from its text.
//!
//! The parser bounds parentheses, but builds chains (`a+a+…`, `a.b.c…`, `a[0][0]…`, `f().g()…`, `!-!-…`, `x?y:z?…`) into
//! trees as deep as they are long; such a tree overflows the stack when it is cloned, lowered, run or dropped. So the text
//! is looked at before it is parsed.
//!
//! The estimate is never too small, and for real rules not far above the depth: every level of brackets has terms (chains
//! of members, calls and indices) that operators join. `&&` and `||` start anew, because the parser balances their chains.
//!
//! Threads that serve requests have small stacks. So compiling, which is rare, gets a large one, and a run grows its own
//! when it comes near the end (`stacker`).
//!
//! What it is not: a parser. Text that is no expression gets some estimate and is refused by the parser.

/// The deepest tree that is accepted, as upstream's parser has it.
pub(super) const MAX_DEPTH: u32 = 250;

/// What parsing and lowering the deepest tree takes, in a build without optimisation; the rest of such a stack is never
/// touched, so it costs address space only.
const COMPILE_STACK: usize = 16 << 20;

/// What one step of a run takes at most, and how much is added when less is left.
const STEP_STACK: usize = 128 << 10;
const ADDED_STACK: usize = 1 << 20;

/// Runs the recursive parts of a compilation, on a stack that is large enough.
pub(super) fn compiling<T>(run: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(COMPILE_STACK, COMPILE_STACK, run)
}

/// Runs one step of an evaluation, on a stack that is large enough.
pub(super) fn step<T>(run: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STEP_STACK, ADDED_STACK, run)
}

/// One level of brackets.
#[derive(Debug, Default, Clone, Copy)]
struct Level {
    /// Conditionals nest to the right across `&&` and `||`.
    conditionals: u32,
    /// Operators since the last `&&`, `||` or comma.
    operators: u32,
    /// The depth of the term at hand.
    term: u32,
    /// The deepest term since the last `&&`, `||` or comma.
    deepest_term: u32,
    /// The deepest part between `&&`, `||` and commas.
    deepest_part: u32,
    /// How many parts there are.
    parts: u32,
}

impl Level {
    fn end_term(&mut self) {
        self.deepest_term = self.deepest_term.max(self.term);
        self.term = 0;
    }

    fn end_part(&mut self) {
        self.end_term();
        self.deepest_part = self.deepest_part.max(self.operators.saturating_add(self.deepest_term));
        (self.operators, self.deepest_term) = (0, 0);
        self.parts = self.parts.saturating_add(1);
    }

    fn operator(&mut self) {
        self.end_term();
        self.operators = self.operators.saturating_add(1);
    }

    /// The depth of the whole level. Chains of `&&` inside of chains of `||` are two balanced trees.
    fn depth(mut self) -> u32 {
        self.end_part();
        let balanced = 2 * (u32::BITS - (self.parts - 1).leading_zeros());
        self.conditionals.saturating_add(self.deepest_part).saturating_add(balanced)
    }
}

/// An upper bound of the depth of an expression's tree.
pub(super) fn depth(source: &str) -> u32 {
    let bytes = source.as_bytes();
    let end_of = |from: usize, ends: fn(u8) -> bool| {
        let rest = bytes.get(from..).unwrap_or_default();
        rest.iter().position(|byte| ends(*byte)).map_or(bytes.len(), |length| from + length)
    };
    let mut outer: Vec<Level> = Vec::new();
    let mut level = Level::default();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1).copied();
        at += 1;
        match byte {
            b'"' | b'\'' => {
                at = after_string(bytes, at - 1);
                level.term = level.term.max(1);
            }
            b'`' => at = end_of(at, |byte| byte == b'`') + 1,
            b'/' if next == Some(b'/') => at = end_of(at, |byte| byte == b'\n'),
            b'(' | b'[' | b'{' => outer.push(std::mem::take(&mut level)),
            b')' | b']' | b'}' => {
                if let Some(around) = outer.pop() {
                    let inside = std::mem::replace(&mut level, around).depth();
                    // An operand, an argument or an index: one step, and what is inside of it.
                    level.term = level.term.max(inside).saturating_add(1);
                }
            }
            b'.' => level.term = level.term.saturating_add(1),
            b',' | b':' => level.end_part(),
            b'&' | b'|' if next == Some(byte) => {
                level.end_part();
                at += 1;
            }
            b'?' => {
                level.end_part();
                level.conditionals = level.conditionals.saturating_add(1);
            }
            b'=' | b'!' | b'<' | b'>' if next == Some(b'=') => {
                level.operator();
                at += 1;
            }
            b'+' | b'-' | b'*' | b'/' | b'%' | b'<' | b'>' | b'!' => level.operator(),
            _ if is_word(byte) => {
                let end = end_of(at, |byte| !is_word(byte));
                if bytes.get(at - 1..end) == Some(b"in") {
                    level.operator();
                } else {
                    level.term = level.term.max(1);
                }
                at = end;
            }
            _ => {}
        }
    }
    // Brackets that are never closed still nest.
    outer.into_iter().fold(level.depth(), |sum, level| sum.saturating_add(level.depth()).saturating_add(1))
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether the quote at this place opens a raw string: `r"…"`, also together with `b`.
fn is_raw(bytes: &[u8], quote: usize) -> bool {
    let before = |back: usize| quote.checked_sub(back).and_then(|at| bytes.get(at)).copied();
    let is_r = |byte: Option<u8>| matches!(byte, Some(b'r' | b'R'));
    is_r(before(1)) || matches!(before(1), Some(b'b' | b'B')) && is_r(before(2))
}

/// Where the text after a string starts.
fn after_string(bytes: &[u8], quote: usize) -> usize {
    let raw = is_raw(bytes, quote);
    let mark = bytes.get(quote).copied().unwrap_or_default();
    let triple = bytes.get(quote..quote + 3) == Some(&[mark; 3]);
    let close = if triple { 3 } else { 1 };
    let mut at = quote + close;
    while let Some(&byte) = bytes.get(at) {
        if byte == b'\\' && !raw {
            at += 2;
        } else if bytes.get(at..at + close).is_some_and(|text| text.iter().all(|byte| *byte == mark)) {
            return at + close;
        } else if byte == b'\n' && !triple {
            // Not closed: the parser reports it.
            return at;
        } else {
            at += 1;
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests;
