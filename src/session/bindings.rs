//! The type names and the stack walker of a runtime, each bound once. Neither needs any other part of the session.

use std::sync::{Arc, OnceLock};

use super::process::Process;
use crate::base::missed::{tried, watched};
use crate::base::{Collector, Limits, Notes};
use crate::clr::loader::Loader;
use crate::clr::type_names::TypeNames;
use crate::contract::{ContractError, Description, Descriptor};
use crate::dump::DumpFile;
use crate::memory::Memory;
use crate::stack::CodeBytes;
use crate::stack::code::CodeMap;
use crate::stack::frames::FrameReader;
use crate::stack::walk::StackWalker;

/// Type names, with notes on the layouts for type names that the descriptor does not have.
type Named = (Result<Arc<TypeNames>, ContractError>, Notes);

/// The stack walker, with notes on the layouts for stack walks that the descriptor does not have.
type Walked = (Result<StackWalker, ContractError>, Notes);

/// The type names and the stack walker of a runtime, with the process and the description that they are bound to.
#[derive(Debug)]
pub(crate) struct Bindings {
    process: Arc<Process>,
    description: Description,
    names: OnceLock<Named>,
    stacks: OnceLock<Walked>,
}

impl Bindings {
    pub(super) fn new(process: Arc<Process>, description: Description) -> Bindings {
        Bindings { process, description, names: OnceLock::new(), stacks: OnceLock::new() }
    }

    pub(super) fn process(&self) -> &Arc<Process> {
        &self.process
    }

    pub(super) fn description(&self) -> &Description {
        &self.description
    }

    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.process.memory
    }

    pub(crate) fn file(&self) -> &DumpFile {
        &self.process.file
    }

    pub(crate) fn limits(&self) -> &Arc<Limits> {
        &self.process.limits
    }

    pub(crate) fn descriptor(&self) -> &Arc<Descriptor> {
        &self.description.descriptor
    }

    /// Binds readers in a separate descriptor scope. Adds notes on the layouts that the readers request but the descriptor does not have.
    pub(crate) fn scoped<T>(&self, notes: &Collector, bind: impl FnOnce(&Arc<Descriptor>) -> T) -> T {
        let d = self.descriptor().scope();
        let bound = bind(&d);
        notes.extend(&d.losses());
        bound
    }

    /// Type names, bound once, so that all namers share one cache of modules.
    pub(crate) fn type_names(&self) -> Result<&Arc<TypeNames>, ContractError> {
        self.named().0.as_ref().map_err(Clone::clone)
    }

    /// Notes on layouts for type names that the descriptor does not have.
    pub(crate) fn name_losses(&self) -> &Notes {
        &self.named().1
    }

    fn named(&self) -> &Named {
        self.names.get_or_init(|| {
            let (scope, search) = (self.descriptor().scope(), Some(self.process.search.clone()));
            let (names, missed) = watched(|| {
                TypeNames::new(self.memory(), &scope, Some(&self.description.site), self.file().facts.os, search, self.limits())
                    .map(Arc::new)
            });
            let mut losses = scope.losses();
            losses.add_missed(&missed);
            (names, losses)
        })
    }

    /// The stack walker, bound once.
    ///
    /// # Errors
    /// [`ContractError`] if the runtime does not describe its code or its frames.
    pub(crate) fn stack_walker(&self) -> Result<&StackWalker, ContractError> {
        self.walked().0.as_ref().map_err(Clone::clone)
    }

    /// Notes on layouts for stack walks that the descriptor does not have.
    pub(crate) fn stack_losses(&self) -> &Notes {
        &self.walked().1
    }

    fn walked(&self) -> &Walked {
        self.stacks.get_or_init(|| {
            let scope = self.descriptor().scope();
            let (walker, missed) = watched(|| self.bind_stack_walker(&scope));
            let mut losses = scope.losses();
            losses.add_missed(&missed);
            (walker, losses)
        })
    }

    /// Binds the stack walker.
    ///
    /// # Errors
    /// [`ContractError`] if the runtime does not describe its code or its frames.
    fn bind_stack_walker(&self, d: &Descriptor) -> Result<StackWalker, ContractError> {
        if d.is_native_aot() {
            return Err(ContractError::NativeAot { what: "what their frames hold" });
        }
        let facts = &self.file().facts;
        let mut modules = Vec::new();
        let bytes = match self.type_names() {
            Ok(names) => {
                let loader = Loader::bind(self.memory(), d, self.limits())?;
                modules = tried(|| loader.modules());
                CodeBytes::with_files(self.memory(), names.modules().for_answer(), loader)
            }
            Err(_) => CodeBytes::new(self.memory()),
        };
        let frames = FrameReader::bind(d, facts.arch, facts.os)?;
        let listed = self.file().modules.iter().map(|m| m.range());
        let images = listed.chain(self.file().kernel_library()).collect();
        Ok(StackWalker::new(CodeMap::bind(&bytes, d)?, frames, self.description.site.image.clone(), images, &modules, facts.os))
    }
}
