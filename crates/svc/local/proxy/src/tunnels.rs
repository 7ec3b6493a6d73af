//! Which listener of the region an address and a port of a zone lead to.

use std::net::{IpAddr, SocketAddr};

/// A setting that is not of the form `[<address>:]<port>=<listener>`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not of the form \"443=127.0.0.1:6443\" or \"192.0.2.1:443=127.0.0.1:6443\"")]
pub struct TunnelError(String);

/// A mapping from what a zone names to the region's listeners.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tunnels(Vec<Tunnel>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Tunnel {
    /// `None`: every address.
    address: Option<IpAddr>,
    port: u16,
    listener: SocketAddr,
}

impl Tunnels {
    /// Parses settings.
    pub fn parse(settings: &[String]) -> Result<Self, TunnelError> {
        settings
            .iter()
            .map(|setting| parse(setting).ok_or_else(|| TunnelError(setting.clone())))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The listener for an address and a port: by the address if it is listed, else by the port alone.
    pub fn find(&self, address: IpAddr, port: u16) -> Option<SocketAddr> {
        let fits = |wanted: Option<IpAddr>| {
            let found = self.0.iter().find(|tunnel| tunnel.address == wanted && tunnel.port == port);
            found.map(|tunnel| tunnel.listener)
        };
        fits(Some(address)).or_else(|| fits(None))
    }
}

fn parse(setting: &str) -> Option<Tunnel> {
    let (from, listener) = setting.split_once('=')?;
    let listener = listener.trim().parse().ok()?;
    let from = from.trim();
    let (address, port) = match from.parse::<SocketAddr>() {
        Ok(from) => (Some(from.ip()), from.port()),
        Err(_) => (None, from.parse().ok()?),
    };
    (port != 0).then_some(Tunnel { address, port, listener })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tunnels(settings: &[&str]) -> Result<Tunnels, TunnelError> {
        Tunnels::parse(&settings.iter().map(|&setting| setting.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_listed_address_wins_over_the_port_alone() {
        let tunnels =
            tunnels(&["443=127.0.0.1:6443", "192.0.2.7:443=127.0.0.1:7000", "[2001:db8::1]:443=[::1]:9"])
                .unwrap();
        let find =
            |address: &str, port| tunnels.find(address.parse().unwrap(), port).map(|found| found.to_string());
        assert_eq!(find("192.0.2.1", 443).as_deref(), Some("127.0.0.1:6443"));
        assert_eq!(find("192.0.2.7", 443).as_deref(), Some("127.0.0.1:7000"));
        assert_eq!(find("2001:db8::1", 443).as_deref(), Some("[::1]:9"));
        assert_eq!(find("192.0.2.1", 22), None);
    }

    #[test]
    fn settings_of_another_form_are_refused() {
        for bad in [
            "",
            "443",
            "=127.0.0.1:1",
            "443=localhost:1",
            "0=127.0.0.1:1",
            "host:443=127.0.0.1:1",
            "70000=127.0.0.1:1",
        ] {
            assert!(tunnels(&[bad]).is_err(), "{bad}");
        }
    }
}
