//! Readers of the frames of walked stacks, for one answer: methods, source lines, variables, and reasons for missing frames.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::hash::Map;
use crate::base::{Addr, Collector, Count, Missing, Name, Remedy};
use crate::clr::methods::{MethodName, Methods};
use crate::model::ArgumentModel;
use crate::session::lines::{SourceLine, SourceLines};
use crate::session::variables::{ArgumentReader, FoundVariable};
use crate::session::{Namer, Runtime};
use crate::stack::walked::{Frame, Gap, ManagedFrame, Walk};

/// The names of a method.
#[derive(Clone, Debug)]
pub(crate) struct NamedMethod {
    /// The method.
    pub(crate) method: Arc<MethodName>,
    /// The name in the runtime's notation.
    pub(crate) signature: Name,
    /// The name for people.
    pub(crate) display: Name,
    /// File name of the module.
    pub(crate) module: Option<Name>,
}

/// Reads what frames show. Each method is named once.
#[derive(Debug)]
pub(crate) struct FrameReader<'r> {
    namer: &'r Namer,
    methods: Option<Methods>,
    names: Map<Addr, Option<NamedMethod>>,
    lines: SourceLines<'r>,
    variables: Option<ArgumentReader<'r>>,
}

impl<'r> FrameReader<'r> {
    /// Creates a reader. Without `methods`, frames have neither names nor variables. Without `variables`, they have no variables.
    pub(crate) fn new(runtime: &'r Runtime, namer: &'r Namer, methods: Option<Methods>, variables: bool) -> FrameReader<'r> {
        let variables = methods.as_ref().filter(|_| variables).and_then(|methods| ArgumentReader::new(runtime, namer, methods));
        FrameReader { namer, methods, names: Map::default(), lines: SourceLines::new(runtime, namer), variables }
    }

    /// The reader of methods; `None` if the runtime does not describe methods.
    pub(crate) fn methods(&self) -> Option<&Methods> {
        self.methods.as_ref()
    }

    /// The names of the method at `method`; `None` if the dump does not have them.
    pub(crate) fn name(&mut self, method: Addr) -> Option<NamedMethod> {
        let (methods, namer) = (self.methods.as_ref(), self.namer);
        let named = self.names.entry(method).or_insert_with(|| {
            let (methods, types) = methods.zip(namer.names())?;
            let (signature, method) = (methods.signature(types, method)?, methods.name(types, method)?);
            let display = Name::from(method.shown().into_owned());
            let module = method.module.as_deref().map(Name::from);
            Some(NamedMethod { method: Arc::new(method), signature: signature.into(), display, module })
        });
        named.clone()
    }

    /// The source line that `frame`, a frame of `method`, executes.
    pub(crate) fn line(&self, method: &MethodName, frame: &ManagedFrame) -> Option<SourceLine> {
        self.lines.at(method, frame.instruction())
    }

    /// The arguments of `frame`, `this` first; `None` if the signature of its method cannot be read.
    pub(crate) fn arguments(&mut self, walk: &Walk, frame: &ManagedFrame) -> Option<Vec<FoundVariable>> {
        self.variables.as_mut()?.arguments(walk, frame)
    }

    /// The locals of `frame`; `None` if their types cannot be read.
    pub(crate) fn locals(&mut self, walk: &Walk, frame: &ManagedFrame) -> Option<Vec<FoundVariable>> {
        let named = self.name(frame.code.method_desc)?;
        let variables = self.variables.as_mut()?;
        let declared = self.lines.locals(&named.method, frame.instruction());
        variables.locals(walk, frame, &named.method, declared)
    }

    /// Reads the values of `found`.
    pub(crate) fn models(&self, found: Vec<FoundVariable>) -> Vec<ArgumentModel> {
        let Some(variables) = &self.variables else { return Vec::new() };
        found.into_iter().map(|variable| variables.model(variable)).collect()
    }

    /// Adds notes on source lines, and names and scopes of locals, that cannot be read.
    pub(crate) fn note_lines(&self, notes: &Collector) {
        self.lines.note(notes);
    }

    /// Adds notes on variables that cannot be found.
    pub(crate) fn note_variables(&self, notes: &Collector) {
        self.variables.iter().for_each(|variables| variables.note(notes));
    }
}

/// Reasons for gaps in stacks, each with the number of gaps, the start of the first gap, and what would supply its memory.
#[derive(Debug, Default)]
pub(crate) struct Gaps(BTreeMap<String, (u64, Option<Addr>, Option<Remedy>)>);

impl Gaps {
    /// Adds a gap that begins at `from`.
    pub(crate) fn add(&mut self, reason: &str, from: Option<Addr>, remedy: Option<Remedy>) {
        match self.0.get_mut(reason) {
            Some((count, ..)) => count.bump(),
            None => drop(self.0.insert(reason.into(), (1, from, remedy))),
        }
    }

    /// Adds a note for each reason.
    pub(crate) fn note(self, notes: &Collector) {
        for (reason, (count, at, remedy)) in self.0 {
            let times = if count == 1 { String::new() } else { format!(" ({count} frames)") };
            notes.add(Missing::Stacks.supplied_by(remedy), at, format!("stacks: {reason}{times}"));
        }
    }
}

/// Why a part of a stack is unknown.
#[derive(Debug)]
pub(crate) struct UnknownPart {
    pub(crate) reason: String,
    /// The source of the missing memory, if one is known.
    pub(crate) remedy: Option<Remedy>,
    /// The module whose file would help.
    pub(crate) module: Option<String>,
}

impl Runtime {
    /// The method that `frame` executes. For a frame of the runtime, the method that the frame calls or implements; `None` for other frames of the
    /// runtime.
    pub(crate) fn method_of(&self, frame: &Frame) -> Option<Addr> {
        match frame {
            Frame::Managed(frame) => Some(frame.code.method_desc),
            Frame::Runtime(frame) => {
                let walker = self.stack_walker().ok()?;
                walker.callee(frame).or_else(|| walker.native(frame))
            }
        }
    }

    /// Why the part of a stack at `gap` is unknown.
    pub(crate) fn unknown_part(&self, gap: &Gap, namer: &Namer) -> UnknownPart {
        let module = self.module_of_gap(gap, namer);
        UnknownPart { reason: gap.lack.reason(module.as_deref()), remedy: gap.lack.remedy(module.as_deref()), module }
    }
}
