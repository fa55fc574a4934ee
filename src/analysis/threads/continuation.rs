//! The variables of a suspended method of runtime async, which its continuation stores.
//!
//! Source: `docs/internals/runtime-async.md`.

use crate::base::missed::tried;
use crate::base::reads;
use crate::base::{Addr, CorElementType, len64};
use crate::clr::fields::{CORE, Typed};
use crate::clr::gcdesc::GcDesc;
use crate::clr::values::{Place, Values};
use crate::model::FieldValue;
use crate::session::Runtime;
use crate::session::continuations::SuspendedMethods;
use crate::stack::debug_info::{Captured, DebugInfo};

/// Most bytes of a continuation whose references are listed.
const MAX_CONTINUATION: u64 = 1 << 16;
/// Most reads for the variables of one method.
const READS: u64 = 1 << 20;

/// The enum of a continuation's flags. Groups of these bits are indices, as the constants in `HELPERS` define.
const FLAGS: &str = "System.Runtime.CompilerServices.ContinuationFlags";
const HELPERS: [(&str, &str, &str); 4] = [
    ("ExecutionContextIndexFirstBit", "ExecutionContextIndexNumBits", "(execution context)"),
    ("ContinuationContextIndexFirstBit", "ContinuationContextIndexNumBits", "(continuation context)"),
    ("ExceptionIndexFirstBit", "ExceptionIndexNumBits", "(exception)"),
    ("ResultIndexFirstBit", "ResultIndexNumBits", "(result)"),
];

/// A variable of a method.
struct Variable {
    name: String,
    typed: Option<Typed>,
}

/// Returns the variables in the continuation at `object` that the debug info of the method lists, and all other references. Empty if the type `mt` is
/// not a continuation.
pub(in crate::analysis) fn captured(
    runtime: &Runtime,
    values: &Values,
    methods: &SuspendedMethods,
    mt: Addr,
    object: Addr,
) -> Vec<FieldValue> {
    let tables = values.types().names().method_tables();
    let word = values.types().pointer_bytes();
    let sizes = || Some((tables.read(tables.continuation(mt)?).ok()?.base_size, tables.read(mt).ok()?));
    let Some((base, info)) = sizes() else { return Vec::new() };
    // Base sizes include the object header; offsets do not.
    let first = u64::from(base).saturating_sub(word);
    let end = u64::from(info.base_size).saturating_sub(word);
    let slots: Vec<u64> = GcDesc::offsets(runtime.memory(), &info, MAX_CONTINUATION).into_iter().filter(|at| *at >= first).collect();
    let named = reads::bounded(READS, || tried(|| named(runtime, values, methods, object))).unwrap_or_default();
    let mut out: Vec<(u64, FieldValue)> = Vec::new();
    for (captured, variable) in &named {
        let offset = u64::from(captured.offset);
        if offset < first || offset >= end {
            continue;
        }
        let is_slot = slots.contains(&offset);
        let known = variable.typed.as_ref().and_then(|typed| Some((typed, typed.element?)));
        let (type_name, place) = match known {
            Some((typed, element)) => {
                let (method_table, definition) = (typed.method_table, typed.definition);
                let bytes = (element == CorElementType::ValueType).then(|| end.saturating_sub(offset));
                (typed.name.clone(), Place { address: object.plus(offset), element, method_table, definition, bytes })
            }
            None if is_slot => ("System.Object".into(), reference(object.plus(offset))),
            None => continue,
        };
        out.push((offset, FieldValue { offset: Some(offset), ..values.value(variable.name.clone(), type_name, &place) }));
    }
    // A reference within a structure is already shown as a field of the structure.
    let starts: Vec<(u64, u64)> = out.iter().map(|(at, value)| (*at, at.saturating_add(extent(value, word)))).collect();
    let known = helpers(values, methods, first, object);
    for offset in slots.into_iter().filter(|at| !starts.iter().any(|(from, to)| from <= at && at < to)) {
        let name = known.iter().find(|(at, _)| *at == offset).map_or_else(|| format!("+{offset:#x}"), |(_, name)| (*name).to_string());
        let value = values.value(name, "System.Object".into(), &reference(object.plus(offset)));
        out.push((offset, FieldValue { offset: Some(offset), ..value }));
    }
    out.sort_by_key(|(offset, _)| *offset);
    out.into_iter().map(|(_, value)| value).collect()
}

/// Returns the offsets of a continuation's optional fields, with names for them. The flags have a 1-based index for each field, in the bits that
/// constants of `ContinuationFlags` define; 0 means that the field is absent.
fn helpers(values: &Values, methods: &SuspendedMethods, first: u64, object: Addr) -> Vec<(u64, &'static str)> {
    let of = |(bit, bits, name): (&str, &str, &'static str)| {
        let types = values.types();
        let constant = |wanted: &str| values.constant(types.definition_named(CORE, FLAGS)?, wanted);
        let (bit, bits) = (u32::try_from(constant(bit)?).ok()?, u32::try_from(constant(bits)?).ok()?);
        let flags = u64::from(methods.flags(object)?);
        let number = flags.checked_shr(bit)? & 1u64.checked_shl(bits)?.checked_sub(1)?;
        Some((number.checked_sub(1)?.checked_mul(types.pointer_bytes())?.checked_add(first)?, name))
    };
    HELPERS.into_iter().filter_map(of).collect()
}

fn reference(address: Addr) -> Place {
    Place { address, element: CorElementType::Class, method_table: None, definition: None, bytes: None }
}

/// A lower bound for the size of a value in bytes, from its fields.
fn extent(value: &FieldValue, word: u64) -> u64 {
    let last = value.fields.iter().filter_map(|f| Some(f.offset?.saturating_add(extent(f, word)))).max();
    last.unwrap_or(0).max(word).max(len64(value.fields.len()))
}

/// The variables in the debug info of the method, with their locations.
fn named(runtime: &Runtime, values: &Values, methods: &SuspendedMethods, object: Addr) -> Option<Vec<(Captured, Variable)>> {
    let (code, ip) = methods.code(object)?;
    let debug_info = DebugInfo::bind(&runtime.descriptor().scope()).ok()?;
    let bytes = runtime.stack_walker().ok()?.code().bytes();
    let captured = debug_info.captured(bytes, &code, u32::try_from(code.offset(ip)).ok()?).ok()??;
    let parameters = methods.parameters(values.types().names(), code.method_desc)?;
    let typed = values.types().parameters(&parameters);
    let this = parameters.this.map(|_| Some("this".to_string()));
    let arguments: Vec<(Option<String>, Typed)> = this.into_iter().chain(parameters.names).zip(typed).collect();
    let variable = |captured: Captured| {
        let number = captured.number?;
        let index = usize::try_from(number).ok()?;
        Some(match arguments.get(index) {
            Some((name, typed)) => {
                Variable { name: name.clone().unwrap_or_else(|| format!("argument {number}")), typed: Some(typed.clone()) }
            }
            None => Variable { name: format!("local {}", index.saturating_sub(arguments.len())), typed: None },
        })
    };
    Some(captured.into_iter().filter_map(|captured| Some((captured, variable(captured)?))).collect())
}
