//! The methods of a type, with their code.

use crate::analysis::threads::tiers::Tiers;
use crate::analysis::{MethodCode, MethodModel};
use crate::base::missed::watched;
use crate::base::reads;
use crate::base::{Addr, AddrRange, Collector, Count, Missing, Name, be, plural};
use crate::clr::fields::Types;
use crate::clr::method_list::{ListedMethod, MethodLists};
use crate::clr::methods::{MethodName, Methods};
use crate::clr::precodes::Precodes;
use crate::contract::ContractError;
use crate::session::{Namer, Runtime};
use crate::stack::code::{CodeMap, CodeOrigin};
use crate::stack::{LookUps, StackError};

/// Returns the methods that the type at `mt` declares. If they cannot be listed, adds a note and returns `None`.
pub(in crate::analysis) fn type_methods(
    runtime: &Runtime,
    namer: &Namer,
    types: &Types,
    mt: Addr,
    notes: &Collector,
) -> Option<Vec<MethodModel>> {
    if runtime.descriptor().is_native_aot() {
        notes.add(Missing::Code, None, "methods of types cannot be listed: a NativeAOT program has no MethodDescs");
        return None;
    }
    let memory = runtime.memory();
    let names = types.names();
    let bound = runtime.scoped(notes, |d| {
        let methods = Methods::bind(memory, d, runtime.limits())?;
        Ok::<_, ContractError>((methods, MethodLists::bind(memory, d)?, Precodes::bind(memory, d).ok()))
    });
    let (methods, lists, precodes) = match bound {
        Ok(bound) => bound,
        Err(e) => {
            notes.add(Missing::Code, None, format!("methods of types cannot be listed: {e}"));
            return None;
        }
    };
    let list = match lists.of(&methods, names, mt) {
        Ok(list) => list,
        Err(e) => {
            notes.add(Missing::Code, mt, format!("the methods of the type cannot be listed: {e}"));
            return None;
        }
    };
    if let Some(chunk) = list.unclear {
        notes.add(Missing::Code, chunk, "some methods of the type cannot be identified");
    }
    let map = match runtime.stack_walker() {
        Ok(walker) => Some(walker.code()),
        Err(e) => {
            notes.add(Missing::Code, None, format!("the code of methods cannot be determined: {e}"));
            None
        }
    };
    let images: Vec<AddrRange> = runtime.file().modules.iter().map(|m| m.range()).collect();
    // Precodes are created at run time, so code in an image is not a precode. It is not read, because it is often not in the dump.
    let of_precode = |lead: Addr, desc: Addr| match &precodes {
        Some(precodes) if !images.iter().any(|image| image.contains(lead)) => precodes.targets(lead, desc),
        _ => Vec::new(),
    };
    let mut tiers = Tiers::new(runtime, namer, notes);
    let (mut unknown, mut why) = (0u64, None);
    let look_ups = LookUps::new(memory);
    let mut model = |method: &ListedMethod| {
        let named = methods.name(names, method.desc);
        let name = named.as_ref().map(MethodName::to_name);
        let look_up = |map| {
            let found = code(method, map, &of_precode);
            // An exhausted read budget is a limit of this program, not a property of the dump.
            (!reads::exhausted()).then_some(found)
        };
        let (found, missed) = watched(|| map.and_then(|map| look_ups.one(|| look_up(map))));
        let (code, entry) = match found {
            Some(Ok(EntryPoint { code: Some((entry, kind)), .. })) => (Some(kind), Some(entry)),
            Some(Ok(EntryPoint { entered, .. })) if entered || !memory.has_lost(&missed) => (Some(MethodCode::None), None),
            Some(found) => {
                unknown.bump();
                let missing =
                    || missed.first().map(|(at, bytes, _)| format!("{} at {at} {} not in the dump", plural(bytes, "byte"), be(bytes)));
                why = why.take().or_else(|| found.err().map(|e| e.to_string()).or_else(missing));
                (None, None)
            }
            None => (None, None),
        };
        MethodModel {
            method_desc: method.desc,
            slot: method.slot,
            token: named.as_ref().and_then(|n| n.token),
            code,
            tier: entry.filter(|_| code == Some(MethodCode::Jit)).and_then(|start| tiers.of(method.desc, start)),
            entry,
            display: name.as_ref().map(Name::display),
            name,
        }
    };
    let list = list.methods.iter().map(&mut model).collect();
    tiers.note(notes);
    look_ups.note(notes);
    if unknown > 0 {
        let (methods, why) = (if unknown == 1 { "method" } else { "methods" }, why.unwrap_or_default());
        notes.add(Missing::Code, mt, format!("whether {unknown} {methods} of the type have code cannot be determined: {why}"));
    }
    Some(list)
}

/// The result of following the possible entry points of a method.
struct EntryPoint {
    /// Code of the method.
    code: Option<(Addr, MethodCode)>,
    /// Whether one of the words is a precode of the method. Then the current entry point is known, even if the other words cannot be read.
    entered: bool,
}

/// Finds the code of a method from words that may be entry points. An entry point is the code or a precode. Only code of this method is accepted, so
/// words that are not addresses have no effect.
fn code(method: &ListedMethod, map: &CodeMap, of_precode: &impl Fn(Addr, Addr) -> Vec<Addr>) -> Result<EntryPoint, StackError> {
    let of_precodes: Vec<Addr> = method.leads.iter().flat_map(|lead| of_precode(*lead, method.desc)).collect();
    let entered = !of_precodes.is_empty();
    let (mut ahead, mut failed) = (None, None);
    for at in of_precodes.into_iter().chain(method.leads.iter().copied()) {
        match map.find(at) {
            Ok(Some(code)) if code.method_desc == method.desc && code.start == at => match code.origin {
                CodeOrigin::Jitted { .. } => return Ok(EntryPoint { code: Some((at, MethodCode::Jit)), entered }),
                CodeOrigin::ReadyToRun { .. } => ahead = ahead.or(Some((at, MethodCode::ReadyToRun))),
            },
            Ok(_) => {}
            Err(e) => failed = failed.or(Some(e)),
        }
    }
    match (ahead, failed) {
        (None, Some(e)) => Err(e),
        (code, _) => Ok(EntryPoint { code, entered }),
    }
}
