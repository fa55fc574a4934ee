//! The data contracts of the runtime, with the origin of every item.

mod report;

pub use report::*;

use crate::base::missed::tried;
use crate::base::{AddrRange, Answer, Missing, len64, plural};
use crate::contract::checks::{self, Outcome};
use crate::contract::{self, Contract, ContractError, Descriptor, GlobalValue};
use crate::session::Runtime;
use crate::{clr, gc, stack};

/// Arguments of `contracts`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ContractsQuery {
    /// Whether types and globals are omitted, so that only self-checks and contracts are listed.
    pub checks_only: bool,
}

/// Lists the contracts, types, fields and globals of `runtime`, and checks the layouts in use.
pub fn contracts(runtime: &Runtime, query: &ContractsQuery) -> Answer<ContractsReport> {
    let (d, memory, notes) = (runtime.descriptor(), runtime.memory(), runtime.begin());
    if let Err(e @ ContractError::NotAdvertised { .. }) = runtime.gc() {
        notes.add(Missing::Layouts, None, e.to_string());
    }
    let origin = |i: usize| d.origins.get(i).map_or_else(String::new, |o| o.name.clone());
    let origins = d.origins.iter().map(|o| OriginModel { kind: o.kind, name: o.name.clone(), address: o.address, version: o.version });
    let mut names: Vec<&str> = d.contracts.keys().map(String::as_str).collect();
    names.extend(d.unusable.keys().filter_map(|item| match item {
        contract::DescriptorItem::Contract(name) => Some(name.as_str()),
        _ => None,
    }));
    names.extend(read().filter(|c| c.needed && !d.contracts.contains_key(c.name)).map(|c| c.name));
    names.sort_unstable();
    names.dedup();
    let types = d.types.iter().map(|(name, t)| {
        let mut fields: Vec<FieldModel> = t
            .fields
            .iter()
            .map(|(name, f)| FieldModel { name: name.clone(), offset: f.offset, type_name: f.type_name.clone(), origin: origin(f.origin) })
            .collect();
        fields.sort_by(|a, b| (a.offset, &a.name).cmp(&(b.offset, &b.name)));
        TypeModel { name: name.clone(), size: t.size, fields }
    });
    let globals = d.globals.iter().map(|(name, g)| {
        let mut model = GlobalModel {
            name: name.clone(),
            type_name: g.type_name.clone(),
            number: None,
            text: None,
            address: None,
            content: None,
            missing: None,
            origin: origin(g.origin),
        };
        match &g.value {
            GlobalValue::Literal { number, text } => {
                model.number = *number;
                model.text.clone_from(text);
            }
            GlobalValue::Pointer(a) => {
                model.address = Some(*a);
                // A heap dump does not contain unmodified pages of modules or read-only data. Only a value that a complete dump of this kind
                // would contain is noted as missing.
                let content = tried(|| memory.ptr(*a));
                if let Some(e) = content.err().filter(|e| memory.is_lost(AddrRange::of(e.address, e.len))) {
                    notes.add(Missing::Layouts, e.address, format!("the value of {name} cannot be read: {e}"));
                }
                model.content = content.ok();
            }
            GlobalValue::Unreadable { slot } => model.missing = Some(format!("slot {slot} is not in the dump")),
        }
        model
    });
    let checked = d.scope();
    let mut found: Vec<CheckModel> = checks::run(&checked, memory, runtime.limits()).into_iter().map(check).collect();
    notes.extend(&checked.losses());
    // Each rejected overlay is listed as a failed self-check.
    let refused = |facts: &String| CheckModel { name: "overlay".into(), outcome: CheckOutcome::Failed, facts: facts.clone() };
    found.extend(runtime.description().refused.iter().map(refused));
    let (types, globals): (Vec<TypeModel>, Vec<GlobalModel>) =
        if query.checks_only { Default::default() } else { (types.collect(), globals.collect()) };
    if let Some((item, why)) = d.unusable.first_key_value() {
        let what = format!("the descriptor has {} that cannot be used, such as {item}: {why}", plural(len64(d.unusable.len()), "item"));
        notes.add(Missing::Layouts, None, what);
    }
    notes.finish(ContractsReport {
        origins: origins.collect(),
        contracts: names.iter().map(|n| contract(d, n, &origin)).collect(),
        types,
        globals,
        unusable: d.unusable.iter().map(|(item, why)| UnusableModel { item: item.to_string(), reason: why.clone() }).collect(),
        checks: found,
    })
}

/// Returns the contracts that gcdump reads, in all layers.
fn read() -> impl Iterator<Item = Contract> {
    [contract::CONTRACTS, clr::CONTRACTS, gc::CONTRACTS, stack::CONTRACTS].into_iter().flatten().copied()
}

fn contract(d: &Descriptor, name: &str, origin: &impl Fn(usize) -> String) -> ContractModel {
    let info = d.contracts.get(name);
    let reader = read().find(|c| c.name == name);
    let (support, message) = match reader.map_or_else(|| Err(contract::refusal(d, name)), |c| c.require(d)) {
        Err(ContractError::UnrecognizedVersion { .. }) if reader.is_none() && !contract::is_known(name) => {
            (SupportKind::NotNeeded, format!("{name} is not used by any command"))
        }
        Ok(()) => (SupportKind::Supported, format!("{name} is read")),
        Err(e) => {
            let kind = match e {
                ContractError::UnrecognizedVersion { .. } => SupportKind::UnrecognizedVersion,
                ContractError::Unsupported { .. } => SupportKind::KnownButUnsupported,
                ContractError::Unusable { .. } => SupportKind::Unusable,
                _ => SupportKind::NotAdvertised,
            };
            (kind, e.to_string())
        }
    };
    ContractModel { name: name.into(), version: info.map(|i| i.version.clone()), support, message, origin: info.map(|i| origin(i.origin)) }
}

fn check(c: checks::Check) -> CheckModel {
    let (outcome, facts) = match c.outcome {
        Outcome::Passed(facts) => (CheckOutcome::Passed, facts),
        Outcome::Failed(facts) | Outcome::BrokenOff(facts) => (CheckOutcome::Failed, facts),
        Outcome::Unknown(facts) => (CheckOutcome::Unknown, facts),
    };
    CheckModel { name: c.name.into(), outcome, facts }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_contract_has_one_reader() {
        let mut names: Vec<&str> = read().map(|c| c.name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "{names:?}");
    }
}
