//! URLs, read as Go's `ParseRequestURI` reads them: absolute, or an absolute path.

use std::rc::Rc;

use crate::cel::eval::Res;
use crate::cel::functions::{Run, fail, wrong};
use crate::cel::value::Val;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    scheme: String,
    /// With the port.
    host: String,
    path: String,
    query: Vec<(String, Vec<String>)>,
}

impl Url {
    /// The error is what follows `parse "…": `.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() {
            return Err("empty url");
        }
        if text.bytes().any(|b| b < 0x20 || b == 0x7f) {
            return Err("net/url: invalid control character in URL");
        }
        let (scheme, rest) = scheme(text)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        if !rest.starts_with('/') {
            // Opaque (`mailto:a`) is a URL, a relative path is not.
            if scheme.is_empty() {
                return Err("invalid URI for request");
            }
            return Ok(Self { scheme, host: String::new(), path: String::new(), query: queries(query) });
        }
        let (host, path) = match rest.strip_prefix("//") {
            Some(authority) if !scheme.is_empty() || !rest.starts_with("///") => {
                let end = authority.find('/').unwrap_or(authority.len());
                (host(&authority[..end])?, &authority[end..])
            }
            _ => (String::new(), rest),
        };
        let path = decode(path, false).ok_or("invalid URL escape")?;
        Ok(Self { scheme, host, path, query: queries(query) })
    }

    fn hostname(&self) -> &str {
        if let Some(rest) = self.host.strip_prefix('[') {
            return rest.split(']').next().unwrap_or(rest);
        }
        self.host.rsplit_once(':').map_or(self.host.as_str(), |(name, _)| name)
    }

    fn port(&self) -> &str {
        let after = self.host.rsplit(']').next().unwrap_or_default();
        after.rsplit_once(':').map_or("", |(_, port)| port)
    }
}

/// The scheme, in lower case, and what follows it.
fn scheme(text: &str) -> Result<(String, &str), &'static str> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at > 0 => return Ok((text[..at].to_ascii_lowercase(), &text[at + 1..])),
            ':' => return Err("missing protocol scheme"),
            _ => break,
        }
    }
    Ok((String::new(), text))
}

fn host(authority: &str) -> Result<String, &'static str> {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let port = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or("missing ']' in host")?.1,
        None => host.find(':').map_or("", |at| &host[at..]),
    };
    let sound =
        port.is_empty() || port.strip_prefix(':').is_some_and(|p| p.bytes().all(|b| b.is_ascii_digit()));
    if !sound {
        return Err("invalid port after host");
    }
    if host
        .chars()
        .any(|c| c.is_ascii() && !c.is_ascii_alphanumeric() && !"-_.~!$&'()*+,;=:[]<>\"%".contains(c))
    {
        return Err("invalid character in host name");
    }
    decode(host, false).ok_or("invalid URL escape")
}

/// Percent-decoding. `None`: a broken escape.
fn decode(text: &str, plus: bool) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        match b {
            b'%' => {
                let digit = |b: Option<u8>| b.and_then(|b| char::from(b).to_digit(16));
                let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
                out.push((high * 16 + low) as u8);
            }
            b'+' if plus => out.push(b' '),
            _ => out.push(b),
        }
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}

/// Query parameters in the order of their names; broken ones are left out.
fn queries(query: &str) -> Vec<(String, Vec<String>)> {
    let mut map = std::collections::BTreeMap::<String, Vec<String>>::new();
    for part in query.split('&').filter(|part| !part.is_empty() && !part.contains(';')) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        if let (Some(name), Some(value)) = (decode(name, true), decode(value, true)) {
            map.entry(name).or_default().push(value);
        }
    }
    map.into_iter().collect()
}

fn text<'a>(name: &str, args: &[Val<'a>], read: fn(&Url) -> String) -> Res<'a> {
    match args {
        [Val::Url(url)] => Ok(Val::string(read(url))),
        _ => wrong(name, args),
    }
}

pub(crate) fn find(name: &str, member: bool, args: usize) -> Option<Run> {
    Some(match (name, member, args) {
        ("isURL", false, 1) => |args| match args {
            [Val::Str(text)] => Ok(Val::Bool(Url::parse(text).is_ok())),
            _ => wrong("isURL", args),
        },
        ("url", false, 1) => |args| match args {
            [Val::Str(text)] => match Url::parse(text) {
                Ok(url) => Ok(Val::Url(Rc::new(url))),
                Err(why) => {
                    fail(format!("URL parse error during conversion from string: parse {text:?}: {why}"))
                }
            },
            _ => wrong("url", args),
        },
        ("getScheme", true, 0) => |args| text("getScheme", args, |url| url.scheme.clone()),
        ("getHost", true, 0) => |args| text("getHost", args, |url| url.host.clone()),
        ("getHostname", true, 0) => |args| text("getHostname", args, |url| url.hostname().to_owned()),
        ("getPort", true, 0) => |args| text("getPort", args, |url| url.port().to_owned()),
        ("getEscapedPath", true, 0) => |args| text("getEscapedPath", args, |url| escape(&url.path)),
        ("getQuery", true, 0) => |args| match args {
            [Val::Url(url)] => {
                let entry = |(name, values): &(String, Vec<String>)| {
                    (Val::string(name), Val::list(values.iter().map(Val::string).collect()))
                };
                Ok(Val::Map(Rc::new(url.query.iter().map(entry).collect())))
            }
            _ => wrong("getQuery", args),
        },
        _ => return None,
    })
}

fn escape(path: &str) -> String {
    use std::fmt::Write as _;
    path.bytes().fold(String::with_capacity(path.len()), |mut out, b| {
        let c = char::from(b);
        if c.is_ascii_alphanumeric() || "-_.~$&+,/:;=@".contains(c) {
            out.push(c);
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{b:02X}");
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_as_go_reads_requests() {
        let url = Url::parse("https://User@Example.com:8080/a%20b?x=1&y=2&x=3").unwrap();
        assert_eq!((url.scheme.as_str(), url.hostname(), url.port()), ("https", "Example.com", "8080"));
        assert_eq!(escape(&url.path), "/a%20b");
        assert_eq!(url.query[0], ("x".into(), vec!["1".into(), "3".into()]));
        assert!(Url::parse("/path").is_ok());
        for bad in ["", "zz", "a b", ":x", "http://a:b/", "http://a b/"] {
            assert!(Url::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(Url::parse("http://[::1]:80/").unwrap().hostname(), "::1");
    }
}
