//! Topics, filters and shares.

/// A filter of a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Filter {
    share: Option<String>,
    path: String,
}

/// Whether a word is exactly one level of a topic.
pub fn is_name(word: &str) -> bool {
    !word.is_empty() && !word.starts_with('$') && !word.contains(['+', '#', '/', '\0'])
}

impl Filter {
    /// Parses a filter.
    pub fn parse(text: &str) -> Option<Self> {
        let (share, path) = match text.strip_prefix("$share/") {
            Some(rest) => {
                let (group, path) = rest.split_once('/')?;
                (Some(group.to_owned()).filter(|group| is_name(group))?.into(), path)
            }
            None => (None, text),
        };
        let levels = path.split('/').count();
        let fits = path.split('/').enumerate().all(|(index, level)| match level {
            "+" => true,
            "#" => index + 1 == levels,
            other => !other.contains(['+', '#', '\0']),
        });
        (fits && !path.is_empty()).then(|| Self { share, path: path.to_owned() })
    }

    /// Its share group.
    pub fn share(&self) -> Option<&str> {
        self.share.as_deref()
    }

    /// The filter without its group.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether it matches more than one topic.
    pub fn is_pattern(&self) -> bool {
        self.path.contains(['+', '#'])
    }

    /// Whether it matches a topic.
    pub fn matches(&self, topic: &str) -> bool {
        // A pattern that starts with a wildcard does not match the broker's own topics.
        if topic.starts_with('$') && self.path.starts_with(['+', '#']) {
            return false;
        }
        let mut levels = topic.split('/');
        for wanted in self.path.split('/') {
            match (wanted, levels.next()) {
                ("#", _) => return true,
                ("+", Some(_)) => {}
                (wanted, Some(level)) if wanted == level => {}
                _ => return false,
            }
        }
        levels.next().is_none()
    }
}

/// Whether a topic can be published to.
pub fn is_topic(topic: &str) -> bool {
    !topic.is_empty() && !topic.contains(['+', '#', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_match_by_level() {
        for (filter, topic, matches) in [
            ("a/b", "a/b", true),
            ("a/b", "a/b/c", false),
            ("a/+/c", "a/b/c", true),
            ("a/+/c", "a/b/d/c", false),
            ("a/+", "a", false),
            ("a/+", "a/", true),
            ("a/#", "a", true),
            ("a/#", "a/b/c", true),
            ("#", "a/b", true),
            ("#", "$SYS/a", false),
            ("$share/g/a/+", "a/b", true),
        ] {
            assert_eq!(Filter::parse(filter).unwrap().matches(topic), matches, "{filter} {topic}");
        }
    }

    #[test]
    fn invalid_filter_is_rejected() {
        for text in ["", "a/#/b", "a+", "a/b#", "$share/g", "$share//a", "$share/+/a", "$share/g/", "a\0b"] {
            assert_eq!(Filter::parse(text), None, "{text:?}");
        }
    }
}
