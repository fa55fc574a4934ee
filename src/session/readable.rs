//! Names that the C# compiler makes, led back to the method in the source.
//!
//! Source: `GeneratedNames.cs` of Roslyn. `<Main>b__3_0` is a lambda in `Main`, `<Main>g__Twice|3_1` a local function,
//! `<Work>d__5.MoveNext` the body of an async method or iterator; `<>c` and `<>c__DisplayClass3_0` hold lambdas and what they capture.

use crate::session::tasks::generated;

/// `method`, as in a stack trace, for people. The text itself where nothing of it was made by a compiler.
pub(crate) fn readable(method: &str) -> String {
    let open = method.find('(').unwrap_or(method.len());
    let (Some(path), Some(parameters)) = (method.get(..open), method.get(open..)) else { return method.into() };
    let Some((owner, name)) = split_name(path) else { return method.into() };
    if name == "MoveNext"
        && let Some((outer, machine)) = owner.rsplit_once('+')
        && let Some((inner, kind)) = generated(machine)
        && kind.starts_with('d')
    {
        return format!("{}, resumed", of_source(outer, inner, ""));
    }
    if generated(name).is_some() { of_source(owner, name, parameters) } else { method.into() }
}

/// Splits `Owner.Name`: a dot within angle or square brackets belongs to a name or to a generic argument, one at the start of a
/// name to `.ctor`.
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

/// What `name` of type `owner` is in the source.
fn of_source(owner: &str, name: &str, parameters: &str) -> String {
    // Lambdas and what they capture are in types of their own.
    let mut outer = owner;
    while let Some((before, last)) = outer.rsplit_once('+')
        && last.starts_with("<>c")
    {
        outer = before;
    }
    let Some((inner, kind)) = generated(name) else { return format!("{outer}.{name}{parameters}") };
    if inner.is_empty() {
        return format!("{owner}.{name}{parameters}");
    }
    let within = of_source(outer, inner, "");
    match kind.chars().next() {
        Some('b') => format!("lambda{} in {within}", listed(parameters)),
        Some('g') => {
            let local = kind.trim_start_matches("g__").split('|').next().unwrap_or(kind);
            format!("{local}{} in {within}", listed(parameters))
        }
        _ => format!("{within}{parameters}"),
    }
}

/// The parameters of a method without a name of its own: nothing if it has none, as where they are not told.
fn listed(parameters: &str) -> &str {
    if parameters == "()" { "" } else { parameters }
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn names_made_by_the_compiler_lead_to_the_source() {
        for (raw, shown) in [
            ("Lab.Program.Main(System.String[])", "Lab.Program.Main(System.String[])"),
            ("Lab.Program..ctor()", "Lab.Program..ctor()"),
            ("Lab.Program+<>c.<Main>b__3_0(System.Object)", "lambda(System.Object) in Lab.Program.Main"),
            ("Lab.Program+<>c__DisplayClass3_0.<Main>b__1()", "lambda in Lab.Program.Main"),
            ("Lab.Program.<Main>g__Twice|3_1(Int32)", "Twice(Int32) in Lab.Program.Main"),
            ("Lab.Program+<Work>d__5.MoveNext()", "Lab.Program.Work, resumed"),
            ("Lab.Program+<>c+<<Main>b__3_2>d.MoveNext()", "lambda in Lab.Program.Main, resumed"),
            ("Lab.Program+<Work>d__5`1[[System.__Canon]].MoveNext()", "Lab.Program.Work, resumed"),
            ("Lab.Program.<Main>$(System.String[])", "Lab.Program.Main(System.String[])"),
            (
                "System.Collections.Generic.List`1[[System.String]].Add(System.String)",
                "System.Collections.Generic.List`1[[System.String]].Add(System.String)",
            ),
            ("DynamicClass.lambda(<", "DynamicClass.lambda(<"),
            ("<", "<"),
            ("", ""),
        ] {
            assert_eq!(readable(raw), shown, "{raw}");
        }
    }
}
