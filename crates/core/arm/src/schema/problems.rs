//! The problems of one request: collected in any order, reported once each, in path order, with the paths of the caller's api-version.

use std::cmp::Ordering;

use super::{Body, Version};
use crate::field::Problem;
use crate::{FieldError, FieldPath};

/// Collected problems.
#[derive(Debug, Default)]
pub struct Problems(Vec<FieldError>);

impl Problems {
    pub fn push(&mut self, problem: FieldError) {
        self.0.push(problem);
    }

    pub fn extend(&mut self, problems: impl IntoIterator<Item = FieldError>) {
        self.0.extend(problems);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether something is wrong with exactly this member.
    pub fn has(&self, path: &FieldPath) -> bool {
        self.0.iter().any(|problem| problem.path == *path)
    }

    /// `Ok` when there are none; else all of them as the caller's api-version words them.
    pub fn finish<V: Version>(self, body: &Body<V>, version: V) -> Result<(), Vec<FieldError>> {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut problems = self.0;
        for problem in &mut problems {
            let mut moved = body.moves.iter().filter(|moved| moved.applies(version));
            if let Some(path) = moved.find_map(|moved| moved.path(problem.path.as_str())) {
                if let Problem::Undecodable(why) = &mut problem.problem {
                    *why = why.replacen(problem.path.as_str(), &path, 1);
                }
                problem.path = FieldPath::new(path);
            }
        }
        Err(tidy(problems))
    }
}

/// Sorted by path, without repetitions.
pub fn tidy(mut problems: Vec<FieldError>) -> Vec<FieldError> {
    problems.sort_by(|a, b| {
        natural(a.path.as_str(), b.path.as_str())
            .then_with(|| a.problem.to_string().cmp(&b.problem.to_string()))
    });
    problems.dedup();
    problems
}

/// Compares paths so that `labels[2]` comes before `labels[10]`.
fn natural(a: &str, b: &str) -> Ordering {
    let pieces = |text: &str| -> Vec<(u64, String)> {
        text.split_inclusive(['.', '['])
            .map(|piece| match piece.split_once(']') {
                Some((digits, rest)) => match digits.parse() {
                    Ok(number) => (number, rest.to_owned()),
                    Err(_) => (0, piece.to_owned()),
                },
                None => (0, piece.to_owned()),
            })
            .collect()
    };
    pieces(a).cmp(&pieces(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_reported_once_each_in_path_order() {
        let at = |path: &str| FieldError::required(&FieldPath::new(path));
        let problems = tidy(vec![at("b[10].x"), at("b[2].x"), at("a"), at("b[2].x"), at("b[2]"), at("b")]);
        let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(paths, ["a", "b", "b[2]", "b[2].x", "b[10].x"]);
    }
}
