//! One way to print an error with all its causes.

use std::error::Error;
use std::fmt;

/// Prints `error: cause: cause`. Use it where an error is handled (`error = %chain(&e)`), since `Display`
/// of our errors never repeats the source.
pub fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl fmt::Display + 'a {
    Chain(error)
}

struct Chain<'a>(&'a (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("open the store")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn every_cause_is_printed_once_and_in_order() {
        let error = Outer(std::io::Error::other("disk is gone"));
        assert_eq!(chain(&error).to_string(), "open the store: disk is gone");
    }
}
