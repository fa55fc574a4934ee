//! The method that a state machine belongs to.
//!
//! Source: `GeneratedNames.cs` of Roslyn. `<Fetch>d__3` is the state machine of `Fetch`, `<<Go>b__29_6>d` of a lambda in `Go`,
//! `<<Outer>g__Local|0_0>d` of the local function `Local` of `Outer`. Brackets are matched, and names need not be identifiers:
//! top-level code is `<<Main>$>d__0`, and explicit interface methods have dots.

/// The method whose state machine has the type `name`, as rendered: `Lab.Service<System.String>+<Fetch>d__3<System.Int32>` gives
/// `Lab.Service<System.String>.Fetch<System.Int32>`. `None` for names of other compilers and languages.
pub(crate) fn method_of(name: &str) -> Option<String> {
    let (outer, machine) = match last_plus(name) {
        Some(at) => (name.get(..at)?, name.get(at.checked_add(1)?..)?),
        None => ("", name),
    };
    let (inner, kind) = generated(machine)?;
    let behind = kind.strip_prefix('d')?;
    // `d`, or `d__3`, then the arguments.
    let numbered = behind.strip_prefix("__").unwrap_or(behind);
    let arguments = numbered.trim_start_matches(|c: char| c.is_ascii_digit());
    if inner.is_empty() || !(arguments.is_empty() || arguments.starts_with('<')) {
        return None;
    }
    let owner = without_closures(outer);
    Some(match generated(inner) {
        Some((of, kind)) if kind.starts_with("b__") => format!("lambda{arguments} in {}", qualified(owner, of)),
        Some((of, kind)) if kind.starts_with("g__") => {
            let local = kind.get(3..)?;
            let local = local.rsplit_once('|').map_or(local, |(name, _)| name);
            format!("{local}{arguments} in {}", qualified(owner, of))
        }
        _ => format!("{}{arguments}", qualified(owner, inner)),
    })
}

fn qualified(owner: &str, method: &str) -> String {
    if owner.is_empty() { method.into() } else { format!("{owner}.{method}") }
}

/// Place of the last `+` outside of brackets.
fn last_plus(name: &str) -> Option<usize> {
    let (mut depth, mut last) = (0i32, None);
    for (at, c) in name.char_indices() {
        match c {
            '<' | '[' => depth = depth.saturating_add(1),
            '>' | ']' => depth = depth.saturating_sub(1),
            '+' if depth == 0 => last = Some(at),
            _ => {}
        }
    }
    last
}

/// The parts of `<inner>kind…`, with matching brackets.
pub(crate) fn generated(name: &str) -> Option<(&str, &str)> {
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

/// The type in the source: lambdas and what they capture are in types of their own.
fn without_closures(owner: &str) -> &str {
    let mut outer = owner;
    while let Some(at) = last_plus(outer)
        && let (Some(before), Some(last)) = (outer.get(..at), outer.get(at.saturating_add(1)..))
        && last.starts_with("<>c")
    {
        outer = before;
    }
    outer
}

#[cfg(test)]
mod tests {
    use super::method_of;

    #[test]
    fn state_machines_lead_to_their_methods() {
        for (machine, method) in [
            ("Lab.Service+<Fetch>d__3", "Lab.Service.Fetch"),
            ("Lab.Service<System.String>+<Fetch>d__3<System.Int32>", "Lab.Service<System.String>.Fetch<System.Int32>"),
            ("Lab.Program+<>c+<<Go>b__29_6>d", "lambda in Lab.Program.Go"),
            ("Lab.Program+<>c__DisplayClass0_0<System.Int32>+<<Go>b__0>d", "lambda in Lab.Program.Go"),
            ("Lab.Program+<<Outer>g__Local|0_0>d", "Local in Lab.Program.Outer"),
            ("Lab.Program+<<Outer>g__Local|0_0>d<System.Int32>", "Local<System.Int32> in Lab.Program.Outer"),
            ("Program+<<Main>$>d__0", "Program.<Main>$"),
            ("Program+<>c+<<<Main>$>b__0_0>d", "lambda in Program.<Main>$"),
            ("Program+<<<Main>$>g__Work|0_1>d", "Work in Program.<Main>$"),
            ("Lab.Store+<Lab.IStore.Load>d__7", "Lab.Store.Lab.IStore.Load"),
            (
                "Lab.Store<A+B>+<Lab.IStore<A+B>.Load>d__7<System.Collections.Generic.List<C+D>>",
                "Lab.Store<A+B>.Lab.IStore<A+B>.Load<System.Collections.Generic.List<C+D>>",
            ),
            ("<Alone>d__0", "Alone"),
        ] {
            assert_eq!(method_of(machine).as_deref(), Some(method), "{machine}");
        }
        // F#, Visual Basic, unknown, not a state machine.
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
            assert_eq!(method_of(other), None, "{other}");
        }
    }
}
