// holders: the program of the dump net10-wks-holders-heap. It accumulates 1,000 handlers of an event, to which a dead array refers as well; 2,000
// entries of a ConcurrentDictionary; 1,500 orders in a ConcurrentQueue; 1,100 cancellation sources with a timeout; 1,100 registrations with one source.
// Compiled as extra.cs says, run with DOTNET_gcServer=0 DOTNET_GCHeapHardLimit=0x6123000, and dumped by createdump -h once it says "ready".
using System; using System.Collections.Concurrent; using System.Collections.Generic; using System.Threading;
namespace Shop {
  public sealed class Order { public long Id; public byte[] Body = new byte[500]; }
  public sealed class OrderKey { public string Text; }
  public sealed class Feed { public event EventHandler Changed; public Delegate[] List() { return Changed.GetInvocationList(); } }
  public sealed class Screen { public byte[] Pixels = new byte[1000]; public void OnChanged(object sender, EventArgs e) { } }
  public sealed class Reply { public CancellationTokenSource Limit = new CancellationTokenSource(600000); }
  public sealed class Watcher { public byte[] Data = new byte[300]; public void Stop() { } }
  public static class Program {
    static readonly Feed feed = new Feed(); static readonly ConcurrentDictionary<OrderKey, Order> orders = new ConcurrentDictionary<OrderKey, Order>();
    static readonly ConcurrentQueue<Order> jobs = new ConcurrentQueue<Order>(); static readonly List<Reply> replies = new List<Reply>(); static readonly CancellationTokenSource life = new CancellationTokenSource();
    public static void Main() {
      for (int i = 0; i < 1000; i++) feed.Changed += new Screen().OnChanged;
      for (int i = 0; i < 2000; i++) orders[new OrderKey { Text = "order " + i }] = new Order { Id = i };
      for (int i = 0; i < 1500; i++) jobs.Enqueue(new Order { Id = i });
      for (int i = 0; i < 1100; i++) replies.Add(new Reply());
      for (int i = 0; i < 1100; i++) life.Token.Register(new Watcher().Stop);
      GC.Collect(); feed.List();
      Console.WriteLine("ready"); Console.Out.Flush(); Thread.Sleep(-1);
    }
  }
}
