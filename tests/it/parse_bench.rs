use crate::mutation::base;
use std::time::Duration;
#[derive(Clone, Copy)]
struct Instant(u64);
impl Instant {
    fn now() -> Instant {
        Instant(std::fs::read_to_string("/proc/thread-self/schedstat").unwrap().split(' ').next().unwrap().parse().unwrap())
    }
    fn elapsed(&self) -> Duration {
        Duration::from_nanos(Instant::now().0 - self.0)
    }
}
use gcdump::internals::session::{Dump, OpenOptions};
#[test]
fn parse_bench() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(bench);
}
fn bench() {
    for (what, bases) in [("synthetic", base::synthetic()), ("real", base::real())] {
        let mut by = std::collections::BTreeMap::<String, (Duration, u32)>::new();
        for base in &bases {
            let file = base.file();
            for number in 0..20usize {
                let mut rng = base::Rng::new(number as u64);
                let path = file.path().to_str().unwrap();
                let mut clis = vec![];
                for forms in base::COMMANDS.iter() {
                    let form = &forms[number % forms.len()];
                    let mut args = base.command(form, path, &mut rng);
                    args.push("--no-local-files".into());
                    if !args.iter().any(|a| a == "--dot" || a == "--format") {
                        args.extend(["--format", ["table", "json", "csv", "ndjson"][number % 4]].map(String::from));
                    }
                    if form.iter().any(|w| w == "OUT") {
                        args.push("--force".into());
                    }
                    clis.push((form[0].clone(), crate::common::parsed(&args)));
                }
                let mut add = |k: String, t: Instant| {
                    let e = by.entry(k).or_default();
                    e.0 += t.elapsed();
                    e.1 += 1;
                };
                let t = Instant::now();
                let dump = Dump::open(path, &OpenOptions::default()).unwrap();
                add("0 open".into(), t);
                let t = Instant::now();
                let _ = dump.runtime().unwrap().heap();
                add("0 heap".into(), t);
                let dumps = [dump.clone(), dump.clone(), dump];
                let all = Instant::now();
                for (name, cli) in &clis {
                    let t = Instant::now();
                    crate::common::captured(|s| cli.run_on(&dumps, s));
                    add(name.clone(), t);
                }
                add("1 all on".into(), all);
                let all = Instant::now();
                for (_, cli) in &clis {
                    crate::common::captured(|s| gcdump::cli::run_parsed(cli, s));
                }
                add("1 all anew".into(), all);
            }
        }
        println!("{what}");
        for (k, (t, n)) in by {
            println!("  {k:20} {:?}", t / n);
        }
    }
}
