//! Determines the optimization tiers of JIT-compiled code, for answers that list methods with their code.

use crate::base::hash::Map;
use crate::base::missed::watched;
use crate::base::{Addr, Collector, Count, Missing, be, plural};
use crate::clr::code_versions::CodeVersions;
use crate::clr::methods::Methods;
use crate::model::CodeTier;
use crate::session::{Namer, Runtime};

/// Determines tiers. The code at each address is looked up once.
pub(in crate::analysis) struct Tiers<'r> {
    runtime: &'r Runtime,
    namer: &'r Namer,
    bound: Option<(CodeVersions, Methods)>,
    known: Map<Addr, Option<CodeTier>>,
    /// Number of tiers that cannot be determined because the dump lost memory that it should have.
    lost: u64,
    /// Address and length of the first memory that was lost.
    why: Option<(Addr, u64)>,
}

impl<'r> Tiers<'r> {
    pub(in crate::analysis) fn new(runtime: &'r Runtime, namer: &'r Namer, notes: &Collector) -> Tiers<'r> {
        let memory = runtime.memory();
        let bind =
            || runtime.scoped(notes, |d| Some((CodeVersions::bind(memory, d).ok()?, Methods::bind(memory, d, runtime.limits()).ok()?)));
        let bound = if runtime.descriptor().has_jit() { bind() } else { None };
        Tiers { runtime, namer, bound, known: Map::default(), lost: 0, why: None }
    }

    /// Returns the tier of the JIT-compiled code at `start`, which belongs to the method at `desc`.
    ///
    /// Dumps without a heap usually do not have the data for this, so they get no note.
    pub(in crate::analysis) fn of(&mut self, desc: Addr, start: Addr) -> Option<CodeTier> {
        if let Some(known) = self.known.get(&start) {
            return *known;
        }
        let (versions, methods) = self.bound.as_ref()?;
        let names = self.namer.names()?;
        let (tier, missed) = watched(|| versions.tier(methods, names, desc, start));
        if tier.is_none() && self.runtime.memory().has_lost(&missed) {
            self.lost.bump();
            self.why = self.why.or(missed.first().map(|(at, len, _)| (at, len)));
        }
        self.known.insert(start, tier);
        tier
    }

    /// Adds a note about tiers that could not be determined.
    pub(in crate::analysis) fn note(&self, notes: &Collector) {
        if let Some((at, len)) = self.why.filter(|_| self.lost > 0) {
            let methods = plural(self.lost, "method");
            notes.add(
                Missing::Code,
                at,
                format!("the tier of {methods} cannot be determined: {} at {at} {} not in the dump", plural(len, "byte"), be(len)),
            );
        }
    }
}
