// extra: the program of the dumps *-tasklocks-heap and *-keys-heap.
//
//   extra locks|leaks TRUTH     prints "ready" and waits for ever
//
// locks: a thread holds a lock and waits for a task whose method needs it; a reader and an upgrading thread of a ReaderWriterLockSlim; a monitor
//        and a mutex of the kernel; a semaphore that is never released; a method posted to a context whose thread waits for it; a join.
// leaks: a marker under the key "k3" of every kind of dictionary; timers, linked sources of cancellation and handlers of a static event
//        without end.
//
// Compiled with Mono's mcs and run on .NET 8 and 10 as shared/lab/src-stacks/build.sh does it: an mscorlib of forwarders to
// System.Private.CoreLib for the types that `monodis --typeref` lists (ConcurrentDictionary`2: System.Collections.Concurrent; SortedList:
// System.Collections.NonGeneric; Console: System.Console). Then
//   env -i PATH=/usr/bin DOTNET_gcServer=0 DOTNET_TieredCompilation=0 net10/stacks locks truth.json &      # leaks: without the last variable
//   net10/createdump -h -f net10-wks-tasklocks-heap.dmp PID
using System; using System.Collections; using System.Collections.Concurrent; using System.Collections.Generic; using System.Collections.Specialized; using System.IO; using System.Linq; using System.Reflection; using System.Runtime.CompilerServices; using System.Text; using System.Threading; using System.Threading.Tasks;
namespace Extra {
  public class Marker { public string Where; }
  public class Sub { public int N; public void On(object s, EventArgs e) { N++; } }
  public static class Hub { public static event EventHandler Changed; }
  public class UiContext : SynchronizationContext {
    public Queue<KeyValuePair<SendOrPostCallback, object>> Queue = new Queue<KeyValuePair<SendOrPostCallback, object>>();
    public override void Post(SendOrPostCallback d, object state) { lock (Queue) Queue.Enqueue(new KeyValuePair<SendOrPostCallback, object>(d, state)); }
    public override SynchronizationContext CreateCopy() { return this; }
  }
  public static class P {
    static List<object> keep = new List<object>(); static StringBuilder truth = new StringBuilder("{");
    static unsafe ulong Addr(object o) { if (o == null) return 0; TypedReference r = __makeref(o); return (ulong)**(IntPtr**)(&r); }
    static string Hex(object o) { return "0x" + Addr(o).ToString("x"); }
    static void Say(string k, string v) { lock (truth) truth.Append(truth.Length > 1 ? "," : "").Append("\n\"" + k + "\": \"" + v + "\""); }
    static Thread Go(string name, Action a) { var t = new Thread(() => { Say(name, Thread.CurrentThread.ManagedThreadId.ToString()); a(); }) { IsBackground = true, Name = name }; t.Start(); keep.Add(t); return t; }
    static object A = new object(), C = new object(), D = new object(), W = new object(); static TaskCompletionSource<int> go = new TaskCompletionSource<int>(), never = new TaskCompletionSource<int>();
    static SemaphoreSlim sem = new SemaphoreSlim(0); static Mutex mutex = new Mutex(); static ReaderWriterLockSlim rw = new ReaderWriterLockSlim(), rw2 = new ReaderWriterLockSlim();
    static async Task NeedsA() { await go.Task; lock (A) { Console.WriteLine("never"); } }
    static async Task Sem(int i) { await sem.WaitAsync(); Console.WriteLine(i); }
    static async Task<int> Ui(Task<int> t) { int n = await t; return n + 1; }
    static async Task<int> Outer(Task<int> t) { return await Ui(t) + 1; }
    static void Locks() {
      var holder = Go("holderA", () => { lock (A) { var t = NeedsA(); Say("needsA", Hex(t)); ThreadPool.QueueUserWorkItem(_ => go.SetResult(1)); t.Wait(); } });
      for (int i = 0; i < 3; i++) keep.Add(Sem(i)); Go("semSync", () => sem.Wait());
      var e1 = new ManualResetEventSlim(); var e2 = new ManualResetEventSlim();
      Go("monThenMutex", () => { lock (C) { e1.Set(); e2.Wait(); mutex.WaitOne(); } });
      Go("mutexThenMon", () => { mutex.WaitOne(); e2.Set(); e1.Wait(); lock (C) { } });
      var e3 = new ManualResetEventSlim(); var e4 = new ManualResetEventSlim();
      Go("reader", () => { rw.EnterReadLock(); e3.Set(); e4.Wait(); lock (D) { } });
      Go("upgrader", () => { e3.Wait(); lock (D) { rw.EnterUpgradeableReadLock(); e4.Set(); rw.EnterWriteLock(); } });
      var e5 = new ManualResetEventSlim();
      Go("waiter", () => { lock (W) { e5.Set(); Monitor.Wait(W); } });
      var ui = new UiContext(); keep.Add(ui); var src = new TaskCompletionSource<int>(TaskCreationOptions.RunContinuationsAsynchronously);
      Go("ui", () => { SynchronizationContext.SetSynchronizationContext(ui); var t = Outer(src.Task); Say("uiTask", Hex(t)); src.SetResult(1); int r = t.Result; });
      Go("joiner", () => holder.Join()); Say("holderThread", Hex(holder));
      Go("victim", () => { e5.Wait(); Thread.Sleep(300); lock (A) { } });
      Thread.Sleep(1500); Say("A", Hex(A)); Say("C", Hex(C)); Say("D", Hex(D)); Say("W", Hex(W)); Say("sem", Hex(sem)); Say("mutex", Hex(mutex)); Say("rw", Hex(rw)); Say("uiQueue", ui.Queue.Count.ToString());
    }
    static CancellationTokenSource app = new CancellationTokenSource(); static ConcurrentDictionary<string, Timer> timers = new ConcurrentDictionary<string, Timer>();
    static object Frozen(Dictionary<string, object> d) {
      try { var t = Type.GetType("System.Collections.Frozen.FrozenDictionary, System.Collections.Immutable", true);
      var m = t.GetMethods().First(x => x.Name == "ToFrozenDictionary" && x.GetGenericArguments().Length == 2 && x.GetParameters().Length == 2); return m.MakeGenericMethod(typeof(string), typeof(object)).Invoke(null, new object[] { d, null }); } catch (Exception e) { Console.Error.WriteLine(e); return null; } }
    static object Make(string ty, string asm, bool sorted) {
      try { var t = Type.GetType(ty + ", " + asm, true); var g = t.MakeGenericType(typeof(string), typeof(object)); var o = g.GetField("Empty") != null ? g.GetField("Empty").GetValue(null) : Activator.CreateInstance(g); return o; } catch (Exception e) { Console.Error.WriteLine(ty + e.Message); return null; } }
    static void Leaks() {
      for (int i = 0; i < 200; i++) timers["t" + i] = new Timer(o => { }, "s" + i, 3600000 + i, 60000);
      for (int i = 0; i < 500; i++) keep.Add(CancellationTokenSource.CreateLinkedTokenSource(app.Token, CancellationToken.None));
      for (int i = 0; i < 300; i++) Hub.Changed += new Sub { N = i }.On;
      Action<string, object> mark = (n, o) => { keep.Add(o); };
      Func<string, Marker> m = n => { var x = new Marker { Where = n }; return x; };
      var names = new List<KeyValuePair<string, Marker>>(); Func<string, Marker> nm = n => { var x = new Marker { Where = n }; names.Add(new KeyValuePair<string, Marker>(n, x)); return x; };
      Func<int, string, object> v = (i, n) => i == 3 ? (object)nm(n) : new object();
      var sd = new SortedDictionary<string, object>(); for (int i = 0; i < 8; i++) sd["k" + i] = v(i, "SortedDictionary"); keep.Add(sd);
      var sl = new SortedList<string, object>(); for (int i = 0; i < 8; i++) sl["k" + i] = v(i, "SortedList"); keep.Add(sl);
      var osl = new SortedList(); for (int i = 0; i < 8; i++) osl["k" + i] = v(i, "SortedListOld"); keep.Add(osl);
      var ht = new Hashtable(); for (int i = 0; i < 8; i++) ht["k" + i] = v(i, "Hashtable"); keep.Add(ht);
      var ld = new ListDictionary(); for (int i = 0; i < 8; i++) ld["k" + i] = v(i, "ListDictionary"); keep.Add(ld);
      var hd = new HybridDictionary(); for (int i = 0; i < 5; i++) hd["k" + i] = v(i, "HybridDictionary"); keep.Add(hd);
      var cd = new ConcurrentDictionary<string, object>(); for (int i = 0; i < 8; i++) cd["k" + i] = v(i, "ConcurrentDictionary"); keep.Add(cd);
      var dd = new Dictionary<string, object>(); for (int i = 0; i < 20; i++) dd["k" + i] = v(i, "Dictionary"); keep.Add(dd);
      var kv = new List<KeyValuePair<string, object>>(); for (int i = 0; i < 8; i++) kv.Add(new KeyValuePair<string, object>("k" + i, v(i, "PairList"))); keep.Add(kv);
      var fd = new Dictionary<string, object>(); for (int i = 0; i < 20; i++) fd["k" + i] = v(i, "Frozen"); var f = Frozen(fd); if (f != null) keep.Add(f); fd.Clear();
      var fs = new Dictionary<string, object>(); for (int i = 0; i < 4; i++) fs["k" + i] = v(i, "FrozenSmall"); f = Frozen(fs); if (f != null) keep.Add(f); fs.Clear();
      foreach (var ty in new[] { "ImmutableDictionary", "ImmutableSortedDictionary" }) { var e = Make("System.Collections.Immutable." + ty + "`2", "System.Collections.Immutable", false); if (e == null) continue;
        var add = e.GetType().GetMethods().First(x => x.Name == "Add" && x.GetParameters().Length == 2); for (int i = 0; i < 8; i++) e = add.Invoke(e, new object[] { "k" + i, v(i, ty) }); keep.Add(e); }
      var od = Make("System.Collections.Generic.OrderedDictionary`2", "System.Collections", false); if (od != null) { var add = od.GetType().GetMethods().First(x => x.Name == "Add" && x.GetParameters().Length == 2); for (int i = 0; i < 8; i++) add.Invoke(od, new object[] { "k" + i, v(i, "OrderedDictionary") }); keep.Add(od); }
      GC.Collect(); GC.WaitForPendingFinalizers(); GC.Collect(); GC.Collect(); Say("utc", DateTime.UtcNow.ToString("o")); 
      for (int i = 0; i < names.Count; i++) Say("marker " + names[i].Key, Hex(names[i].Value));
    }
    public static int Main(string[] a) {
      Console.Error.WriteLine("start " + a[0]);
      if (a[0] == "locks") Locks(); else Leaks();
      File.WriteAllText(a[1], truth.Append("\n}").ToString());
      Console.WriteLine("ready"); Console.Out.Flush(); Thread.Sleep(Timeout.Infinite); GC.KeepAlive(keep); return 0;
    }
  }
}
