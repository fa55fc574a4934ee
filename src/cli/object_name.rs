//! Objects on the command line: an address, or the name of what refers to it.

use anyhow::Result;

use super::command::At;
use super::values::address;
use crate::base::Addr;
use crate::session::{Error, TypePattern};

/// An object, by an address in it or by a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ObjectName {
    /// An address.
    At(Addr),
    /// A static field with fields and indices after it (`Lab.Program.Keep._items[3].Name`), or a type with one object.
    Named(String),
}

/// Parses an address or a name.
pub(super) fn object_name(text: &str) -> Result<ObjectName, String> {
    address(text).map(ObjectName::At).or_else(|why| {
        let starts_name = |c: char| c.is_alphabetic() || c == '_' || c == '<';
        let is_name = text.starts_with(starts_name)
            && !text.contains(['/', '\\', '*', '?'])
            && !text.contains(char::is_control)
            && !text.starts_with("0x");
        if is_name { Ok(ObjectName::Named(text.into())) } else { Err(format!("{why}; a static field is Lab.Program.Keep")) }
    })
}

impl At<'_> {
    /// The address of an object in the dump at this place.
    ///
    /// # Errors
    /// [`Error::Nothing`] if nothing has that name, [`Error::Value`] if it does not lead to an object.
    pub(super) fn address_of(&self, index: usize, name: &ObjectName) -> Result<Addr> {
        let text = match name {
            ObjectName::At(address) => return Ok(*address),
            ObjectName::Named(text) => text,
        };
        let heap = self.heap_at(index)?;
        match heap.runtime().value_named(text) {
            Ok(value) if value.is_reference() => Ok(value.object()?.address()),
            Ok(value) => Ok(value.address()),
            Err(Error::Nothing(why)) => {
                let mut found = heap.objects_of(text)?.map(|object| object.address()).take(2);
                match (found.next(), found.next()) {
                    (Some(one), None) => Ok(one),
                    (Some(_), Some(_)) => {
                        let one_of = "choose one of them (gcdump objects --type), or take all where --type is an option";
                        Err(Error::Query(format!("several objects are of the type {text}: {one_of}")).into())
                    }
                    _ => Err(Error::Nothing(format!("{why}, and no object is of a type {text}")).into()),
                }
            }
            Err(why) => Err(why.into()),
        }
    }

    /// One object, or all objects of a type where the name is that of a type.
    ///
    /// # Errors
    /// As [`At::address_of`]; a name that means nothing is taken for that of a type.
    pub(super) fn object_or_type(&self, name: &ObjectName) -> Result<(Option<Addr>, Vec<TypePattern>)> {
        if let ObjectName::Named(text) = name
            && matches!(self.runtime()?.value_named(text), Err(Error::Nothing(_)))
        {
            return Ok((None, vec![TypePattern::Name(text.clone())]));
        }
        Ok((Some(self.address_of(0, name)?), Vec::new()))
    }

    /// The address of a root: as given, or that of a static field.
    ///
    /// # Errors
    /// As [`At::address_of`].
    pub(super) fn root_of(&self, name: &ObjectName) -> Result<Addr> {
        match name {
            ObjectName::At(address) => Ok(*address),
            ObjectName::Named(text) => Ok(self.runtime()?.value_named(text)?.address()),
        }
    }
}
