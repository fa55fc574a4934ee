//! Addresses in managed code.

use super::finder::Finder;
use crate::analysis::threads::tiers::Tiers;
use crate::analysis::{CodeKind, CodePlace, PlaceKind, WhereReport};
use crate::base::Name;
use crate::base::missed::tried;
use crate::base::reads;
use crate::clr::methods::{MethodName, Methods};
use crate::stack::code::CodeOrigin;

/// Maximum number of reads for one address.
const READS: u64 = 1 << 20;

impl Finder<'_> {
    pub(super) fn code(&self, blank: &WhereReport) -> Option<WhereReport> {
        let runtime = self.heap.runtime();
        let address = blank.address;
        // Most addresses are not code, so failed reads are not noted.
        let look_up = || runtime.stack_walker().ok()?.code().find(address).ok().flatten();
        let code = tried(|| reads::bounded(READS, look_up))?;
        let methods = runtime.scoped(self.notes, |d| Methods::bind(runtime.memory(), d, runtime.limits()).ok());
        let named = methods.and_then(|m| m.name(self.namer.names()?, code.method_desc));
        let kind = match code.origin {
            CodeOrigin::Jitted { .. } => CodeKind::Jit,
            CodeOrigin::ReadyToRun { .. } => CodeKind::ReadyToRun,
        };
        let mut tiers = Tiers::new(runtime, self.namer, self.notes);
        let tier = if kind == CodeKind::Jit { tiers.of(code.method_desc, code.start) } else { None };
        tiers.note(self.notes);
        let offset = code.offset(address);
        let method = named.as_ref().map(MethodName::to_name);
        let module = named.and_then(|n| n.module);
        let shown = method.as_ref().map_or_else(|| format!("the method {}", code.method_desc), ToString::to_string);
        let (part, of) =
            (if code.funclet { ", in an exception block" } else { "" }, if kind == CodeKind::Jit { "JIT-ed" } else { "ReadyToRun" });
        let tier_text = tier.map_or_else(String::new, |tier| format!(", {tier}"));
        let module_text = module.as_ref().map_or_else(String::new, |m| format!(" [{m}]"));
        let text = format!("{shown}+{offset:#x}{part}, {of} code{tier_text}{module_text}");
        let (start, method_desc, funclet) = (code.start, code.method_desc, code.funclet);
        let display = method.as_ref().map(Name::display);
        let place = CodePlace { method, display, method_desc, module, start, code: kind, tier, funclet };
        Some(WhereReport { kind: PlaceKind::Code, text, offset: Some(offset), range: Some(code.range), code: Some(place), ..blank.clone() })
    }
}
