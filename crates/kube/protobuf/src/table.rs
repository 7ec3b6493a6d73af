//! The table of messages.

use std::collections::HashMap;
use std::sync::LazyLock;

static TEXT: &str = include_str!("../gen/messages.txt");

/// One member of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub number: u32,
    pub name: &'static str,
    pub kind: FieldKind,
    pub ty: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldKind {
    One,
    List,
    Map,
    /// Its members appear in its place.
    Inline,
}

static MESSAGES: LazyLock<HashMap<&'static str, Vec<Field>>> = LazyLock::new(|| {
    let mut messages: HashMap<&'static str, Vec<Field>> = HashMap::new();
    let mut current = "";
    for line in TEXT.lines() {
        let Some(field) = line.strip_prefix(' ') else {
            current = line;
            messages.entry(current).or_default();
            continue;
        };
        let mut words = field.split(' ');
        let (Some(number), Some(name), Some(kind), Some(ty)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let kind = match kind {
            "r" => FieldKind::List,
            "m" => FieldKind::Map,
            "i" => FieldKind::Inline,
            _ => FieldKind::One,
        };
        if let Ok(number) = number.parse() {
            messages.entry(current).or_default().push(Field { number, name, kind, ty });
        }
    }
    messages
});

/// The members of a message. `None`: no such message.
pub(crate) fn fields(message: &str) -> Option<&'static [Field]> {
    MESSAGES.get(message).map(Vec::as_slice)
}
