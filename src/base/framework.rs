//! Distinguishes types and methods of .NET from those of the program by the names of assemblies and namespaces.
//!
//! Source: the assemblies of .NET, ASP.NET Core and Microsoft's packages are `System.*`, `Microsoft.*`, and the facades `mscorlib`,
//! `netstandard` and `WindowsBase`. See <https://learn.microsoft.com/dotnet/standard/design-guidelines/names-of-namespaces>.

/// First parts of the names of assemblies and namespaces of the framework.
const OF_THE_FRAMEWORK: [&str; 2] = ["System", "Microsoft"];
/// Assemblies of the framework with other names.
const FACADES: [&str; 3] = ["mscorlib", "netstandard", "WindowsBase"];
/// First parts of further names: of internal namespaces and types of the framework, and of classes that the runtime generates for stubs and
/// dynamic methods.
const INTERNAL: [&str; 4] = ["Internal", "Interop", "ILStubClass", "DynamicClass"];

/// Whether the namespace of a type or method belongs to the framework. For names whose assembly is not known.
pub(crate) fn is_of_framework(name: &str) -> bool {
    OF_THE_FRAMEWORK.iter().any(|first| starts_with_part(name, first))
}

/// Whether objects of a type are only intermediate steps on a path between objects of the program. That applies to types of the framework,
/// unless they have type arguments of the program, such as `List<Lab.Order>`. It also applies to nested types, which are nodes and buckets
/// of collections: `Dictionary<String, Lab.Order>+Entry[]`.
pub(crate) fn is_intermediate_type(name: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '+' | '`');
    let (outer, rest) = name.split_at(name.find(|c| !is_name(c)).unwrap_or(name.len()));
    let is_nested = || outer.contains('+') || rest.rsplit_once('>').is_some_and(|(_, after)| after.starts_with('+'));
    let mut arguments = rest.split(|c| !is_name(c)).filter(|part| part.starts_with(|c: char| c.is_alphabetic() || c == '_'));
    is_of_framework(outer) && (is_nested() || arguments.all(is_of_framework))
}

/// Whether a method belongs to the framework. The file name of its assembly decides or, if `module` is `None`, the namespace of the method.
pub(crate) fn is_framework_method(module: Option<&str>, method: &str) -> bool {
    let Some(module) = module else { return is_of_framework(method) || INTERNAL.iter().any(|first| starts_with_part(method, first)) };
    let stem = module.strip_suffix(".dll").or_else(|| module.strip_suffix(".exe")).unwrap_or(module);
    FACADES.contains(&stem) || OF_THE_FRAMEWORK.iter().any(|first| starts_with_part(stem, first))
}

/// Whether `first` is the whole name, or the part before its first `.` or `+`.
fn starts_with_part(name: &str, first: &str) -> bool {
    name.strip_prefix(first).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '+']))
}

/// The namespace in the name of a method, as the runtime or gcdump writes it; empty if the method has no namespace.
fn namespace(method: &str) -> &str {
    // If the dump does not have the name of a method of runtime async, gcdump writes the file name of the module instead.
    if let Some(file) = method.strip_prefix("a method of ") {
        return file.split(".dll").next().unwrap_or_default();
    }
    // The text of a stub begins with the type of the runtime's frame, in brackets.
    let method = method.split_once("] ").map_or(method, |(_, rest)| rest);
    let end = method.find(['`', '+', '(', '[', '<']).unwrap_or(method.len());
    let (name, rest) = method.split_at(end);
    // If a backtick or `+` follows, `name` is the name of a type, before type arguments or a nested type. Otherwise, `name` includes the name
    // of the method.
    let of_type = rest.starts_with(['`', '+']);
    let outer = |name: &'_ str| name.rfind('.').unwrap_or(0);
    let type_end = if of_type { name.len() } else { outer(name) };
    let type_name = name.get(..type_end).unwrap_or_default().trim_end_matches('.');
    type_name.get(..outer(type_name)).unwrap_or_default()
}

/// Lists the namespaces of `methods` in order of first occurrence: `System.Threading and System.Net`. Each is cut to its first two parts,
/// and at most three are listed.
pub(crate) fn families<'m>(methods: impl IntoIterator<Item = &'m str>) -> String {
    joined(methods.into_iter().map(namespace))
}

/// Like [`families`], for the display names of types.
pub(crate) fn type_families<'t>(types: impl IntoIterator<Item = &'t str>) -> String {
    let namespace = |name: &'t str| {
        let end = name.find(['<', '+', '[', '`']).unwrap_or(name.len());
        let name = name.get(..end).unwrap_or_default();
        name.get(..name.rfind('.').unwrap_or(0)).unwrap_or_default()
    };
    joined(types.into_iter().map(namespace))
}

fn joined<'n>(namespaces: impl Iterator<Item = &'n str>) -> String {
    const MOST: usize = 3;
    let mut found: Vec<&str> = Vec::new();
    for namespace in namespaces {
        let second = namespace.match_indices('.').nth(1).map_or(namespace.len(), |(at, _)| at);
        let family = namespace.get(..second).unwrap_or_default();
        if !family.is_empty() && !found.contains(&family) {
            found.push(family);
        }
    }
    let more = found.len() > MOST;
    found.truncate(MOST);
    match found.split_last() {
        None => "the runtime".into(),
        Some(_) if more => format!("{}, …", found.join(", ")),
        Some((last, [])) => (*last).into(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_of_the_program_are_not_intermediate() {
        for (name, expected) in [
            ("System.Object[]", true),
            ("System.Collections.Generic.List<System.Object>", true),
            ("System.Collections.Generic.List<Lab.Leaky>", false),
            ("System.Collections.Generic.Dictionary<System.String, Lab.Order>", false),
            ("System.Collections.Generic.Dictionary<System.String, Lab.Order>+Entry[]", true),
            ("System.Threading.Tasks.Task<System.Collections.Generic.List<Lab.Order[]>>", false),
            ("Lab.Order", false),
        ] {
            assert_eq!(is_intermediate_type(name), expected, "{name}");
        }
    }

    #[test]
    fn assemblies_decide_before_namespaces() {
        for (module, method, framework) in [
            (Some("System.Private.CoreLib.dll"), "System.Threading.Thread.StartCallback()", true),
            (Some("System.Console.dll"), "Interop+Sys.Write(IntPtr)", true),
            (Some("Microsoft.AspNetCore.Http.dll"), "Microsoft.AspNetCore.Http.Endpoint.Run()", true),
            (Some("mscorlib.dll"), "System.Object.Finalize()", true),
            (Some("lab.dll"), "System.Lab.Own()", false),
            (Some("SystemShop.dll"), "SystemShop.Cart.Add()", false),
            (Some("lab.dll"), "Internal.Lab.Own()", false),
            (None, "System.Threading.Thread.StartCallback()", true),
            (None, "Interop+Sys.Write(IntPtr)", true),
            (None, "ILStubClass.IL_STUB_PInvoke(IntPtr)", true),
            (None, "Systems.Own.Run()", false),
            (None, "Lab.Program.Main()", false),
        ] {
            assert_eq!(is_framework_method(module, method), framework, "{module:?} {method}");
        }
    }

    #[test]
    fn namespaces_end_before_types() {
        for (method, expected) in [
            ("System.Threading.Thread.StartCallback()", "System.Threading"),
            ("System.Threading.Tasks.Task`1[[System.Int32, System.Private.CoreLib]].GetResultCore(Boolean)", "System.Threading.Tasks"),
            ("System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart()", "System.Threading"),
            ("System.Linq.Enumerable.ToList[[System.Int32]](System.Collections.Generic.IEnumerable`1<Int32>)", "System.Linq"),
            ("System.Object..ctor()", "System"),
            ("System.Environment.FailFast(System.String)", "System"),
            ("Interop+Sys.Write(IntPtr)", ""),
            ("[InlinedCallFrame] System.Threading.Monitor.Wait(Int32)", "System.Threading"),
            ("[InlinedCallFrame]", ""),
            ("a method of Microsoft.AspNetCore.Http.dll", "Microsoft.AspNetCore.Http"),
            ("its task", ""),
            ("", ""),
            ("é", ""),
        ] {
            assert_eq!(namespace(method), expected, "{method}");
        }
    }

    #[test]
    fn each_family_is_listed_once() {
        assert_eq!(families(["System.Threading.Thread.Start()", "System.Threading.Tasks.Task.Run()"]), "System.Threading");
        assert_eq!(families(["System.IO.File.Read()", "System.Net.Http.Client.Get()"]), "System.IO and System.Net");
        assert_eq!(families(["A.B.C()", "D.E.F()", "G.H.I()", "J.K.L()"]), "A, D, G, …");
        assert_eq!(
            type_families([
                "System.Collections.Concurrent.ConcurrentDictionary<Lab.Key, Lab.Dog>+Node[]",
                "System.Object[]",
                "System.IO.Pipe"
            ]),
            "System.Collections, System and System.IO"
        );
        assert_eq!(families(["[DebuggerU2MCatchHandlerFrame]", "Interop+Sys.Read()"]), "the runtime");
    }
}
