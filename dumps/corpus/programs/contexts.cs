// contexts: the program of the dump net10-wks-contexts-heap. Fifteen collectible load contexts that were asked to unload, each held by one
// thing that is not an object of its types: Type and reflection objects, a delegate of a static method, a thread in its code. The last one is not held.
// Compiled and run as extra.cs says; the part below "plugin" is plugin.dll, beside the program.
using System; using System.Collections.Generic; using System.IO; using System.Reflection; using System.Threading; using System.Runtime.CompilerServices;
public static class Contexts {
  public static List<object> Keep = new List<object>(); public static Action Act; 
  static Type Alc; static List<WeakReference> weak = new List<WeakReference>();
  public static void Host<T>(ManualResetEvent e) { e.Set(); while (e != null) Thread.Sleep(100); }
  [MethodImpl(MethodImplOptions.NoInlining)]
  static void Leak(string name, Action<Type> hold) {
    var c = Activator.CreateInstance(Alc, new object[]{ name, true });
    var a = (Assembly)Alc.GetMethod("LoadFromStream", new[]{ typeof(Stream) }).Invoke(c, new object[]{ new MemoryStream(File.ReadAllBytes("plugin.dll")) });
    hold(a.GetType("Plug.Thing"));
    Alc.GetMethod("Unload").Invoke(c, null);
  }
  static void Run(ThreadStart s) { var t = new Thread(s); t.IsBackground = true; t.Start(); }
  [MethodImpl(MethodImplOptions.NoInlining)]
  static void All() {
    Leak("type", t => Keep.Add(t)); Leak("method", t => Keep.Add(t.GetMethod("M"))); Leak("field", t => Keep.Add(t.GetField("Id"))); Leak("assembly", t => Keep.Add(t.Assembly)); Leak("module", t => Keep.Add(t.Module));
    Leak("array-type", t => Keep.Add(t.MakeArrayType())); Leak("generic-type", t => Keep.Add(typeof(List<>).MakeGenericType(t))); Leak("pointer-type", t => Keep.Add(t.MakePointerType())); Leak("ctor", t => Keep.Add(t.GetConstructors()[0]));
    Leak("static-delegate", t => Act = (Action)Delegate.CreateDelegate(typeof(Action), t.GetMethod("Work"))); Leak("parameter", t => Keep.Add(t.GetMethod("Loop").GetParameters()[0]));
    Leak("generic-method", t => Keep.Add(typeof(Contexts).GetMethod("Host").MakeGenericMethod(t)));
    Leak("thread", t => { var e = new ManualResetEvent(false); var d = t.GetMethod("Loop"); var act = (Action<ManualResetEvent>)Delegate.CreateDelegate(typeof(Action<ManualResetEvent>), d); Start(act, e); e.WaitOne(); });
    Leak("thread-generic", t => { var e = new ManualResetEvent(false); var d = typeof(Contexts).GetMethod("Host").MakeGenericMethod(t); Start((Action<ManualResetEvent>)Delegate.CreateDelegate(typeof(Action<ManualResetEvent>), d), e); e.WaitOne(); });
    Leak("nothing", t => {});
  }
  class Box { public Action<ManualResetEvent> A; public ManualResetEvent E; public void Go() { var a = A; var e = E; A = null; E = null; Call(ref a, e); } [MethodImpl(MethodImplOptions.NoInlining)] static void Call(ref Action<ManualResetEvent> a, ManualResetEvent e) { var b = a; a = null; b(e); } }
  static void Start(Action<ManualResetEvent> a, ManualResetEvent e) { Run(new Box { A = a, E = e }.Go); }
  public static void Main(string[] args) {
    Alc = Type.GetType("System.Runtime.Loader.AssemblyLoadContext"); Directory.SetCurrentDirectory(Path.GetDirectoryName(typeof(Contexts).Assembly.Location));
    All();
    if (args.Length == 0) for (int i = 0; i < 5; i++) { GC.Collect(); GC.WaitForPendingFinalizers(); }
    Console.WriteLine("ready"); Thread.Sleep(Timeout.Infinite);
  }
}

// ---- plugin ----
// using System; using System.Threading;
// namespace Plug {
//   public class Thing { public int Id; public static object Kept = new object(); public void M() {} public static void Work() { } public static void Loop(ManualResetEvent e) { e.Set(); while (e != null) Thread.Sleep(100); }
//     public static object Box() { return new Thing(); } public static T Echo<T>(T x) { return x; } }
//   public class Gen<T> { public static void Loop(ManualResetEvent e) { e.Set(); while (e != null) Thread.Sleep(100); } }
// }
