//! Network addresses: `IPEndPoint` and `IPAddress`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

use super::library::Library;
use crate::base::Addr;
use crate::clr::library::{Classifier, NoSuchField, fields_of, library_types};

/// Number of 16-bit groups in an IPv6 address.
const GROUPS: usize = 8;

library_types! {
    enum NetType {
        in "System.Net.Primitives" {
            EndPoint = "System.Net.IPEndPoint",
            Address = "System.Net.IPAddress",
        }
    }
}

fields_of! {
    struct EndPointFields {
        address: req "_address",
        port: req "_port",
    }
}

fields_of! {
    struct AddressFields {
        address: req "_addressOrScopeId",
        numbers: req "_numbers",
    }
}

/// Reads network addresses.
#[derive(Debug)]
pub(crate) struct EndPoints<'l> {
    library: &'l Library,
    types: Classifier<NetType>,
    fields: Option<Result<(EndPointFields, AddressFields), NoSuchField>>,
}

impl<'l> EndPoints<'l> {
    /// Binds to the types of `library`.
    pub(crate) fn bind(library: &'l Library) -> EndPoints<'l> {
        let types = Classifier::<NetType>::bind(library.types());
        let tables = types.table(NetType::EndPoint).zip(types.table(NetType::Address));
        let of = library.types();
        let fields = tables.map(|(end, address)| Ok((EndPointFields::bind(of, end)?, AddressFields::bind(of, address)?)));
        EndPoints { library, types, fields }
    }

    /// The text of an endpoint or address, such as `127.0.0.1:8080`, `[::1]:443` or `fe80::2%7`; `None` for other objects, or if a part is not in
    /// the dump.
    pub(crate) fn text(&self, object: Addr) -> Option<String> {
        let (end, fields) = self.fields.as_ref()?.as_ref().ok()?;
        let kinds = self.types.object(object);
        let ip = |address: Addr| -> Option<Ip> {
            let own = self.library.u32(address, fields.address)?;
            let Some(numbers) = self.library.reference(address, fields.numbers) else {
                // An IPv4 address: the field contains the four bytes in network byte order.
                return Some(Ip { address: Ipv4Addr::from(own.to_le_bytes()).into(), scope: 0 });
            };
            let shape = self.library.array(numbers)?;
            let mut groups = [0u16; GROUPS];
            for (i, group) in (0..shape.length).zip(&mut groups) {
                *group = self.library.u16_at(shape.data.element(i, shape.element_bytes))?;
            }
            Some(Ip { address: Ipv6Addr::from(groups).into(), scope: own })
        };
        if kinds.is(NetType::Address) {
            return ip(object).map(Ip::text);
        }
        kinds.is(NetType::EndPoint).then_some(())?;
        let port = u16::try_from(self.library.i32(object, end.port)?).ok()?;
        Some(ip(self.library.reference(object, end.address)?)?.with_port(port))
    }
}

/// An IP address, and the scope of an IPv6 address: the number of the network interface, or 0.
#[derive(Clone, Copy, Debug)]
struct Ip {
    address: IpAddr,
    scope: u32,
}

impl Ip {
    fn text(self) -> String {
        if self.scope == 0 { self.address.to_string() } else { format!("{}%{}", self.address, self.scope) }
    }

    fn with_port(self, port: u16) -> String {
        match self.address {
            IpAddr::V4(address) => SocketAddrV4::new(address, port).to_string(),
            IpAddr::V6(address) => SocketAddrV6::new(address, port, 0, self.scope).to_string(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_their_scope() {
        let of = |address: &str, scope| Ip { address: address.parse().unwrap(), scope };
        assert_eq!((of("fe80::2", 7).text(), of("fe80::2", 7).with_port(80)), ("fe80::2%7".into(), "[fe80::2%7]:80".into()));
        assert_eq!((of("::1", 0).text(), of("::1", 0).with_port(443)), ("::1".into(), "[::1]:443".into()));
        assert_eq!((of("127.0.0.1", 0).text(), of("127.0.0.1", 0).with_port(8080)), ("127.0.0.1".into(), "127.0.0.1:8080".into()));
    }
}
