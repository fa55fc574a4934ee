//! Formats type names from method tables, type descriptors and metadata.
//!
//! Source of the runtime's notations: `typestring.cpp`, `sigformat.cpp`.

mod checks;
mod continuations;
mod levels;
mod mono;
mod places;

use std::sync::Arc;

use super::aot::Blobs;
use super::loader::Loader;
use super::method_table::{Category, Generics, MethodTableInfo, MethodTables};
use super::modules::Modules;
use super::type_name::{NameQuality, TypeName};
use crate::base::missed::contradiction;
use crate::base::{Addr, CorElementType, Token, TokenTable};
use crate::contract::Descriptor;
use crate::data::{ArrayClass, Bound, FnPtrTypeDesc, GenericsDictInfo, ParamTypeDesc, TypeDesc, TypeVarTypeDesc, bind};
use crate::memory::Memory;
pub(super) use levels::{Level, counted_levels, levels, split_arity};
use places::{Home, Place};

/// Maximum nesting of types. The runtime limits generic instantiations to about 24.
const MAX_DEPTH: u32 = 48;
/// Maximum number of types in a name. Shared generic arguments double with each level.
const MAX_PARTS: u32 = 4096;
/// Maximum number of arguments of a type. The runtime stores the count in 16 bits, but real types have few arguments: tuples have up to 8.
const MAX_ARGUMENTS: u64 = 1024;
/// Maximum number of dimensions of an array, as in the runtime.
const MAX_RANK: u8 = 32;
/// Name of an object with the static fields of a type, because the object's own type has no name.
const STATICS: &str = "<statics>";
/// Placeholder for parts that exceed a limit.
const CUT: &str = "…";

/// Bit of a type handle that points to a type descriptor instead of a method table.
pub(super) const TYPE_DESC: u64 = 2;

/// Layouts other than those of method tables.
#[derive(Clone, Debug)]
pub(super) struct Layouts {
    dictionary: Option<Bound<GenericsDictInfo>>,
    array: Option<Bound<ArrayClass>>,
    array_base: Option<u64>,
    desc: Option<Bound<TypeDesc>>,
    param: Option<Bound<ParamTypeDesc>>,
    variable: Option<Bound<TypeVarTypeDesc>>,
    function: Option<Bound<FnPtrTypeDesc>>,
}

impl Layouts {
    pub(super) fn bind(descriptor: &Descriptor) -> Layouts {
        Layouts {
            dictionary: bind!(descriptor, GenericsDictInfo { NumTypeArgs, NumDicts }).ok(),
            array: bind!(descriptor, ArrayClass { Rank }).ok(),
            array_base: descriptor.number("ArrayBaseSize").ok(),
            desc: bind!(descriptor, TypeDesc { TypeAndFlags }).ok(),
            param: bind!(descriptor, ParamTypeDesc { TypeArg }).ok(),
            variable: bind!(descriptor, TypeVarTypeDesc { Module, Token }).ok(),
            function: bind!(descriptor, FnPtrTypeDesc { NumArgs, RetAndArgTypes }).ok(),
        }
    }

    /// Number of dimensions of an array.
    pub(super) fn rank(&self, memory: &Memory, tables: &MethodTables, info: &MethodTableInfo) -> Option<u8> {
        // The fixed part consists of the header, the method table and the length, and has three words.
        let fixed = || memory.ptr_bytes().saturating_mul(3);
        // If `ArrayClass` is not published, the base size determines the rank: each dimension has a length and a lower bound of 32 bits
        // after the fixed part (contract `RuntimeTypeSystem`).
        let of_class = |class: &Bound<ArrayClass>| class.get(memory, tables.class(info.address).ok()?, ArrayClass::Rank);
        let of_size = || u8::try_from(u64::from(info.base_size).checked_sub(self.array_base.unwrap_or_else(fixed))? / 8).ok();
        let rank = tables.rank(info).or_else(|| self.array.as_ref().map_or_else(of_size, of_class))?;
        (1..=MAX_RANK).contains(&rank).then_some(rank)
    }

    /// The arguments of a generic instance, as type handles.
    pub(super) fn arguments(&self, memory: &Memory, tables: &MethodTables, info: &MethodTableInfo) -> Option<Vec<Addr>> {
        let dictionary = self.dictionary.as_ref()?;
        let word = memory.ptr_bytes();
        let dictionaries = tables.per_inst_info(info.address).ok()?;
        if dictionaries.is_null() {
            contradiction(info.address, "the method table of a generic instance has no dictionaries");
            return None;
        }
        let counts = dictionaries.minus(word)?;
        let all = dictionary.get(memory, counts, GenericsDictInfo::NumDicts)?;
        let count = u64::from(dictionary.get(memory, counts, GenericsDictInfo::NumTypeArgs)?);
        if all == 0 || count == 0 || count > MAX_ARGUMENTS {
            contradiction(counts, "a generic instance has an impossible number of dictionaries or arguments");
            return None;
        }
        let own = u64::from(all).checked_sub(1)?;
        // Dictionaries of base types come first. The last dictionary belongs to the type itself.
        let dictionary = memory.ptr(dictionaries.element(own, word)).ok()?;
        (0..count).map(|i| memory.ptr(dictionary.element(i, word)).ok()).collect()
    }
}

/// Notation of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    /// Display notation: `Outer<System.Int32>+Inner`.
    Readable,
    /// The runtime's notation of declaring types and generic arguments of methods, which ClrMD and SOS print:
    /// `` Outer`1+Inner[[System.Int32, System.Private.CoreLib]] ``.
    Qualified,
    /// The runtime's notation of parameter types, without enclosing types: `` Inner<Int32> ``.
    Parameter,
    /// The runtime's notation of types in stub signatures: only the name of the definition.
    Definition,
}

impl Notation {
    /// Opening bracket, separator and closing bracket of generic arguments.
    fn brackets(self) -> [&'static str; 3] {
        match self {
            Notation::Readable => ["<", ", ", ">"],
            Notation::Qualified => ["[", ",", "]"],
            Notation::Parameter | Notation::Definition => ["<", ",", ">"],
        }
    }

    /// Whether this is a notation of parameter types.
    fn is_of_parameters(self) -> bool {
        matches!(self, Notation::Parameter | Notation::Definition)
    }
}

/// Formats one name.
pub(super) struct Renderer<'r> {
    memory: &'r Memory,
    tables: &'r MethodTables,
    modules: &'r Modules,
    native_aot: Option<&'r Blobs>,
    loader: &'r Loader,
    layouts: &'r Layouts,
    notation: Notation,
    longest: usize,
    parts_left: u32,
    quality: NameQuality,
    out: String,
}

impl<'r> Renderer<'r> {
    pub(super) fn new(
        memory: &'r Memory,
        tables: &'r MethodTables,
        (modules, native_aot, loader): (&'r Modules, Option<&'r Blobs>, &'r Loader),
        layouts: &'r Layouts,
        longest: usize,
    ) -> Renderer<'r> {
        let (notation, quality, out) = (Notation::Readable, NameQuality::Exact, String::new());
        Renderer { memory, tables, modules, native_aot, loader, layouts, notation, longest, parts_left: MAX_PARTS, quality, out }
    }

    /// Changes the notation.
    pub(super) fn with(self, notation: Notation) -> Renderer<'r> {
        Renderer { notation, ..self }
    }

    pub(super) fn type_name(mut self, mt: Addr) -> TypeName {
        let home = self.method_table(mt, 0);
        self.finish(home)
    }

    /// The name of the type with this handle.
    pub(super) fn handle_name(mut self, handle: Addr) -> TypeName {
        let home = self.handle(handle, 0);
        self.finish(home)
    }

    /// A list of generic arguments in brackets; an empty text if `arguments` is empty.
    pub(super) fn list(mut self, arguments: &[Addr]) -> TypeName {
        self.argument_list(arguments, 0);
        self.finish(None)
    }

    fn finish(self, home: Option<Home>) -> TypeName {
        let (module, token) = home.map_or((None, None), |h| (h.name().map(Into::into), h.token));
        TypeName { name: self.out, source: None, module, token, quality: self.quality }
    }

    fn push(&mut self, text: &str) {
        if self.out.len().saturating_add(text.len()) <= self.longest {
            self.out.push_str(text);
        } else {
            self.parts_left = 0;
            self.cut();
        }
    }

    /// Appends the truncation placeholder, unless it was just appended.
    fn cut(&mut self) {
        self.weaken(NameQuality::ModuleToken);
        if !self.out.ends_with(CUT) {
            self.out.push_str(CUT);
        }
    }

    fn weaken(&mut self, quality: NameQuality) {
        self.quality = self.quality.min(quality);
    }

    /// Writes a placeholder for a type without a name.
    fn unknown(&mut self, address: Addr, depth: u32) -> Option<Home> {
        // A name in which only an inner type is unknown is still useful, so its quality is not `Unknown`.
        self.weaken(if depth == 0 { NameQuality::Unknown } else { NameQuality::ModuleToken });
        self.push(&format!("<unknown {address}>"));
        None
    }

    /// Whether the name has room for another type.
    fn enter(&mut self, depth: u32) -> bool {
        if depth > MAX_DEPTH || self.parts_left == 0 {
            self.cut();
            return false;
        }
        self.parts_left = self.parts_left.saturating_sub(1);
        true
    }

    fn handle(&mut self, handle: Addr, depth: u32) -> Option<Home> {
        if let Some(mono) = self.tables.mono().filter(|_| handle.0 & TYPE_DESC != 0) {
            return self.mono_type(mono, Addr(handle.0 & !TYPE_DESC), depth);
        }
        if handle.0 & TYPE_DESC != 0 { self.type_desc(Addr(handle.0 & !TYPE_DESC), depth) } else { self.method_table(handle, depth) }
    }

    fn method_table(&mut self, mt: Addr, depth: u32) -> Option<Home> {
        if !self.enter(depth) {
            return None;
        }
        if self.tables.free == Some(mt) {
            self.push("Free");
            return None;
        }
        // Absent memory does not disprove the type, but a failed round trip does.
        if self.tables.is_valid(mt) == Ok(false) {
            // Unlike the type itself, the types in its name come from structures of the runtime.
            if depth > 0 {
                contradiction(mt, "a part of a type is not a type");
            }
            return self.unknown(mt, depth);
        }
        let Ok(info) = self.tables.read(mt) else { return self.unknown(mt, depth) };
        if info.is_array { self.array(&info, depth) } else { self.class(&info, depth) }
    }

    fn array(&mut self, info: &MethodTableInfo, depth: u32) -> Option<Home> {
        let Ok(element) = self.tables.element_type(info.address) else { return self.unknown(info.address, depth) };
        let home = self.handle(element, depth.saturating_add(1));
        let suffix = match (info.category, self.layouts.rank(self.memory, self.tables, info)) {
            (Category::SzArray, _) => "[]".to_string(),
            // The array has one dimension with a lower bound.
            (_, Some(1)) if !self.notation.is_of_parameters() => "[*]".to_string(),
            (_, Some(rank)) => format!("[{}]", ",".repeat(usize::from(rank.saturating_sub(1)))),
            (_, None) => {
                self.weaken(NameQuality::ModuleToken);
                "[?]".to_string()
            }
        };
        self.push(&suffix);
        home.map(|h| Home { token: None, ..h })
    }

    fn class(&mut self, info: &MethodTableInfo, depth: u32) -> Option<Home> {
        if self.tables.is_native_aot() {
            return self.native_aot_class(info, depth);
        }
        if let Some(base) = self.tables.continuation(info.address) {
            return self.continuation(info, base);
        }
        let (Ok(module), Ok(rid)) = (self.tables.module(info), self.tables.rid(info)) else { return self.unknown(info.address, depth) };
        if module.is_null() {
            contradiction(info.address, "the method table of a class has no module");
        }
        let Some(token) = Token::new(TokenTable::TypeDef, rid).filter(|token| !token.is_nil()) else {
            contradiction(info.address, "the method table of a class has no type token");
            return self.unknown(info.address, depth);
        };
        let module = self.modules.get(module);
        self.check(info, &module, token);
        let home = Home { module: Place::Module(Arc::clone(&module)), token: Some(token) };
        let levels = module.metadata.as_ref().and_then(|m| levels(m, rid));
        let Some(levels) = levels else {
            if let Some(name) = self.tables.known_name(info) {
                self.push(name);
                return Some(home);
            }
            let Some(name) = module.simple_name() else {
                self.unknown(info.address, depth);
                return Some(home);
            };
            self.weaken(NameQuality::ModuleToken);
            let text = format!("{name}!{token}");
            self.push(&text);
            self.arguments_as_list(info, depth);
            return Some(home);
        };
        self.named(info, &levels, depth);
        Some(home)
    }

    /// Formats a class of a NativeAOT program from the tables for reflection, or from its element type.
    fn native_aot_class(&mut self, info: &MethodTableInfo, depth: u32) -> Option<Home> {
        if self.tables.holds_statics(info.address) {
            self.push(STATICS);
            return None;
        }
        let definition = match self.tables.instance(info) {
            Some(instance) => instance.ok().map(|(definition, _)| definition),
            None => Some(info.address),
        };
        let Some(found) = definition.and_then(|mt| self.native_aot?.definition(mt)) else {
            match self.tables.known_name(info) {
                Some(name) => self.push(name),
                None => return self.unknown(info.address, depth),
            }
            return None;
        };
        let level = |name: &str| Level { name: name.to_string(), arity: split_arity(name).1 };
        let levels: Vec<Level> = found.name.split('+').map(level).collect();
        self.named(info, &levels, depth);
        Some(Home { module: Place::Compiled(Arc::clone(&found.module)), token: None })
    }

    /// Formats a class with its enclosing types and arguments.
    fn named(&mut self, info: &MethodTableInfo, levels: &[Level], depth: u32) {
        match self.notation {
            Notation::Readable => self.readable(info, levels, depth),
            Notation::Qualified => {
                let names: Vec<String> = levels.iter().map(|level| escaped(&level.name)).collect();
                self.push(&names.join("+"));
                self.arguments_as_list(info, depth);
            }
            Notation::Parameter | Notation::Definition => {
                let name = levels.last().map_or("", |level| level.name.as_str());
                let is_short = levels.len() == 1 && self.notation == Notation::Parameter;
                self.push(if is_short { short(name) } else { name });
                if self.notation == Notation::Parameter {
                    self.arguments_as_list(info, depth);
                }
            }
        }
    }

    /// Formats a class for display: each of the nested types has its own generic arguments.
    fn readable(&mut self, info: &MethodTableInfo, levels: &[Level], depth: u32) {
        let arguments = self.arguments(info);
        let mut rest = arguments.as_slice();
        let last = levels.len().saturating_sub(1);
        for (i, level) in levels.iter().enumerate() {
            if i > 0 {
                self.push("+");
            }
            // Compilers need not add the arity (`n) to a name. Arguments that belong to no level by its arity are therefore shown at the last level.
            let mine = if i == last { rest.len() } else { level.arity.min(rest.len()) };
            let (now, later) = rest.split_at_checked(mine).unwrap_or((rest, &[]));
            let name = if now.is_empty() { level.name.as_str() } else { level.plain_name() };
            self.push(name);
            self.argument_list(now, depth);
            rest = later;
        }
    }

    fn arguments_as_list(&mut self, info: &MethodTableInfo, depth: u32) {
        let arguments = self.arguments(info);
        self.argument_list(&arguments, depth);
    }

    fn argument_list(&mut self, arguments: &[Addr], depth: u32) {
        let [open, comma, close] = self.notation.brackets();
        for (i, argument) in arguments.iter().enumerate() {
            self.push(if i == 0 { open } else { comma });
            if self.parts_left == 0 {
                return self.cut();
            }
            let start = self.out.len();
            let home = self.handle(*argument, depth.saturating_add(1));
            if self.notation == Notation::Qualified {
                self.qualify(start, *argument, home);
            }
        }
        if !arguments.is_empty() {
            self.push(close);
        }
    }

    /// Appends the assembly of the generic argument whose text begins at `start`. Type variables have no assembly.
    fn qualify(&mut self, start: usize, argument: Addr, home: Option<Home>) {
        let is_variable =
            is_type_desc(argument) && matches!(self.kind(Addr(argument.0 & !TYPE_DESC)), Some(CorElementType::Var | CorElementType::MVar));
        let Some(assembly) = home.as_ref().and_then(|h| h.simple_name()).filter(|_| !is_variable && self.parts_left > 0) else {
            return;
        };
        let assembly = assembly.replace(']', "\\]");
        self.out.insert(start, '[');
        self.push(", ");
        self.push(&assembly);
        self.push("]");
    }

    /// The arguments of a generic instance, as type handles.
    pub(super) fn arguments(&mut self, info: &MethodTableInfo) -> Vec<Addr> {
        if info.generics != Generics::Instance {
            return Vec::new();
        }
        let found = match self.tables.instance(info) {
            Some(instance) => instance.ok().map(|(_, arguments)| arguments),
            None => self.layouts.arguments(self.memory, self.tables, info),
        };
        found.unwrap_or_else(|| {
            self.quality = self.quality.min(NameQuality::ModuleToken);
            Vec::new()
        })
    }

    fn type_desc(&mut self, desc: Addr, depth: u32) -> Option<Home> {
        if !self.enter(depth) {
            return None;
        }
        match self.kind(desc) {
            Some(CorElementType::Ptr) => self.parameterized(desc, "*", depth),
            Some(CorElementType::ByRef) if self.notation.is_of_parameters() => self.parameterized(desc, " ByRef", depth),
            Some(CorElementType::ByRef) => self.parameterized(desc, "&", depth),
            // Before .NET 8, arrays have type descriptors.
            Some(CorElementType::SzArray) => self.parameterized(desc, "[]", depth),
            // The native layout of a structure, which occurs only in marshalling.
            Some(CorElementType::ValueType) => self.parameterized(desc, "", depth),
            Some(CorElementType::Var | CorElementType::MVar) => self.variable(desc, depth),
            Some(CorElementType::FnPtr) => self.function(desc, depth),
            _ => self.unknown(desc, depth),
        }
    }

    /// Element type of a type descriptor.
    fn kind(&self, desc: Addr) -> Option<CorElementType> {
        let [element, ..] = self.layouts.desc.as_ref()?.get(self.memory, desc, TypeDesc::TypeAndFlags)?.to_le_bytes();
        CorElementType::of(element)
    }

    fn parameterized(&mut self, desc: Addr, suffix: &str, depth: u32) -> Option<Home> {
        let argument = self.layouts.param.as_ref().and_then(|fields| fields.get(self.memory, desc, ParamTypeDesc::TypeArg));
        let Some(argument) = argument else { return self.unknown(desc, depth) };
        let home = self.handle(argument, depth.saturating_add(1));
        self.push(suffix);
        home
    }

    fn variable(&mut self, desc: Addr, depth: u32) -> Option<Home> {
        let read = || {
            let fields = self.layouts.variable.as_ref()?;
            let module = self.modules.get(fields.get(self.memory, desc, TypeVarTypeDesc::Module)?);
            let token = Token::from_bits(fields.get(self.memory, desc, TypeVarTypeDesc::Token)?);
            let name = module.metadata.as_ref()?.generic_param_name(token.rid())?;
            Some((name, Home { module: Place::Module(module), token: None }))
        };
        let Some((name, home)) = read() else { return self.unknown(desc, depth) };
        self.push(&name);
        Some(home)
    }

    /// Formats a function pointer like reflection: `System.Void(System.Int32, System.Int32)`.
    fn function(&mut self, desc: Addr, depth: u32) -> Option<Home> {
        let read = || {
            let fields = self.layouts.function.as_ref()?;
            let count = u64::from(fields.get(self.memory, desc, FnPtrTypeDesc::NumArgs)?);
            if count > MAX_ARGUMENTS {
                return None;
            }
            let types = fields.place(desc, FnPtrTypeDesc::RetAndArgTypes)?;
            let word = self.memory.ptr_bytes();
            (0..count.saturating_add(1)).map(|i| self.memory.ptr(types.element(i, word)).ok()).collect::<Option<Vec<Addr>>>()
        };
        let Some(types) = read() else { return self.unknown(desc, depth) };
        let (result, arguments) = types.split_first()?;
        let home = self.handle(*result, depth.saturating_add(1));
        self.push("(");
        for (i, argument) in arguments.iter().enumerate() {
            if i > 0 {
                self.push(", ");
            }
            if self.parts_left == 0 {
                self.cut();
                break;
            }
            self.handle(*argument, depth.saturating_add(1));
        }
        self.push(")");
        home
    }
}

/// Whether a type handle points to a type descriptor.
pub(super) fn is_type_desc(handle: Addr) -> bool {
    handle.0 & TYPE_DESC != 0
}

/// Escapes the separators of name parts in `name` with backslashes.
fn escaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if matches!(c, ',' | '[' | ']' | '&' | '*' | '+' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Removes the namespace of `name` if it is a primitive type, as parameter notation requires.
pub(super) fn short(name: &str) -> &str {
    let is_primitive = CorElementType::named().any(|(element, own)| own == name && !element.is_reference());
    name.strip_prefix("System.").filter(|_| is_primitive).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtime_notation_escapes_separators() {
        assert_eq!(escaped("Lab.<Main>d__1`1"), "Lab.<Main>d__1`1");
        assert_eq!(escaped("a,b[c]&*+\\"), "a\\,b\\[c\\]\\&\\*\\+\\\\");
        assert_eq!([short("System.Int32"), short("System.String"), short("Lab.Int32")], ["Int32", "System.String", "Lab.Int32"]);
    }

    #[test]
    fn arity_is_the_number_after_the_last_backtick() {
        assert_eq!(split_arity("Dictionary`2"), ("Dictionary", 2));
        assert_eq!(split_arity("Plain"), ("Plain", 0));
        assert_eq!(split_arity("Odd`"), ("Odd`", 0));
        assert_eq!(split_arity("Odd`x1"), ("Odd`x1", 0));
        assert_eq!(split_arity("A`1`2"), ("A`1", 2));
        assert_eq!(split_arity("Huge`99999999999999999999999"), ("Huge`99999999999999999999999", 0));
    }
}
