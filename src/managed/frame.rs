//! Stack frames and their variables.

use std::fmt;
use std::sync::Arc;

use super::Method;
use super::value::{Naming, What};
use crate::base::{Addr, Answer, Collector, Missing};
use crate::clr::values::Place;
use crate::managed::{Object, Value};
use crate::model::StackFrameKind;
use crate::session::variables::{FoundVariable, VariableAt};
use crate::session::{Error, FrameReader, Runtime, ValueError};
use crate::stack::walked::{self, ManagedFrame, Walk};

/// A walked stack, shared by its frames.
#[derive(Debug)]
pub(super) struct Stack {
    runtime: Runtime,
    walk: Arc<Walk>,
}

impl Stack {
    pub(super) fn new(runtime: &Runtime, walk: Arc<Walk>) -> Stack {
        Stack { runtime: runtime.clone(), walk }
    }
}

/// A stack frame: see [`Thread::frames`](super::Thread::frames).
#[derive(Clone)]
pub struct Frame {
    stack: Arc<Stack>,
    index: usize,
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frame({} {} at {})", self.index, self.kind(), self.sp())
    }
}

impl Frame {
    pub(super) fn new(stack: &Arc<Stack>, index: usize) -> Frame {
        Frame { stack: Arc::clone(stack), index }
    }

    fn walked(&self) -> Option<&walked::Frame> {
        self.stack.walk.frames.get(self.index)
    }

    fn managed(&self) -> Option<&ManagedFrame> {
        self.walked()?.managed()
    }

    /// Whether the frame is a managed method or a frame of the runtime.
    pub fn kind(&self) -> StackFrameKind {
        if self.managed().is_some() { StackFrameKind::Managed } else { StackFrameKind::Runtime }
    }

    /// The address where execution continues: a return address, or the next instruction of the innermost frame. `None` for most frames of
    /// the runtime.
    pub fn ip(&self) -> Option<Addr> {
        self.walked()?.ip()
    }

    /// The stack pointer of the frame; for a frame of the runtime, the address of the frame.
    pub fn sp(&self) -> Addr {
        self.walked().map_or(Addr::NULL, walked::Frame::sp)
    }

    /// The method that the frame executes. For a frame of the runtime, the method that the frame implements or calls. `None` for other frames of the
    /// runtime, and if the method's name is not in the dump.
    pub fn method(&self) -> Option<Method> {
        let runtime = &self.stack.runtime;
        Method::at(runtime, runtime.method_of(self.walked()?)?)
    }

    /// The type of a runtime frame, such as `InlinedCallFrame`; `None` for methods.
    pub fn frame_type(&self) -> Option<&str> {
        self.walked()?.type_name().map(|name| &**name)
    }

    /// Source file and line, if a PDB is available.
    pub fn source(&self) -> Option<(String, u32)> {
        let (runtime, frame) = (&self.stack.runtime, self.managed()?);
        let readers = runtime.readers().ok()?;
        let lines = FrameReader::new(runtime, &readers.namer, readers.methods.clone(), false);
        let line = lines.line(&self.method()?.name, frame)?;
        Some((line.file.as_str().into(), line.line))
    }

    /// The arguments of the method, `this` first. Empty for frames of the runtime. Also empty, with a note, if the signature is not in the
    /// dump.
    ///
    /// # Errors
    /// [`Error::Contract`] if the runtime does not describe types.
    pub fn arguments(&self) -> Result<Answer<Vec<Variable>>, Error> {
        self.variables("arguments", |reader, walk, frame| reader.arguments(walk, frame))
    }

    /// The local variables of the method. Their names come from the PDB if one is available. Otherwise each name is `local_` and the slot. Empty for
    /// frames of the runtime. Also empty, with a note, if the types of the variables are not in the dump.
    ///
    /// # Errors
    /// See [`Frame::arguments`].
    pub fn locals(&self) -> Result<Answer<Vec<Variable>>, Error> {
        self.variables("local variables", |reader, walk, frame| reader.locals(walk, frame))
    }

    fn variables(
        &self,
        what: &str,
        find: impl FnOnce(&mut FrameReader<'_>, &Walk, &ManagedFrame) -> Option<Vec<FoundVariable>>,
    ) -> Result<Answer<Vec<Variable>>, Error> {
        let notes = Collector::new();
        let Some(frame) = self.managed() else { return Ok(notes.finish(Vec::new())) };
        let runtime = &self.stack.runtime;
        let (heap, readers) = (runtime.heap()?, runtime.readers()?);
        let mut reader = FrameReader::new(runtime, &readers.namer, readers.methods.clone(), true);
        let found = find(&mut reader, &self.stack.walk, frame);
        reader.note_lines(&notes);
        reader.note_variables(&notes);
        let method = self.method().map_or_else(|| frame.code.method_desc.to_string(), |method| method.name().to_string());
        if found.is_none() {
            notes.add(
                Missing::Metadata,
                frame.code.method_desc,
                format!("the {what} of {method} are unknown: their types are not in the dump"),
            );
        }
        let variable = |found: FoundVariable| {
            let name = found.name.clone().unwrap_or_default();
            let label = format!("variable \"{name}\" of {method}");
            let naming = |register| Naming { name: name.clone(), type_name: found.type_name.clone(), label: label.clone(), register };
            let value = match found.at {
                Ok(VariableAt::Memory(place)) => Ok(Value::new(&heap, place, What::Named(Arc::new(naming(None))))),
                Ok(VariableAt::Register(place, register, saved_at)) => {
                    let place = Place { address: saved_at.unwrap_or(Addr::NULL), ..place };
                    Ok(Value::new(&heap, place, What::Named(Arc::new(naming(Some(register))))))
                }
                Err(why) => Err(ValueError::NoPlace { what: format!("{label} ({})", why.reason()) }),
            };
            Variable { name: found.name, type_name: found.type_name, location: found.location, value }
        };
        Ok(notes.finish(found.into_iter().flatten().map(variable).collect()))
    }
}

/// An argument or a local variable of a frame.
#[derive(Clone, Debug)]
pub struct Variable {
    name: Option<String>,
    type_name: String,
    location: Option<String>,
    value: Result<Value, ValueError>,
}

impl Variable {
    /// Name of the variable, or `this`; `None` if the metadata does not name it.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Full name of the declared type.
    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    /// The location according to the debug info, as in a disassembly: `[rbp-0x8]`, `rdi`.
    pub fn location(&self) -> Option<&str> {
        self.location.as_deref()
    }

    /// The value of the variable.
    ///
    /// # Errors
    /// [`ValueError::NoPlace`], with the reason, if the location at this instruction is unknown.
    pub fn value(&self) -> Result<&Value, Error> {
        self.value.as_ref().map_err(|e| e.clone().into())
    }

    /// The object that the variable refers to: see [`Value::object`].
    ///
    /// # Errors
    /// See [`Variable::value`] and [`Value::object`].
    pub fn object(&self) -> Result<Object, Error> {
        self.value()?.object()
    }
}
