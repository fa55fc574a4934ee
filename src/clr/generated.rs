//! Compiler-generated names of C#, translated to the source. All conversions of such names to display text are here.
//!
//! Source: `GeneratedNames.cs` and `SynthesizedClosureMethod.cs` of Roslyn. `<Main>b__3_0` is the first lambda of `Main`, which is method 3
//! of its type. `<>c` has the lambdas that capture nothing. `<>c__DisplayClass3_0` is a closure class of method 3, in which the same lambda
//! is named `<Main>b__0`. `<Main>g__Twice|3_1` is a local function, and `<Work>d__5.MoveNext` the body of an async method or an iterator.
//! `<Go>b__29_6` and `<Outer>g__Local|0_0` have the state machines `<<Go>b__29_6>d` and `<<Outer>g__Local|0_0>d`. Brackets are matched, and
//! names need not be identifiers: top-level code is `<Main>$`, and explicit interface implementations have dots.
//!
//! The numbers of lambdas are always shown. The ordinals of state machines and local functions are shown if the compiler generated several
//! for the same source name (`is_shared`), for example for overloads.

use std::borrow::Cow;

use crate::base::hash::{Map, Set};

/// Prefix of the names of closure classes.
const CLOSURE: &str = "<>c";
/// The method of top-level code: the compiler's name, and the name to display.
const TOP_LEVEL: (&str, &str) = ("<Main>$", "Main");

/// A method as in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    path: String,
    /// The parameters to show after the path.
    parameters: Parameters,
    /// A remark such as ` (lambda)`, which is shown last.
    remark: &'static str,
}

/// The parameters of a method to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parameters {
    All,
    /// All parameters, but not an empty `()`, because lambdas are not called by name.
    Some,
    /// No parameters, because the parameters of `MoveNext` are not the parameters of the method.
    None,
}

impl Source {
    /// The text to display, with these parameters: `Lab.Program.Main.b__3_0(System.Object) (lambda)`.
    pub(crate) fn with(&self, parameters: &str) -> String {
        let parameters = match self.parameters {
            Parameters::All => parameters,
            Parameters::Some if parameters != "()" => parameters,
            _ => "",
        };
        format!("{}{parameters}{}", self.path, self.remark)
    }
}

/// The source of the method `raw`, with or without parameters. `None` if the name is not compiler-generated.
pub(crate) fn method(raw: &str, is_shared: impl FnOnce() -> bool) -> Option<Source> {
    let (owner, name) = split_name(parameters_of(raw).0)?;
    if name == "MoveNext" {
        return kickoff(owner, is_shared).map(|k| Source { path: k.shown, parameters: Parameters::None, remark: ", resumed" });
    }
    member(owner, name, is_shared)
}

/// Splits a method into its name and its parameters.
pub(crate) fn parameters_of(raw: &str) -> (&str, &str) {
    raw.split_at(raw.find('(').unwrap_or(raw.len()))
}

/// The method to which the generated P/Invoke `raw` belongs: `System.Threading.Thread.Join` for
/// `System.Threading.Thread.<Join>g____PInvoke|20_0(System.IntPtr, Int32)`.
pub(crate) fn importer(raw: &str) -> Option<String> {
    let (owner, name) = split_name(parameters_of(raw).0)?;
    let (method, kind) = generated(name)?;
    kind.starts_with("g____PInvoke|").then(|| qualified(owner, method))
}

/// The method to which a state machine belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kickoff {
    /// The compiler's name: `Lab.Program+<>c.<Go>b__29_6`.
    pub(crate) raw: String,
    /// The name to display: `Lab.Program.Go.b__29_6 (lambda)`.
    pub(crate) shown: String,
}

/// The method whose state machine has the type `machine`. For `Lab.Service<System.String>+<Fetch>d__3<System.Int32>` it is
/// `Lab.Service<System.String>.Fetch<System.Int32>`. `None` for names from other compilers and languages.
pub(crate) fn kickoff(machine: &str, is_shared: impl FnOnce() -> bool) -> Option<Kickoff> {
    let (owner, level) = nested(machine);
    let (inner, kind) = generated(level)?;
    let after = kind.strip_prefix('d')?;
    // `d` or `d__3`, then the arguments.
    let arguments = after.strip_prefix("__").unwrap_or(after).trim_start_matches(|c: char| c.is_ascii_digit());
    if inner.is_empty() || !(arguments.is_empty() || arguments.starts_with('<')) {
        return None;
    }
    let name = format!("{inner}{arguments}");
    let raw = qualified(owner, &name);
    let shown = if generated(inner).is_some() {
        member(owner, &name, is_shared)?.with("")
    } else {
        let number = kind.strip_suffix(arguments).filter(|_| is_shared());
        let number = number.map_or_else(String::new, |n| format!(" ({n})"));
        format!("{}{number}", qualified(outside(owner).0, &name))
    };
    Some(Kickoff { raw, shown })
}

/// The heap box of an async method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Boxed<'n> {
    /// Type of the state machine.
    pub(crate) machine: &'n str,
    /// Whether the box has a finalizer. Boxes have a finalizer while events of the task library are traced.
    is_finalizable: bool,
}

impl<'n> Boxed<'n> {
    /// Recognizes a box by the name of its type: `AsyncTaskMethodBuilder<…>+AsyncStateMachineBox<machine>` and similar types in
    /// `System.Runtime.CompilerServices`.
    pub(crate) fn of(name: &'n str) -> Option<Boxed<'n>> {
        let inner = name.strip_prefix("System.Runtime.CompilerServices.")?;
        let (_, level) = nested(inner);
        let (kind, arguments) = level.strip_suffix('>')?.split_once('<')?;
        let is_finalizable = match kind {
            "AsyncStateMachineBox" | "StateMachineBox" => false,
            "DebugFinalizableAsyncStateMachineBox" => true,
            _ => return None,
        };
        Some(Boxed { machine: arguments, is_finalizable })
    }

    /// The type to display: `async Lab.Service.Fetch`.
    pub(crate) fn shown(self, is_shared: impl FnOnce() -> bool) -> Option<String> {
        let kind = if self.is_finalizable { " (finalizable)" } else { "" };
        kickoff(self.machine, is_shared).map(|k| format!("async {}{kind}", k.shown))
    }
}

/// The text to display for `raw`, a type or a method, with the numbers that the compiler added.
pub(crate) fn numbered(raw: &str) -> Option<String> {
    let of_type = || Boxed::of(raw)?.shown(|| true);
    of_type().or_else(|| method(raw, || true).map(|source| source.with(parameters_of(raw).1)))
}

/// The part of `name` that all state machines or local functions with the same source name share. Examples: `<Fetch>d` of `<Fetch>d__3`,
/// `<Outer>g__Local` of `<Outer>g__Local|0_0` and of its state machine. `None` for other names.
pub(crate) fn shared_part(name: &str) -> Option<&str> {
    let (inner, kind) = generated(name)?;
    if kind.starts_with('d') && !inner.is_empty() {
        // Lambdas and top-level code are unique.
        let plain = generated(inner).is_none();
        return if plain { name.get(..inner.len().checked_add("<>d".len())?) } else { shared_part(inner) };
    }
    let local = kind.strip_prefix("g__")?;
    let (local, _) = local.split_once('|')?;
    name.get(..inner.len().checked_add("<>g__".len())?.checked_add(local.len())?)
}

/// The source form of a field, or of a path through structures: `Total` for `<Total>k__BackingField`, the field of an automatic property.
pub(crate) fn field(path: &str) -> String {
    let (mut out, mut rest) = (String::new(), path);
    while let Some(name) = rest.split('.').next().filter(|_| !rest.is_empty()) {
        // Names of explicit interface implementations have dots.
        let property = generated(rest).and_then(|(name, after)| Some((name, after.strip_prefix("k__BackingField")?)));
        let (name, after) = match property.filter(|(name, after)| !name.is_empty() && (after.is_empty() || after.starts_with('.'))) {
            Some(property) => property,
            None => (name, rest.get(name.len()..).unwrap_or_default()),
        };
        out.push_str(name);
        let next = after.strip_prefix('.');
        out.push_str(next.map_or("", |_| "."));
        rest = next.unwrap_or_default();
    }
    out
}

/// The source names that several state machines share, determined from the names of types only.
#[derive(Debug, Default)]
pub(crate) struct SharedNames(Set<String>);

impl SharedNames {
    /// The source names that are not unique among types with these names, with or without generic arguments.
    pub(crate) fn of<'n>(types: impl Iterator<Item = &'n str>) -> SharedNames {
        let mut known: Map<String, String> = Map::default();
        let mut shared = Set::default();
        for name in types.map(|name| Boxed::of(name).map_or(name, |found| found.machine)) {
            let Some((common, own)) = common(name) else { continue };
            match known.get(&common) {
                Some(other) if *other != own => {
                    shared.insert(common);
                }
                Some(_) => {}
                None => {
                    known.insert(common, own);
                }
            }
        }
        SharedNames(shared)
    }

    /// Whether the source name of this state machine is not unique.
    pub(crate) fn has(&self, machine: &str) -> bool {
        common(machine).is_some_and(|(common, _)| self.0.contains(&common))
    }
}

/// The source name of a state machine, and its own name, both without generic arguments.
fn common(machine: &str) -> Option<(String, String)> {
    let (owner, level) = nested(machine);
    let part = shared_part(level)?;
    let (inner, kind) = generated(level)?;
    let number = kind.split(['<', '`']).next().unwrap_or(kind);
    let (mut outer, mut levels) = (outside(owner).0, Vec::new());
    while !outer.is_empty() {
        let (before, last) = nested(outer);
        levels.push(last.split(['<', '`']).next().unwrap_or(last));
        outer = before;
    }
    levels.reverse();
    let owner = levels.join("+");
    Some((format!("{owner}+{part}"), format!("{owner}+<{inner}>{number}")))
}

/// Whether a type of this name is a closure class, which has lambdas and captured variables.
pub(crate) fn is_closure(name: &str) -> bool {
    name.starts_with(CLOSURE)
}

/// The source of the member `name` of type `owner`.
fn member(owner: &str, name: &str, is_shared: impl FnOnce() -> bool) -> Option<Source> {
    let (outer, closure) = outside(owner);
    if name == TOP_LEVEL.0 {
        return Some(Source { path: qualified(outer, TOP_LEVEL.1), parameters: Parameters::All, remark: "" });
    }
    let (method, kind) = generated(name)?;
    if method.is_empty() {
        return None;
    }
    let method = if method == TOP_LEVEL.0 { TOP_LEVEL.1 } else { method };
    let within = format!("{}{}", qualified(outer, method), closure.arguments);
    if let Some(lambda) = kind.strip_prefix("b__") {
        let (number, arguments) = lambda.split_at(lambda.find('<').unwrap_or(lambda.len()));
        // The number of the method is in the name of a closure class, and not in the names of its lambdas.
        let number = match number.contains('_') || closure.number.is_empty() {
            true => Cow::Borrowed(number),
            false => format!("{}_{number}", closure.number).into(),
        };
        return Some(Source { path: format!("{within}.b__{number}{arguments}"), parameters: Parameters::Some, remark: " (lambda)" });
    }
    let (local, rest) = kind.strip_prefix("g__")?.split_once('|')?;
    let (numbers, arguments) = rest.split_at(rest.find('<').unwrap_or(rest.len()));
    let numbers = if is_shared() { format!("|{numbers}") } else { String::new() };
    let path = format!("{within}.{local}{numbers}{arguments}");
    Some(Source { path, parameters: Parameters::Some, remark: " (local function)" })
}

/// Data about the method of a lambda, from the names of the enclosing closure classes.
#[derive(Clone, Copy, Default)]
struct Closure<'n> {
    /// Number of the method in its type; empty if unknown.
    number: &'n str,
    /// Generic arguments in brackets; empty if the type has none.
    arguments: &'n str,
}

/// The type around the closure classes at the end of `owner`, and the data from the innermost of them.
fn outside(owner: &str) -> (&str, Closure<'_>) {
    let (mut outer, mut closure) = (owner, None);
    loop {
        let (before, last) = nested(outer);
        if before.is_empty() || !is_closure(last) {
            return (outer, closure.unwrap_or_default());
        }
        closure = closure.or_else(|| {
            let kind = last.get("<>".len()..)?;
            let (class, arguments) = kind.split_at(kind.find('<').unwrap_or(kind.len()));
            let number = class.strip_prefix("c__DisplayClass").and_then(|n| n.rsplit_once('_')).map_or("", |(number, _)| number);
            Some(Closure { number, arguments })
        });
        outer = before;
    }
}

fn qualified(owner: &str, method: &str) -> String {
    if owner.is_empty() { method.into() } else { format!("{owner}.{method}") }
}

/// The enclosing types (empty for a top-level type) and the innermost type.
fn nested(name: &str) -> (&str, &str) {
    let (mut depth, mut last) = (0i32, None);
    for (at, c) in name.char_indices() {
        match c {
            '<' | '[' => depth = depth.saturating_add(1),
            '>' | ']' => depth = depth.saturating_sub(1),
            '+' if depth == 0 => last = Some(at),
            _ => {}
        }
    }
    last.and_then(|at| Some((name.get(..at)?, name.get(at.checked_add(1)?..)?))).unwrap_or(("", name))
}

/// Splits `Owner.Name`. A dot within angle or square brackets belongs to a name or a generic argument; a dot at the start of a name belongs to
/// `.ctor`.
fn split_name(path: &str) -> Option<(&str, &str)> {
    let (mut depth, mut last) = (0i32, None);
    let mut before = ' ';
    for (at, c) in path.char_indices() {
        match c {
            '<' | '[' => depth = depth.saturating_add(1),
            '>' | ']' => depth = depth.saturating_sub(1),
            '.' if depth == 0 && before != '.' => last = Some(at),
            _ => {}
        }
        before = c;
    }
    let at = last?;
    Some((path.get(..at)?, path.get(at.checked_add(1)?..)?))
}

/// Splits `<inner>kind…` into its two parts, with matching brackets.
fn generated(name: &str) -> Option<(&str, &str)> {
    let rest = name.strip_prefix('<')?;
    let mut depth = 1i32;
    let close = rest.char_indices().find(|(_, c)| {
        depth = depth.saturating_add(match c {
            '<' => 1,
            '>' => -1,
            _ => 0,
        });
        depth == 0
    })?;
    Some((rest.get(..close.0)?, rest.get(close.0.checked_add(1)?..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readable(raw: &str, shared: bool) -> String {
        method(raw, || shared).map_or_else(|| raw.to_string(), |source| source.with(parameters_of(raw).1))
    }

    #[test]
    fn methods_have_source_names() {
        for (raw, shown) in [
            ("Lab.Program.Main(System.String[])", "Lab.Program.Main(System.String[])"),
            ("Lab.Program..ctor()", "Lab.Program..ctor()"),
            ("Lab.Program+<>c.<Main>b__3_0(System.Object)", "Lab.Program.Main.b__3_0(System.Object) (lambda)"),
            ("Lab.Program+<>c__DisplayClass3_0.<Main>b__1()", "Lab.Program.Main.b__3_1 (lambda)"),
            ("Lab.Program+<>c__DisplayClass3#1_0.<Main>b__0#2()", "Lab.Program.Main.b__3#1_0#2 (lambda)"),
            ("Lab.Program+<>c__DisplayClass3_0+<>c__DisplayClass3_1.<Main>b__2()", "Lab.Program.Main.b__3_2 (lambda)"),
            ("Lab.Program+<>c__3<System.Int32>.<Main>b__3_0()", "Lab.Program.Main<System.Int32>.b__3_0 (lambda)"),
            ("Lab.Program.<Main>b__3_0<System.Int32>()", "Lab.Program.Main.b__3_0<System.Int32> (lambda)"),
            ("Lab.Program.<Main>g__Twice|3_1(Int32)", "Lab.Program.Main.Twice(Int32) (local function)"),
            ("Lab.Program.<Main>g__Twice|3_1<System.Int32>(Int32)", "Lab.Program.Main.Twice<System.Int32>(Int32) (local function)"),
            ("Lab.Program+<Work>d__5.MoveNext()", "Lab.Program.Work, resumed"),
            ("Lab.Program+<>c+<<Main>b__3_2>d.MoveNext()", "Lab.Program.Main.b__3_2 (lambda), resumed"),
            ("Program.<Main>$(System.String[])", "Program.Main(System.String[])"),
            ("Program+<>c.<<Main>$>b__0_0()", "Program.Main.b__0_0 (lambda)"),
            // The entry point that the compiler generates for an async `Main`, in addition to that method.
            ("Program.<Main>(System.String[])", "Program.<Main>(System.String[])"),
            ("Lab.Point.<Clone>$()", "Lab.Point.<Clone>$()"),
            ("Lab.Program+<Each>d__7.<>m__Finally1()", "Lab.Program+<Each>d__7.<>m__Finally1()"),
            (
                "System.Collections.Generic.List`1[[System.String]].Add(System.String)",
                "System.Collections.Generic.List`1[[System.String]].Add(System.String)",
            ),
            ("DynamicClass.lambda(<", "DynamicClass.lambda(<"),
            ("<", "<"),
            ("", ""),
        ] {
            assert_eq!(readable(raw, false), shown, "{raw}");
        }
    }

    #[test]
    fn equal_source_names_keep_their_numbers() {
        for (raw, shown) in [
            ("Lab.Program.<Main>g__Twice|3_1(Int32)", "Lab.Program.Main.Twice|3_1(Int32) (local function)"),
            ("Lab.Program+<Work>d__5.MoveNext()", "Lab.Program.Work (d__5), resumed"),
            ("Lab.Program+<Work>d__5<System.Int32>.MoveNext()", "Lab.Program.Work<System.Int32> (d__5), resumed"),
            ("Lab.Program+<<Main>g__Twice|3_1>d.MoveNext()", "Lab.Program.Main.Twice|3_1 (local function), resumed"),
            ("Lab.Program+<>c+<<Main>b__3_2>d.MoveNext()", "Lab.Program.Main.b__3_2 (lambda), resumed"),
        ] {
            assert_eq!(readable(raw, true), shown, "{raw}");
        }
        assert_eq!(shared_part("<Fetch>d__3"), Some("<Fetch>d"));
        assert_eq!(shared_part("<Lab.IStore.Load>d__7`1"), Some("<Lab.IStore.Load>d"));
        assert_eq!(shared_part("<Outer>g__Local|0_0"), Some("<Outer>g__Local"));
        assert_eq!(shared_part("<<Outer>g__Local|0_0>d"), Some("<Outer>g__Local"));
        for unique in ["<Go>b__0_1", "<<Go>b__0_1>d", "<>c", "<>c__DisplayClass0_0", "Go", "<Main>$", "<x>5__2", "<>d__3", "<", ""] {
            assert_eq!(shared_part(unique), None, "{unique}");
        }
    }

    #[test]
    fn state_machines_have_the_names_of_their_methods() {
        for (machine, raw, shown) in [
            ("Lab.Service+<Fetch>d__3", "Lab.Service.Fetch", "Lab.Service.Fetch"),
            (
                "Lab.Service<System.String>+<Fetch>d__3<System.Int32>",
                "Lab.Service<System.String>.Fetch<System.Int32>",
                "Lab.Service<System.String>.Fetch<System.Int32>",
            ),
            ("Lab.Program+<>c+<<Go>b__29_6>d", "Lab.Program+<>c.<Go>b__29_6", "Lab.Program.Go.b__29_6 (lambda)"),
            (
                "Lab.Program+<>c__DisplayClass0_0<System.Int32>+<<Go>b__0>d",
                "Lab.Program+<>c__DisplayClass0_0<System.Int32>.<Go>b__0",
                "Lab.Program.Go<System.Int32>.b__0_0 (lambda)",
            ),
            ("Lab.Program+<<Outer>g__Local|0_0>d", "Lab.Program.<Outer>g__Local|0_0", "Lab.Program.Outer.Local (local function)"),
            (
                "Lab.Program+<<Outer>g__Local|0_0>d<System.Int32>",
                "Lab.Program.<Outer>g__Local|0_0<System.Int32>",
                "Lab.Program.Outer.Local<System.Int32> (local function)",
            ),
            ("Program+<<Main>$>d__0", "Program.<Main>$", "Program.Main"),
            ("Program+<>c+<<<Main>$>b__0_0>d", "Program+<>c.<<Main>$>b__0_0", "Program.Main.b__0_0 (lambda)"),
            ("Program+<<<Main>$>g__Work|0_1>d", "Program.<<Main>$>g__Work|0_1", "Program.Main.Work (local function)"),
            ("Lab.Store+<Lab.IStore.Load>d__7", "Lab.Store.Lab.IStore.Load", "Lab.Store.Lab.IStore.Load"),
            (
                "Lab.Store<A+B>+<Lab.IStore<A+B>.Load>d__7<System.Collections.Generic.List<C+D>>",
                "Lab.Store<A+B>.Lab.IStore<A+B>.Load<System.Collections.Generic.List<C+D>>",
                "Lab.Store<A+B>.Lab.IStore<A+B>.Load<System.Collections.Generic.List<C+D>>",
            ),
            ("<Alone>d__0", "Alone", "Alone"),
        ] {
            let found = kickoff(machine, || false);
            assert_eq!(found, Some(Kickoff { raw: raw.into(), shown: shown.into() }), "{machine}");
        }
        assert_eq!(kickoff("Lab.Service+<Fetch>d__3", || true).unwrap().shown, "Lab.Service.Fetch (d__3)");
        // F#, Visual Basic, an unknown compiler, and a type that is not a state machine.
        for other in [
            "Lib.Work@12-3",
            "Lib.VB$StateMachine_3_Work",
            "lab!0x02000012",
            "Lab.Program+<>c",
            "Lab.A+<x>5__2",
            "A+<>d__3",
            "A+<x>dim",
            "",
            "<",
            "+",
        ] {
            assert_eq!(kickoff(other, || false), None, "{other}");
        }
    }

    #[test]
    fn boxes_are_named_after_their_methods() {
        let shown = |name: &str| Boxed::of(name).and_then(|b| b.shown(|| false));
        let builder = "System.Runtime.CompilerServices.AsyncTaskMethodBuilder<System.Threading.Tasks.VoidTaskResult>";
        let of = |kind: &str, machine: &str| shown(&format!("{builder}+{kind}<{machine}>"));
        assert_eq!(of("AsyncStateMachineBox", "Lab.Mix+<Fan>d__18").as_deref(), Some("async Lab.Mix.Fan"));
        assert_eq!(of("AsyncStateMachineBox", "Lab.Mix+<>c+<<Go>b__0_1>d").as_deref(), Some("async Lab.Mix.Go.b__0_1 (lambda)"));
        assert_eq!(of("DebugFinalizableAsyncStateMachineBox", "Lab.Mix+<Fan>d__18").as_deref(), Some("async Lab.Mix.Fan (finalizable)"));
        assert_eq!(
            shown(
                "System.Runtime.CompilerServices.PoolingAsyncValueTaskMethodBuilder<System.Int32>+StateMachineBox<Lab.Mix+<Pool>d__2<A, B>>"
            )
            .as_deref(),
            Some("async Lab.Mix.Pool<A, B>")
        );
        assert_eq!(of("AsyncStateMachineBox", "System.Runtime.CompilerServices.IAsyncStateMachine"), None, "of any machine");
        assert_eq!(of("AsyncStateMachineBox", "Lib.Work@12-3"), None);
        assert_eq!(of("AsyncStateMachineBox", "Lab.Mix+<Fan>d__18").map(|_| shown("Lab.Mix+<Fan>d__18")), Some(None));
        assert_eq!(shown(&format!("{builder}+AsyncStateMachineBox<Lab.Mix+<Fan>d__18>[]")), None);
    }

    #[test]
    fn fields_of_properties_have_their_names() {
        assert_eq!(field("<Path>k__BackingField"), "Path");
        assert_eq!(field("_options.<Max_Size>k__BackingField"), "_options.Max_Size");
        assert_eq!([field("<Lab.IPath.Path>k__BackingField._x"), field("a..b"), field("")], ["Lab.IPath.Path._x", "a..b", ""]);
        assert_eq!([field("_path"), field("<i>5__2"), field("<>k__BackingField")], ["_path", "<i>5__2", "<>k__BackingField"]);
    }

    #[test]
    fn state_machines_of_overloads_are_recognized_by_names() {
        let names =
            ["Lab.A+<Run>d__1", "Lab.A+<Run>d__2`1", "Lab.A+<Go>d__3", "Lab.B<System.Int32>+<Run>d__1", "Lab.B`1+<Run>d__1", "Lab.C"];
        let shared = SharedNames::of(names.into_iter());
        assert!(shared.has("Lab.A+<Run>d__1") && shared.has("Lab.A+<Run>d__2<System.String>"));
        assert!(!shared.has("Lab.A+<Go>d__3") && !shared.has("Lab.B<System.String>+<Run>d__1") && !shared.has("Lab.C"));
    }

    #[test]
    fn parts_of_imports_belong_to_their_methods() {
        let join = "System.Threading.Thread.<Join>g____PInvoke|20_0(System.IntPtr, Int32)";
        assert_eq!(importer(join).as_deref(), Some("System.Threading.Thread.Join"));
        assert_eq!(importer("Lab.Program.<Main>g__Local|0_0(Int32)"), None);
    }

    #[test]
    fn no_name_causes_a_panic() {
        for text in ["<<<>>>d__3.MoveNext(", "+<>c.<>b__", "A+<>c.<B>b__<", "A.<B>g__|", "<B>g__C|<", "é+<>cé.<é>b__é(é)", "A+<>c+<>c+<>c"]
        {
            let _ = (method(text, || true), kickoff(text, || true).is_some(), shared_part(text), Boxed::of(text), importer(text));
        }
    }
}
