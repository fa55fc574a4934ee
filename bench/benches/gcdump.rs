//! Benchmarks of the building blocks of answers: opening, the walk, the graph, dominators, names, and formats.
//!
//! ```sh
//! cargo bench --manifest-path bench/Cargo.toml
//! GCDUMP_BENCH_DUMP=big.dmp cargo bench --manifest-path bench/Cargo.toml -- walk
//! ```
//!
//! Figures are per object or byte of a dump of the corpus, which is small and fits the processor's cache. They show the cost of a change, not of a
//! dump of gigabytes; `docs/performance.md` has those.

use std::hint::black_box;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use gcdump::cli::{self, Exit, Streams};
use gcdump::internals::base::Store;
use gcdump::internals::graph::{Csr, CsrBuilder, Dominators};
use gcdump::{Dump, Heap, analysis};

fn path() -> PathBuf {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../dumps/corpus/net10-wks-asyncmix-heap.dmp.zst");
    std::env::var_os("GCDUMP_BENCH_DUMP").map_or_else(|| corpus.into(), PathBuf::from)
}

fn open() -> Dump {
    gcdump::open(path()).expect("GCDUMP_BENCH_DUMP is a dump")
}

/// Opens a heap without cached results.
fn fresh() -> Heap {
    open().runtime().expect("a runtime").heap().expect("a heap")
}

fn heap(c: &mut Criterion) {
    let totals = fresh().stat().expect("objects").data.totals;
    let mut group = c.benchmark_group("heap");
    group.measurement_time(Duration::from_secs(8)).sample_size(20);
    group.bench_function("open", |b| b.iter(|| black_box(open())));
    group.throughput(Throughput::Elements(totals.count));
    let stat = |heap: &Heap| black_box(heap.stat().expect("objects").types.len());
    group.bench_function("stat", |b| b.iter_batched_ref(fresh, |heap| stat(heap), BatchSize::PerIteration));
    let unreachable = |heap: &Heap| black_box(analysis::unreachable(heap, &Default::default()).expect("a graph").unreachable.count);
    group.bench_function("graph", |b| b.iter_batched_ref(fresh, |heap| unreachable(heap), BatchSize::PerIteration));
    let retained = |heap: &Heap| black_box(analysis::retained(heap, &Default::default()).expect("a graph").data.totals.objects);
    group.bench_function("retained", |b| b.iter_batched_ref(fresh, |heap| retained(heap), BatchSize::PerIteration));
    // The heap has cached its sums, so only the names are made.
    let heap = fresh();
    stat(&heap);
    group.throughput(Throughput::Elements(totals.types));
    group.bench_function("names", |b| b.iter(|| stat(&heap)));
    group.finish();
}

const NODES: u32 = 1_000_000;

/// Makes a graph in which each node but the first has an edge from an earlier node, usually a near one, and some have another edge.
fn edges() -> Csr {
    let mut seed = 1u64;
    let mut below = |bound: u32| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(((seed >> 33) * u64::from(bound)) >> 31).expect("below a number of 32 bits")
    };
    let mut lists = vec![Vec::new(); NODES as usize];
    for node in 1..NODES {
        let reach = if below(5) > 0 { node.min(10_000) } else { node };
        lists[(node - 1 - below(reach)) as usize].push(node);
        if below(8) == 0 {
            lists[below(NODES) as usize].push(node);
        }
    }
    let mut rows = CsrBuilder::with_capacity(&Store::default(), lists.len(), lists.len());
    for list in lists {
        list.into_iter().for_each(|target| rows.push_edge(target));
        rows.end_node().expect("32 bits suffice");
    }
    rows.finish().expect("all targets are nodes")
}

fn dominators(c: &mut Criterion) {
    let edges = edges();
    let mut group = c.benchmark_group("graph");
    group.sample_size(20).throughput(Throughput::Elements(NODES.into()));
    group.bench_function("dominators", |b| b.iter(|| black_box(Dominators::compute(&edges, &[&[0]]))));
    group.bench_function("reversed", |b| b.iter(|| black_box(edges.reversed())));
    group.finish();
}

fn formats(c: &mut Criterion) {
    let dump = open();
    let mut group = c.benchmark_group("formats");
    group.sample_size(20);
    for format in ["table", "json", "ndjson", "csv"] {
        let args = ["gcdump", "objects", "--format", format, "--top", "0", "x.dmp"];
        let mut parsed = None;
        let (mut out, mut err) = (io::sink(), io::sink());
        let mut streams = Streams::piped(&mut out, &mut err);
        match cli::parse(args.map(Into::into), &mut streams) {
            Ok(cli) => parsed = Some(cli),
            Err(exit) => assert_eq!(exit, Exit::Ok),
        }
        let Some(cli) = parsed else { continue };
        group.bench_function(format!("objects --format {format}"), |b| {
            b.iter(|| {
                let (mut out, mut err) = (io::sink(), io::sink());
                cli.run_on(std::slice::from_ref(&dump), Streams::piped(&mut out, &mut err))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, heap, dominators, formats);
criterion_main!(benches);
