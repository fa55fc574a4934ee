//! `#[test]` for gcdump's integration tests, which have their own harness (`tests/it/harness.rs`). rustc's harness cannot report a running
//! test as ignored, and only a running test finds that a dump or a program is missing.

use proc_macro::{TokenStream, TokenTree};

/// Registers a function without parameters as a test. It returns `()`, or `harness::Tested` if it may have to be ignored.
///
/// `#[ignore = "reason"]` and `#[cfg(…)]` after the attribute are honored.
#[proc_macro_attribute]
pub fn test(_: TokenStream, item: TokenStream) -> TokenStream {
    let tokens: Vec<TokenTree> = item.into_iter().collect();
    let name = tokens.windows(2).find(|pair| pair[0].to_string() == "fn").expect("`#[test]` is for functions")[1].to_string();
    let (mut function, mut conditions, mut ignored) = (TokenStream::new(), String::new(), "None".to_string());
    let mut rest = tokens.into_iter().peekable();
    while let Some(token) = rest.next() {
        let attribute = rest.peek().filter(|_| token.to_string() == "#").map(ToString::to_string);
        match attribute {
            Some(text) if text.starts_with("[ignore") => {
                let reason = text.split_once('=').expect("`ignore` needs a reason").1.trim_end_matches(']').trim().to_string();
                ignored = format!("Some({reason})");
                rest.next();
            }
            Some(text) => {
                if text.starts_with("[cfg") {
                    conditions += &format!("#{text}");
                }
                function.extend([token]);
                function.extend(rest.next());
            }
            None => function.extend([token]),
        }
    }
    let registration = format!(
        "{conditions} ::inventory::submit! {{ crate::harness::Test {{ \
            name: concat!(module_path!(), \"::\", \"{name}\"), \
            ignored: {ignored}, \
            run: || crate::harness::Outcome::outcome({name}()), \
        }} }}"
    );
    function.extend(registration.parse::<TokenStream>().expect("the registration is Rust"));
    function
}
