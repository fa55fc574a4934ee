//! Network addresses.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

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

/// Reads `IPEndPoint` and `IPAddress`.
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

    /// The text of an endpoint, such as `127.0.0.1:8080` or `[::1]:443`; `None` for other objects, or if it is not in the dump.
    pub(crate) fn text(&self, object: Addr) -> Option<String> {
        let (end, fields) = self.fields.as_ref()?.as_ref().ok()?;
        let kinds = self.types.object(object);
        let ip = |address: Addr| -> Option<std::net::IpAddr> {
            let Some(numbers) = self.library.reference(address, fields.numbers) else {
                // In network byte order.
                return Some(Ipv4Addr::from(self.library.u32(address, fields.address)?.to_le_bytes()).into());
            };
            let shape = self.library.array(numbers)?;
            let mut groups = [0u16; GROUPS];
            for (i, group) in (0..shape.length).zip(&mut groups) {
                *group = self.library.u16_at(shape.data.element(i, shape.element_bytes))?;
            }
            Some(Ipv6Addr::from(groups).into())
        };
        if kinds.is(NetType::Address) {
            return ip(object).map(|ip| ip.to_string());
        }
        kinds.is(NetType::EndPoint).then_some(())?;
        let port = u16::try_from(self.library.i32(object, end.port)?).ok()?;
        Some(SocketAddr::new(ip(self.library.reference(object, end.address)?)?, port).to_string())
    }
}
