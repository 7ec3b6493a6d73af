//! XML of requests and answers.

use quick_xml::Reader;
use quick_xml::events::Event;

pub(super) const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";

/// Elements of a request's body at most; the largest list has 50 000 blocks.
const MOST_ELEMENTS: usize = 60_000;
const DEEPEST: usize = 16;

/// Text as content of an element. Characters that XML cannot hold are left out.
pub(super) fn escaped(text: &str) -> String {
    let allowed = |c: &char| matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    let clean: String = text.chars().filter(allowed).collect();
    quick_xml::escape::escape(clean.as_str()).into_owned()
}

/// An element with text.
pub(super) fn element(name: &str, text: &str) -> String {
    format!("<{name}>{}</{name}>", escaped(text))
}

/// The leaves of a document: the path of element names, and the text. `None`: not a document of this kind.
pub(super) fn leaves(body: &[u8]) -> Option<Vec<(String, String)>> {
    let text = std::str::from_utf8(body).ok()?;
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    let mut open: Vec<Open> = Vec::new();
    let mut found: Vec<(String, String)> = Vec::new();
    let mut elements = 0;
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) => {
                elements += 1;
                open.push(opened(&open, start.local_name().as_ref()));
            }
            Event::Empty(start) => {
                elements += 1;
                let element = opened(&open, start.local_name().as_ref());
                close(&mut open, &mut found, element);
            }
            Event::Text(text) => add_text(&mut open, &text)?,
            Event::GeneralRef(reference) => add_text(&mut open, &resolved(&reference)?)?,
            Event::End(_) => {
                let element = open.pop()?;
                close(&mut open, &mut found, element);
            }
            Event::Eof => return (open.is_empty() && !found.is_empty()).then_some(found),
            Event::Decl(_) | Event::Comment(_) => {}
            // Document types define entities; no client sends one.
            _ => return None,
        }
        if elements > MOST_ELEMENTS || open.len() > DEEPEST {
            return None;
        }
    }
}

/// An element whose end was not read yet.
struct Open {
    path: String,
    text: String,
    has_children: bool,
}

fn opened(open: &[Open], name: &str) -> Open {
    let path = open.last().map_or_else(|| name.to_owned(), |parent| format!("{}/{name}", parent.path));
    Open { path, text: String::new(), has_children: false }
}

fn close(open: &mut [Open], found: &mut Vec<(String, String)>, element: Open) {
    if let Some(parent) = open.last_mut() {
        parent.has_children = true;
    }
    if !element.has_children {
        found.push((element.path, element.text.trim().to_owned()));
    }
}

/// Text outside of the root must be white space.
fn add_text(open: &mut [Open], text: &str) -> Option<()> {
    match open.last_mut() {
        Some(element) => element.text.push_str(text),
        None if text.trim().is_empty() => {}
        None => return None,
    }
    Some(())
}

fn resolved(reference: &quick_xml::events::BytesRef<'_>) -> Option<String> {
    if let Ok(Some(character)) = reference.resolve_char_ref() {
        return Some(character.to_string());
    }
    quick_xml::escape::resolve_xml_entity(reference).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_carry_their_path_and_text() {
        let found = leaves(b"<?xml version=\"1.0\"?><BlockList>\n <Latest>QQ==</Latest><Committed>a&amp;b</Committed></BlockList>").unwrap();
        let expected = [("BlockList/Latest", "QQ=="), ("BlockList/Committed", "a&b")];
        let found: Vec<(&str, &str)> =
            found.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        assert_eq!(found, expected);
        assert_eq!(leaves(b"<BlockList></BlockList>").unwrap(), [("BlockList".to_owned(), String::new())]);
        assert_eq!(leaves(b"<BlockList/>").unwrap(), [("BlockList".to_owned(), String::new())]);
    }

    #[test]
    fn what_is_no_document_is_refused() {
        let deep = "<a>".repeat(100_000);
        for body in
            ["", "text", "<a>", "<a></b>", "<!DOCTYPE x [<!ENTITY y \"z\">]><a>&y;</a>", "<a>&y;</a>", &deep]
        {
            assert_eq!(leaves(body.as_bytes()), None, "{}", &body[..body.len().min(30)]);
        }
        assert_eq!(leaves(&[0xff, 0xfe]), None);
    }
}
