//! Arguments of frames, and the values of variables.
//!
//! A value is shown only if the method's debug info gives its location at the frame's current instruction, and the stack walk knows the
//! contents of that location. Locations are never guessed from the calling convention.

use std::sync::Arc;

use super::{FrameVariables, MethodVariables};
use crate::base::hash::Map;
use crate::base::{Addr, Arch, Collector, CorElementType, NoteKind, len64};
use crate::clr::fields::Typed;
use crate::clr::methods::{GenericContext, Methods};
use crate::clr::thunks::Thunks;
use crate::clr::values::{Place, ValueLimits, Values};
use crate::model::{ArgumentModel, FieldValue};
use crate::session::{Namer, Runtime};
use crate::stack::debug_info::{Slot, VariableLocation, VariableState};
use crate::stack::frames::Left;
use crate::stack::walked::{ManagedFrame, Part, Walk};
use crate::stack::{RegisterNames, Saved, StackError};

/// Limits on the values shown in a frame, which keep each frame short.
const LIMITS: ValueLimits = ValueLimits { string_chars: 256, depth: 2, fields: 64, raw_bytes: 64, text_chars: 200 };
/// Number of cached parameters and locals after which no further signature is cached. The limit is needed because every frame may be of another
/// generic instance.
const MOST_KEPT: usize = 1 << 18;
/// Estimated bytes of memory that a value takes in addition to its texts.
const PLAIN: u64 = 256;

/// The location of a variable of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) enum VariableAt {
    /// In memory.
    Memory(Place),
    /// In a register: a place with the type of the value and a null address, the contents of the register, and the stack address where a
    /// callee saved the register, if one did.
    Register(Place, u64, Option<Addr>),
}

/// An argument or a local variable of a frame.
#[derive(Clone, Debug)]
pub(crate) struct FoundVariable {
    /// The name; `None` if neither the metadata nor the PDB has one.
    pub(crate) name: Option<String>,
    /// The declared type.
    pub(crate) type_name: String,
    /// The location according to the debug info, written as in a disassembly.
    pub(crate) location: Option<String>,
    /// The location in this frame, or why it is unknown.
    pub(crate) at: Result<VariableAt, NoValue>,
}

/// A parameter or a local of a method.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) name: Option<String>,
    pub(super) typed: Typed,
}

/// The parameters or the locals of a method; `None` if the signature cannot be read.
pub(super) type Signature = Option<Arc<Vec<Variable>>>;

/// Reads the arguments of frames.
#[derive(Debug)]
pub(crate) struct ArgumentReader<'r> {
    runtime: &'r Runtime,
    pub(super) namer: &'r Namer,
    pub(super) methods: Methods,
    pub(super) values: Values,
    pub(super) thunks: Thunks,
    variables: FrameVariables<'r>,
    signatures: Map<(Addr, Option<GenericContext>), Signature>,
    /// The locals of methods, by method, generic context and row in StandAloneSig.
    pub(super) local_signatures: Map<(Addr, Option<GenericContext>, u32), Signature>,
    /// The row in StandAloneSig that has the types of the locals, by method. The header of the method's IL names the row.
    pub(super) rows: Map<Addr, Option<u32>>,
    /// Number of frames whose locals have unknown types.
    pub(super) untyped: u64,
    /// Module of the method of the first frame whose locals have unknown types.
    pub(super) module: Option<String>,
    /// Number of parameters and locals in the cached signatures.
    kept: usize,
    /// Whether the stack walk dropped the registers of a frame to save memory.
    cut: bool,
}

/// Why a variable has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoValue {
    Left,
    Moving,
    Dead,
    Nothing,
    NoDebugInfo,
    NotDescribed,
    Ambiguous,
    Lost(StackError),
    Limit,
    Clobbered(&'static str),
    Float,
    Parts,
    NotInDump,
    Layout,
    Redacted,
}

impl NoValue {
    /// Address of the debug info if the dump does not have it.
    pub(crate) const fn lost(&self) -> Option<Addr> {
        match self {
            NoValue::Lost(StackError::Read(e)) => Some(e.address),
            _ => None,
        }
    }

    /// The reason in words.
    pub(crate) fn reason(&self) -> String {
        match self {
            NoValue::Left => "an exception has left the frame, or a handler of the method runs above it".into(),
            NoValue::Moving => "the frame may be incomplete: it stopped in the prologue, the epilogue or a funclet of the method".into(),
            NoValue::Dead => "the debug info has no location for it at this instruction".into(),
            NoValue::Nothing => "the debug info of the method has no location for it: it is optimized away, or split into parts".into(),
            NoValue::NoDebugInfo => "the code has no debug info with variables".into(),
            NoValue::NotDescribed => "the runtime does not describe its debug info".into(),
            NoValue::Ambiguous => "the debug info has two locations for it".into(),
            NoValue::Lost(e) => format!("the debug info cannot be read: {e}"),
            NoValue::Limit => "the search for arguments took too many reads".into(),
            NoValue::Clobbered(register) => format!("the contents of {register} are unknown"),
            NoValue::Float => "it is in a floating-point register, which unwinding does not restore".into(),
            NoValue::Parts => "it is split into parts, or its location is unknown".into(),
            NoValue::NotInDump => "the stack slot with its address is not in the dump".into(),
            NoValue::Layout => "the layout of its type is unknown".into(),
            NoValue::Redacted => "the copy is redacted: its stacks have only addresses".into(),
        }
    }
}

impl<'r> ArgumentReader<'r> {
    /// Creates a reader; `None` if the runtime does not describe types.
    pub(crate) fn new(runtime: &'r Runtime, namer: &'r Namer, methods: &Methods) -> Option<ArgumentReader<'r>> {
        let values = Values::new(namer.types().ok()?, LIMITS);
        let (methods, variables) = (methods.clone(), FrameVariables::new(runtime));
        Some(ArgumentReader {
            runtime,
            namer,
            methods,
            values,
            thunks: Thunks::bind(runtime.memory(), &runtime.descriptor().scope()),
            variables,
            signatures: Map::default(),
            local_signatures: Map::default(),
            rows: Map::default(),
            untyped: 0,
            module: None,
            kept: 0,
            cut: false,
        })
    }

    /// The arguments of `frame`, `this` first; `None` if the signature of its method cannot be read.
    pub(crate) fn arguments(&mut self, walk: &Walk, frame: &ManagedFrame) -> Option<Vec<FoundVariable>> {
        let (_, parameters) = self.signature(walk, frame)?;
        let numbered: Vec<(u32, &Variable)> = (0u32..).zip(parameters.iter()).collect();
        Some(self.list(walk, frame, &numbered))
    }

    /// Finds `variables`. Each variable comes with its IL variable number; arguments are numbered before locals.
    pub(super) fn list(&mut self, walk: &Walk, frame: &ManagedFrame, variables: &[(u32, &Variable)]) -> Vec<FoundVariable> {
        // The stack pointer is always known, so an empty list means that the walk dropped the registers.
        let registers = walk.registers(frame);
        self.cut |= registers.is_empty();
        let info = match () {
            () if variables.is_empty() => Ok(MethodVariables::default()),
            () if registers.is_empty() => Err(NoValue::Limit),
            () => self.debug_info(frame),
        };
        let one = |(number, variable): &(u32, &Variable)| {
            let number = *number;
            let entries = info.as_ref().ok().and_then(|t| t.variables.as_ref()).map_or(0, |v| v.count_of(number));
            let info = if self.variables.afford(entries) { &info } else { &Err(NoValue::Limit) };
            self.find((frame, registers), number, variable, info)
        };
        variables.iter().map(one).collect()
    }

    /// Adds notes on arguments that cannot be found.
    pub(crate) fn note(&self, notes: &Collector) {
        self.variables.note(notes);
        self.note_untyped(notes);
        if self.cut {
            notes.add(NoteKind::LimitHit, None, "arguments of some frames are left out: their registers take too much memory");
        }
    }

    /// The parameters of the frame's method, and the generic context in which their types are exact, if it is known.
    pub(super) fn signature(&mut self, walk: &Walk, frame: &ManagedFrame) -> Option<(Option<GenericContext>, Arc<Vec<Variable>>)> {
        let method = frame.code.method_desc;
        let context = self.namer.names().and_then(|names| self.methods.instance(names, method, walk.contexts(frame)));
        let exact = context.and_then(|context| Some((Some(context), self.parameters(method, Some(context))?)));
        exact.or_else(|| Some((None, self.parameters(method, None)?)))
    }

    /// Whether there is room for `signature` in the cache. If so, counts it as cached.
    pub(super) fn keeps(&mut self, signature: &Signature) -> bool {
        let keeps = self.kept < MOST_KEPT;
        if keeps {
            self.kept = self.kept.saturating_add(signature.as_ref().map_or(1, |s| s.len().max(1)));
        }
        keeps
    }

    fn parameters(&mut self, method: Addr, context: Option<GenericContext>) -> Signature {
        let key = (method, context);
        if let Some(known) = self.signatures.get(&key) {
            return known.clone();
        }
        let read = || {
            let parameters = self.methods.parameters(self.namer.names()?, method, context)?;
            let typed = self.values.types().parameters(&parameters);
            let this = parameters.this.map(|_| Some("this".to_string()));
            let names = this.into_iter().chain(parameters.names);
            Some(Arc::new(names.zip(typed).map(|(name, typed)| Variable { name, typed }).collect()))
        };
        let signature: Signature = read();
        if self.keeps(&signature) {
            self.signatures.insert(key, signature.clone());
        }
        signature
    }

    /// The debug info on the variables of a frame.
    ///
    /// # Errors
    /// The reason why the variables have no locations, such as a frame that was unwound or that stopped in a prologue.
    fn debug_info(&mut self, frame: &ManagedFrame) -> Result<MethodVariables, NoValue> {
        if frame.unwound {
            return Err(NoValue::Left);
        }
        if !self.variables.are_described() {
            return Err(NoValue::NotDescribed);
        }
        let info = self.variables.of(frame).map_err(NoValue::Lost)?;
        if info.variables.is_none() {
            return Err(NoValue::NoDebugInfo);
        }
        // Only a frame that stopped at an arbitrary instruction, not at a call, can be incomplete.
        let anywhere = matches!(frame.left, Left::Stopped | Left::Fault);
        let whole = info.bounds.as_ref().zip(offset(frame)).is_some_and(|(bounds, at)| !bounds.is_prologue_or_epilogue(at));
        if anywhere && (!whole || frame.part != Part::Body) { Err(NoValue::Moving) } else { Ok(info) }
    }

    /// Reads the value of a variable, or returns the reason why the variable has no value.
    pub(crate) fn model(&self, found: FoundVariable) -> ArgumentModel {
        let FoundVariable { name, type_name, location, at } = found;
        let named = || (name.clone().unwrap_or_default(), type_name.clone());
        let value = at.and_then(|at| match at {
            VariableAt::Memory(place) => Ok(self.values.value(named().0, named().1, &place)),
            VariableAt::Register(place, value, saved_at) => {
                let shown = self.values.in_register(named().0, named().1, &place, value);
                shown.map(|v| FieldValue { address: saved_at, ..v }).ok_or(NoValue::Layout)
            }
        });
        let (value, reason) = match value {
            Ok(value) => (Some(value), None),
            Err(why) => (None, Some(why.reason())),
        };
        ArgumentModel { name, type_name, location, value, reason }
    }

    fn find(
        &self,
        (frame, registers): (&ManagedFrame, &[(u8, Saved)]),
        number: u32,
        parameter: &Variable,
        info: &Result<MethodVariables, NoValue>,
    ) -> FoundVariable {
        let held = info.as_ref().map_err(Clone::clone).and_then(|info| held(info, number, offset(frame)));
        let arch = self.runtime.file().facts.arch;
        let location = held.as_ref().ok().and_then(|held| held.text(arch));
        let at = held.and_then(|held| self.place((frame, registers), parameter, held, arch));
        FoundVariable { name: parameter.name.clone(), type_name: parameter.typed.name.clone(), location, at }
    }

    fn place(
        &self,
        (frame, registers): (&ManagedFrame, &[(u8, Saved)]),
        parameter: &Variable,
        held: VariableLocation,
        arch: Arch,
    ) -> Result<VariableAt, NoValue> {
        let typed = &parameter.typed;
        let element = typed.element.ok_or(NoValue::Layout)?;
        let is_address = element.is_reference() || element.is_pointer();
        if !is_address && self.runtime.file().facts.trimmed.is_some_and(|trimmed| trimmed.redacted) {
            return Err(NoValue::Redacted);
        }
        let place = |address: Addr| Place { address, element, method_table: typed.method_table, definition: typed.definition, bytes: None };
        let in_memory = |address: Addr| VariableAt::Memory(place(address));
        let register = |number: u8| {
            let saved = registers.iter().find(|(n, _)| *n == number).map(|(_, saved)| *saved);
            let name = RegisterNames::of(arch).get(usize::from(number));
            let reason = name.map_or(NoValue::Parts, |register| NoValue::Clobbered(register));
            saved.and_then(|s| Some((s.value?, s.place))).ok_or(reason)
        };
        let slot = |slot: Slot| {
            // A funclet has its own stack pointer, so offsets from the method's stack pointer are invalid there.
            let is_sp = VariableLocation::Register(slot.base).text(arch).is_some_and(|name| name.ends_with("sp"));
            if is_sp && frame.part != Part::Body {
                return Err(NoValue::Parts);
            }
            let (base, _) = register(slot.base)?;
            base.checked_add_signed(i64::from(slot.offset)).map(Addr).ok_or(NoValue::Parts)
        };
        match held {
            VariableLocation::Register(number) => {
                let (value, saved_at) = register(number)?;
                match (element, saved_at) {
                    (CorElementType::ValueType, Some(at)) => Ok(in_memory(at)),
                    (CorElementType::ValueType, None) => Err(NoValue::Parts),
                    _ => Ok(VariableAt::Register(place(Addr::NULL), value, saved_at)),
                }
            }
            VariableLocation::Stack(s) => slot(s).map(in_memory),
            // If the register or slot contains the address of the variable, the variable is a structure that is passed by reference to a copy. Other
            // types have no copy.
            VariableLocation::AtRegister(_) | VariableLocation::AtStack(_) if element != CorElementType::ValueType => Err(NoValue::Parts),
            VariableLocation::AtRegister(number) => Ok(in_memory(Addr(register(number)?.0))),
            VariableLocation::AtStack(s) => {
                let address = self.runtime.memory().ptr(slot(s)?).map_err(|_| NoValue::NotInDump)?;
                Ok(in_memory(address))
            }
            VariableLocation::Float(_) => Err(NoValue::Float),
            VariableLocation::Two(..) | VariableLocation::Elsewhere => Err(NoValue::Parts),
        }
    }
}

/// Offset of a frame's current instruction in its method's code.
fn offset(frame: &ManagedFrame) -> Option<u32> {
    u32::try_from(frame.code.offset(frame.instruction())).ok()
}

fn held(info: &MethodVariables, number: u32, offset: Option<u32>) -> Result<VariableLocation, NoValue> {
    let (Some(variables), Some(offset)) = (&info.variables, offset) else { return Err(NoValue::NoDebugInfo) };
    match variables.at(number, offset) {
        VariableState::At(held) => Ok(held),
        VariableState::Dead => Err(NoValue::Dead),
        VariableState::Nothing => Err(NoValue::Nothing),
        VariableState::Ambiguous => Err(NoValue::Ambiguous),
    }
}

/// The memory that arguments take, in bytes.
pub(crate) fn argument_bytes(arguments: &[ArgumentModel]) -> u64 {
    let text = |t: Option<&String>| t.map_or(0, |t| len64(t.len()));
    arguments.iter().fold(0, |sum, a| {
        let texts = [a.name.as_ref(), Some(&a.type_name), a.location.as_ref(), a.reason.as_ref()];
        let own = texts.into_iter().map(text).fold(PLAIN, u64::saturating_add);
        sum.saturating_add(own).saturating_add(a.value.as_ref().map_or(0, value_bytes))
    })
}

fn value_bytes(value: &FieldValue) -> u64 {
    let own = [&value.name, &value.type_name, &value.text].into_iter().fold(PLAIN, |n, t| n.saturating_add(len64(t.len())));
    // The text is counted twice, because the decoded value contains it as well.
    value.fields.iter().map(value_bytes).fold(own.saturating_add(len64(value.text.len())), u64::saturating_add)
}
