//! Addresses and networks.

use std::net::IpAddr;

use crate::cel::eval::Res;
use crate::cel::functions::{Run, fail, wrong};
use crate::cel::value::Val;

/// A network; host bits may be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cidr {
    ip: IpAddr,
    prefix: u8,
}

impl std::fmt::Display for Cidr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.ip, self.prefix)
    }
}

impl Cidr {
    fn width(ip: IpAddr) -> u8 {
        if ip.is_ipv4() { 32 } else { 128 }
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let problem = |why: &str| format!("netip.ParsePrefix({text:?}): {why}");
        let (address, prefix) = text.rsplit_once('/').ok_or_else(|| problem("no '/'"))?;
        let ip = ip_address(address)
            .ok_or_else(|| problem(&format!("ParseAddr({address:?}): unable to parse IP")))?;
        let bad = || problem(&format!("bad bits after slash: {prefix:?}"));
        let plain = prefix == "0" || (!prefix.starts_with('0') && prefix.bytes().all(|b| b.is_ascii_digit()));
        let bits: u8 = prefix.parse().ok().filter(|_| plain).ok_or_else(bad)?;
        if bits > Self::width(ip) {
            return Err(problem("prefix length out of range"));
        }
        Ok(Self { ip, prefix: bits })
    }

    fn masked(self) -> Self {
        let ip = match self.ip {
            IpAddr::V4(ip) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0);
                IpAddr::V4((u32::from(ip) & mask).into())
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix)).unwrap_or(0);
                IpAddr::V6((u128::from(ip) & mask).into())
            }
        };
        Self { ip, prefix: self.prefix }
    }

    fn contains_ip(self, ip: IpAddr) -> bool {
        let same_family = self.ip.is_ipv4() == ip.is_ipv4();
        same_family && Self { ip, prefix: self.prefix }.masked().ip == self.masked().ip
    }

    fn contains_cidr(self, other: Self) -> bool {
        self.prefix <= other.prefix && self.contains_ip(other.masked().ip)
    }
}

/// No zones, no leading zeros, no IPv4 inside of IPv6.
pub(crate) fn ip_address(text: &str) -> Option<IpAddr> {
    let ip: IpAddr = text.parse().ok()?;
    match ip {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => None,
        _ => Some(ip),
    }
}

fn ip<'a>(args: &[Val<'a>]) -> Res<'a> {
    match args {
        [Val::Str(text)] => match ip_address(text) {
            Some(ip) => Ok(Val::Ip(ip)),
            None => fail(format!(
                "IP Address {text:?} parse error during conversion from string: ParseAddr({text:?}): unable to parse IP"
            )),
        },
        [Val::Cidr(cidr)] => Ok(Val::Ip(cidr.ip)),
        _ => wrong("ip", args),
    }
}

fn test<'a>(name: &str, args: &[Val<'a>], holds: fn(&IpAddr) -> bool) -> Res<'a> {
    match args {
        [Val::Ip(ip)] => Ok(Val::Bool(holds(ip))),
        _ => wrong(name, args),
    }
}

pub(crate) fn find(name: &str, member: bool, args: usize) -> Option<Run> {
    Some(match (name, member, args) {
        ("isIP", false, 1) => |args| match args {
            [Val::Str(text)] => Ok(Val::Bool(ip_address(text).is_some())),
            _ => wrong("isIP", args),
        },
        ("ip", false, 1) | ("ip", true, 0) => ip,
        ("ip.isCanonical", false, 1) => |args| match args {
            [Val::Str(text)] => match ip_address(text) {
                Some(ip) => Ok(Val::Bool(ip.to_string() == text.as_ref())),
                None => ip(args),
            },
            _ => wrong("ip.isCanonical", args),
        },
        ("family", true, 0) => |args| match args {
            [Val::Ip(ip)] => Ok(Val::Int(if ip.is_ipv4() { 4 } else { 6 })),
            _ => wrong("family", args),
        },
        ("isUnspecified", true, 0) => |args| test("isUnspecified", args, IpAddr::is_unspecified),
        ("isLoopback", true, 0) => |args| test("isLoopback", args, IpAddr::is_loopback),
        ("isLinkLocalMulticast", true, 0) => |args| {
            test("isLinkLocalMulticast", args, |ip| match ip {
                IpAddr::V4(ip) => ip.octets()[..3] == [224, 0, 0],
                IpAddr::V6(ip) => ip.segments()[0] & 0xff0f == 0xff02,
            })
        },
        ("isLinkLocalUnicast", true, 0) => |args| {
            test("isLinkLocalUnicast", args, |ip| match ip {
                IpAddr::V4(ip) => ip.is_link_local(),
                IpAddr::V6(ip) => ip.segments()[0] & 0xffc0 == 0xfe80,
            })
        },
        ("isGlobalUnicast", true, 0) => |args| {
            test("isGlobalUnicast", args, |ip| {
                let link_local = match ip {
                    IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
                    IpAddr::V6(ip) => ip.segments()[0] & 0xffc0 == 0xfe80,
                };
                !ip.is_unspecified() && !ip.is_loopback() && !ip.is_multicast() && !link_local
            })
        },
        ("isCIDR", false, 1) => |args| match args {
            [Val::Str(text)] => Ok(Val::Bool(Cidr::parse(text).is_ok())),
            _ => wrong("isCIDR", args),
        },
        ("cidr", false, 1) => |args| match args {
            [Val::Str(text)] => Cidr::parse(text).map_or_else(
                |problem| {
                    // Upstream wraps the error twice.
                    let prefix = "network address parse error during conversion from string: ";
                    fail(format!("{prefix}{prefix}{problem}"))
                },
                |cidr| Ok(Val::Cidr(cidr)),
            ),
            _ => wrong("cidr", args),
        },
        ("prefixLength", true, 0) => |args| match args {
            [Val::Cidr(cidr)] => Ok(Val::Int(i64::from(cidr.prefix))),
            _ => wrong("prefixLength", args),
        },
        ("masked", true, 0) => |args| match args {
            [Val::Cidr(cidr)] => Ok(Val::Cidr(cidr.masked())),
            _ => wrong("masked", args),
        },
        ("containsIP", true, 1) => |args| match args {
            [Val::Cidr(cidr), Val::Ip(ip)] => Ok(Val::Bool(cidr.contains_ip(*ip))),
            [Val::Cidr(cidr), Val::Str(text)] => match ip_address(text) {
                Some(ip) => Ok(Val::Bool(cidr.contains_ip(ip))),
                None => ip(&args[1..]),
            },
            _ => wrong("containsIP", args),
        },
        ("containsCIDR", true, 1) => |args| match args {
            [Val::Cidr(cidr), Val::Cidr(other)] => Ok(Val::Bool(cidr.contains_cidr(*other))),
            [Val::Cidr(cidr), Val::Str(text)] => match Cidr::parse(text) {
                Ok(other) => Ok(Val::Bool(cidr.contains_cidr(other))),
                Err(problem) => {
                    fail(format!("network address parse error during conversion from string: {problem}"))
                }
            },
            _ => wrong("containsCIDR", args),
        },
        _ => return None,
    })
}
