//! The test harness. A test that finds that this machine does not have what it needs is reported as ignored, with the reason.
//!
//! rustc's harness knows only tests that pass or fail once they run. `libtest-mimic` prints the same lines and takes the same
//! arguments; `#[test]` is the attribute of `tests/attribute`.

use std::cell::RefCell;
use std::fmt::Display;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::common::full;
use crate::slow;

/// A function marked `#[test]`.
pub struct Test {
    /// Path of the function, with the name of the crate.
    pub name: &'static str,
    /// Reason why it runs only on request.
    pub ignored: Option<&'static str>,
    /// Runs it.
    pub run: fn() -> Tested,
}

inventory::collect!(Test);

/// Result of a test that needs something that a machine may not have.
pub type Tested = Result<(), Ignored>;

/// The reason why a test could not run.
#[derive(Debug)]
pub struct Ignored(pub String);

/// Ends a test that cannot run: `return ignored("bash is not installed")`.
pub fn ignored(reason: impl Display) -> Tested {
    Err(Ignored(reason.to_string()))
}

/// Results that a test may return.
pub trait Outcome {
    /// The result as that of a test that may be ignored.
    fn outcome(self) -> Tested;
}

impl Outcome for () {
    fn outcome(self) -> Tested {
        Ok(())
    }
}

impl Outcome for Tested {
    fn outcome(self) -> Tested {
        self
    }
}

/// Text that a test has printed. It is shown if the test fails, or at once with `--nocapture`.
pub type Output = Arc<Mutex<String>>;

thread_local! {
    /// Output of the test that runs on this thread.
    static OUTPUT: RefCell<Option<Output>> = const { RefCell::new(None) };
}

/// Whether output is shown at once.
static SHOWN: OnceLock<bool> = OnceLock::new();

/// The output of the test that runs on this thread, for [`with_output`].
pub fn output() -> Option<Output> {
    OUTPUT.with_borrow(Clone::clone)
}

/// Runs `work` as a part of the test that `output` belongs to.
pub fn with_output<R>(output: Option<Output>, work: impl FnOnce() -> R) -> R {
    let before = OUTPUT.replace(output);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    OUTPUT.set(before);
    done.unwrap_or_else(|panic| panic::resume_unwind(panic))
}

/// Adds a line to the output of the test that runs on this thread.
pub fn print_line(line: &str) {
    match output().filter(|_| SHOWN.get() != Some(&true)) {
        Some(output) => {
            let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
            output.push_str(line);
            output.push('\n');
        }
        None => std::println!("{line}"),
    }
}

/// `println!` for tests.
macro_rules! println {
    ($($part:tt)*) => { $crate::harness::print_line(&format!($($part)*)) };
}

/// Runs the tests that the command line selects.
pub fn main() -> ExitCode {
    let (arguments, filters) = command_line(std::env::args().collect());
    let _ = SHOWN.set(arguments.nocapture || arguments.show_output);
    let default = panic::take_hook();
    panic::set_hook(Box::new(move |panic| if output().is_some() { print_line(&described(panic)) } else { default(panic) }));
    let mut tests: Vec<&Test> = inventory::iter::<Test>().collect();
    tests.sort_by_key(|test| test.name);
    let selected = |name: &str| filters.is_empty() || filters.iter().any(|f| if arguments.exact { name == f } else { name.contains(f) });
    let times = Arc::new(Mutex::new(Vec::new()));
    let trials = tests.iter().map(|test| (test, test.name.split_once("::").map_or(test.name, |(_, path)| path)));
    let trials = trials.filter(|(_, name)| selected(name)).map(|(test, name)| {
        let (run, times) = (test.run, Arc::clone(&times));
        // A test that is requested by name runs.
        let left_out = slow::TESTS.contains(&name) && !full() && !filters.iter().any(|f| f == name);
        let trial = Trial::ignorable_test(name, move || {
            let start = Instant::now();
            let done = if left_out { Ok(Completion::ignored_with(slow::REASON)) } else { run_one(run) };
            times.lock().unwrap_or_else(PoisonError::into_inner).push((start.elapsed(), name));
            done
        });
        trial.with_ignored_flag(test.ignored.is_some())
    });
    let exists = |slow: &&&str| tests.iter().any(|test| test.name.split_once("::").is_some_and(|(_, name)| name == **slow));
    let unknown: Vec<&&str> = slow::TESTS.iter().filter(|slow| !exists(slow)).collect();
    assert!(unknown.is_empty(), "tests/it/slow.rs lists tests that do not exist: {unknown:?}");
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    if std::env::var_os("GCDUMP_TEST_TIMES").is_some() {
        print_times(&mut times.lock().unwrap_or_else(PoisonError::into_inner));
    }
    conclusion.exit_code()
}

/// The parsed command line, and its filters: `libtest-mimic` takes one.
fn command_line(args: Vec<String>) -> (Arguments, Vec<String>) {
    const WITH_VALUE: [&str; 6] = ["--test-threads", "--logfile", "--skip", "--color", "--format", "-Z"];
    let (mut options, mut filters, mut value) = (Vec::new(), Vec::new(), true);
    for arg in args {
        if value || arg.starts_with('-') {
            value = !value && WITH_VALUE.contains(&arg.as_str());
            options.push(arg);
        } else {
            filters.push(arg);
        }
    }
    (Arguments::from_iter(options), filters)
}

fn run_one(run: fn() -> Tested) -> Result<Completion, Failed> {
    let printed = Output::default();
    let done = panic::catch_unwind(|| with_output(Some(Arc::clone(&printed)), run));
    match done {
        Ok(Ok(())) => Ok(Completion::Completed),
        Ok(Err(Ignored(reason))) => Ok(Completion::ignored_with(reason)),
        Err(_) => Err(Failed::from(printed.lock().unwrap_or_else(PoisonError::into_inner).trim_end())),
    }
}

/// Formats a panic like rustc's harness, with a backtrace if `RUST_BACKTRACE` is `full`.
fn described(panic: &panic::PanicHookInfo<'_>) -> String {
    let traced = std::env::var_os("RUST_BACKTRACE").is_some_and(|v| v == "full");
    if traced { format!("{panic}\n{}", std::backtrace::Backtrace::force_capture()) } else { panic.to_string() }
}

/// Prints the slowest tests.
fn print_times(times: &mut [(Duration, &str)]) {
    times.sort_unstable_by(|a, b| b.cmp(a));
    for (time, name) in times.iter().take(40) {
        std::println!("{:8.3} s  {name}", time.as_secs_f64());
    }
}
