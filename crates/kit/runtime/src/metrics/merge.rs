//! Puts several scrapes into one: each family once, with the series of all.

use std::collections::BTreeMap;

/// A family's comments and series.
#[derive(Default)]
struct Family {
    comments: Vec<String>,
    series: Vec<String>,
}

/// One scrape of `own` and of all parts; the series of a part get its labels.
pub(super) fn merge(own: &str, parts: &[(String, String)]) -> String {
    let mut order: Vec<String> = Vec::new();
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    read(own, "", &mut order, &mut families);
    for (labels, text) in parts {
        read(text, labels, &mut order, &mut families);
    }
    let mut text = String::with_capacity(own.len());
    for family in order.iter().filter_map(|name| families.get(name)) {
        for line in family.comments.iter().chain(&family.series) {
            text.push_str(line);
            text.push('\n');
        }
    }
    text.push_str("# EOF\n");
    text
}

fn read(text: &str, labels: &str, order: &mut Vec<String>, families: &mut BTreeMap<String, Family>) {
    let mut name = String::new();
    let mut known = false;
    for line in text.lines().filter(|line| *line != "# EOF") {
        if let Some(comment) = line.strip_prefix("# ") {
            let family = comment.split(' ').nth(1).unwrap_or_default();
            if family != name {
                family.clone_into(&mut name);
                known = families.contains_key(&name);
                if !known {
                    order.push(name.clone());
                }
            }
            let family = families.entry(name.clone()).or_default();
            if !known {
                family.comments.push(line.to_owned());
            }
        } else {
            families.entry(name.clone()).or_default().series.push(labelled(line, labels));
        }
    }
}

/// A series with more labels.
fn labelled(line: &str, labels: &str) -> String {
    if labels.is_empty() {
        return line.to_owned();
    }
    let end = line.find([' ', '{']).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    match rest.strip_prefix('{') {
        Some(rest) if rest.starts_with('}') => format!("{name}{{{labels}{rest}"),
        Some(rest) => format!("{name}{{{labels},{rest}"),
        None => format!("{name}{{{labels}}}{rest}"),
    }
}
